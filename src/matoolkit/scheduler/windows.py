"""Windows of phases that have begun: all who waited are woken when one opens; nothing is sent while one is shut.

Phases that have not begun need nothing of this: each sweep looks at those that are due (rules K2, G4, G6 and G8).
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from matoolkit.announcing.gatekeeping import take_back_from, wake_batches
from matoolkit.announcing.versions import readable_runbooks
from matoolkit.domain.windows import Binds, Hours, has_opened, hours_of, is_open, last_opening
from matoolkit.ports import Publisher
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.batches import lock_narrow_batches
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.windows import RunningPhase, note_woken, running_phases

_AT_ONCE = 500

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Windows:
    """The windows of the versions whose phases were seen; a version never changes.

    `_quiet` are the phases whose jobs were taken back since their window shut, with when that had opened: another
    scheduler may have worked since. A process that does not know takes them back once more, which changes nothing.
    """

    _of_versions: dict[tuple[str, int], Mapping[int, Hours]] = field(default_factory=dict)
    _quiet: set[tuple[int, datetime | None]] = field(default_factory=set)

    def look_after(self, store: Store, publisher: Publisher, confirm: Confirm) -> set[int]:
        """Wake all who waited for a window that has opened since, and return the phases whose jobs wait for one.

        The clock is that of the database, by which those who are woken ask whether it is open: they are woken once.
        """
        with store.reading() as tx:
            at = tx.time()
            running = running_phases(tx)
            found = self._with_windows(tx, running)
        _look_again(store, confirm, [phase for phase in running if phase.was_looked_at_after(at)], at)
        opened = [phase for phase, hours in found if has_opened(hours, phase.looked_at, at)]
        for first in range(0, len(opened), _AT_ONCE):
            with store.transaction() as tx:
                confirm(tx)
                _wake(tx, publisher, opened[first : first + _AT_ONCE], at)
        shut = [one for one in found if one[1].binds is Binds.EVERY_JOB and not is_open(one[1], at)]
        self._quieten(store, publisher, confirm, {phase: last_opening(hours, at) for phase, hours in shut})
        return {phase.id for phase, _ in shut}

    def _quieten(
        self, store: Store, publisher: Publisher, confirm: Confirm, shut: Mapping[RunningPhase, datetime | None]
    ) -> None:
        """Take back what left before a window shut and nobody has received, batch by batch (rule G4)."""
        loud: dict[int, set[int]] = {}
        for phase, opened_at in shut.items():
            if (phase.id, opened_at) not in self._quiet:
                loud.setdefault(phase.batch_id, set()).add(phase.id)
        for batch_id, phases in sorted(loud.items()):
            with store.transaction() as tx:
                confirm(tx)
                jobs = take_back_from(tx, publisher, batch_id, phases)
            if jobs.taken_back or jobs.out:
                told = "a window has shut: %d jobs were taken back, %d are out"
                log.info(told, jobs.taken_back, jobs.out, extra={"batch": batch_id})
        self._quiet = {(phase.id, opened_at) for phase, opened_at in shut.items()}

    def _with_windows(self, tx: Transaction, phases: Sequence[RunningPhase]) -> list[tuple[RunningPhase, Hours]]:
        found = ((phase, self._hours(tx, phase)) for phase in phases)
        return [(phase, hours) for phase, hours in found if hours is not None]

    def _hours(self, tx: Transaction, phase: RunningPhase) -> Hours | None:
        version = (phase.runbook_name, phase.runbook_version)
        if version not in self._of_versions:
            self._of_versions[version] = _windows_of(tx, *version)
        return self._of_versions[version].get(phase.phase_index)


def _windows_of(tx: Transaction, name: str, version: int) -> Mapping[int, Hours]:
    """Return the windows of a version by the places of their phases; one that cannot be read has none."""
    runbook = readable_runbooks(tx, [(name, version)]).get((name, version))
    if runbook is None:
        return {}
    found = {place: hours_of(runbook, rules) for place, rules in enumerate(runbook.phases)}
    return {place: hours for place, hours in found.items() if hours is not None}


def _look_again(store: Store, confirm: Confirm, phases: Sequence[RunningPhase], at: datetime) -> None:
    """Note that a clock was put back: what opens by time opens once more for those who have asked again since."""
    if not phases:
        return
    with store.transaction() as tx:
        confirm(tx)
        lock_narrow_batches(tx, {phase.batch_id for phase in phases})
        note_woken(tx, [phase.id for phase in phases], at)


def _wake(tx: Transaction, publisher: Publisher, phases: Sequence[RunningPhase], at: datetime) -> None:
    # Batches first, as in every pile: in another order two transactions could wait for each other (rule M5).
    lock_narrow_batches(tx, {phase.batch_id for phase in phases})
    noted = set(note_woken(tx, [phase.id for phase in phases], at))
    woken = [phase for phase in phases if phase.id in noted]
    wake_batches(tx, publisher, sorted({phase.batch_id for phase in woken}))
    for phase in woken:
        log.info("phase %s: its window has opened", phase.id, extra={"batch": phase.batch_id})
