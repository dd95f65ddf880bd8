"""People who take something back: they undo members, keep people out, and let them in again (rules U2 and U3)."""

from random import Random

from matoolkit.admin.excluding import exclude_member
from matoolkit.admin.including import include_member
from matoolkit.admin.undoing import undo_members
from matoolkit.admin.undoplan import Wanted
from matoolkit.domain.retrying import VersionChoice
from matoolkit.errors import Refused
from matoolkit.ports import Publisher
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.runbooks import NAME
from matoolkit.store import Store

_BY, _WHY = "eve", "a mistake"
_THERE = "SELECT DISTINCT batch_id FROM batch_members WHERE status IN ('active', 'failed')"
_EXCLUDED = "SELECT member_key FROM member_exclusions WHERE included_at IS NULL"
# How often a whole batch is undone, the active version is wanted, and what was done for somebody excluded is undone.
_WHOLE, _ACTIVE, _WITH_UNDO = 0.3, 0.2, 0.5


class Regrets:
    """What people take back."""

    def __init__(self, plant: Plant, rng: Random, store: Store, publisher: Publisher) -> None:
        self._plant = plant
        self._rng = rng
        self._store = store
        self._publisher = publisher

    def undo(self) -> str:
        """Undo a batch, or somebody in it."""
        batch = int(self._some(_THERE))
        key = self._some(f"SELECT member_key FROM batch_members WHERE batch_id = {batch} AND status <> 'removed'")
        keys = None if self._rng.random() < _WHOLE else [key]
        version = VersionChoice.ACTIVE if self._rng.random() < _ACTIVE else None
        done = undo_members(self._store, self._publisher, batch, Wanted(member_keys=keys), version, by=_BY, reason=_WHY)
        return f"undoes {done.undone} in batch {batch}: {done.running} by version {done.version}"

    def exclude(self) -> str:
        """Keep somebody out, and perhaps undo what was done for it."""
        key, undo = self._some("SELECT DISTINCT member_key FROM batch_members"), self._rng.random() < _WITH_UNDO
        done = exclude_member(self._store, self._publisher, NAME, key, by=_BY, reason=_WHY, undo=undo)
        return f"excludes {key}{' and undoes it' if done.undo else ''}, which leaves {done.leaves}"

    def include(self) -> str:
        """Let somebody in again who was kept out."""
        key = self._some(_EXCLUDED)
        include_member(self._store, NAME, key, by=_BY, reason=None, now=self._plant.clock.now())
        return f"excludes {key} no longer"

    def has_excluded(self) -> bool:
        """Tell whether somebody is kept out."""
        return bool(self._plant.state.look(_EXCLUDED))

    def _some(self, query: str) -> str:
        found = self._plant.state.look(query)
        if not found:
            raise Refused("there is none")
        return str(self._rng.choice(found)[0])
