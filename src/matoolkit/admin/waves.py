"""The waves of all runbooks on a calendar, each with its phases; where there are hundreds, some of each runbook."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, zip_longest

from matoolkit.admin.attention import OVERDUE
from matoolkit.admin.queries import BatchView, batch_views
from matoolkit.domain.states import ENDED_BATCHES, PhaseStatus
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import batches_by_id
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.waves import WaveHead, waves_between

# A page of them is still below its size, and still a picture.
_MOST_DRAWN = 24


@dataclass(frozen=True, slots=True)
class Wave:
    """A batch with the phases that count, in the order of their time."""

    view: BatchView
    phases: Sequence[PhaseRow]

    @property
    def start(self) -> datetime:
        """T."""
        assert self.view.batch.batch_start_time is not None  # noqa: S101 - only such batches are waves
        return self.view.batch.batch_start_time

    @property
    def has_ended(self) -> bool:
        """Whether nothing more of it comes."""
        return self.view.batch.status in ENDED_BATCHES

    @property
    def running(self) -> PhaseRow | None:
        """The phase that runs, the last one if there are several."""
        return next((one for one in reversed(self.phases) if one.status is PhaseStatus.DISPATCHED), None)

    @property
    def next(self) -> PhaseRow | None:
        """The phase that comes next."""
        return next((one for one in self.phases if one.status is PhaseStatus.PENDING), None)

    @property
    def span(self) -> tuple[datetime, datetime]:
        """From when to when it lasts by its plan."""
        times = [self.start, *(one.due_at for one in self.phases if one.due_at is not None)]
        return min(times), max(times)

    def is_overdue(self, at: datetime) -> bool:
        """Whether its next phase should have begun by a time (rule U6)."""
        ahead = self.next
        return ahead is not None and ahead.due_at is not None and ahead.due_at <= at - OVERDUE

    def reached(self, at: datetime) -> datetime:
        """How far it has come by a time: up to the first phase that has not begun, and never past that time."""
        begin, end = self.span
        if self.has_ended:
            return end
        ahead = self.next
        return max(begin, min(at, end, ahead.due_at if ahead and ahead.due_at else end))


@dataclass(frozen=True, slots=True)
class RunbookWaves:
    """The waves of a runbook that are drawn, by T, and how many are not."""

    runbook_name: str
    waves: Sequence[Wave]
    hidden: int


@dataclass(frozen=True, slots=True)
class WaveCalendar:
    """Waves by runbook between two moments, as they are at a time."""

    at: datetime
    begin: datetime
    end: datetime
    runbooks: Sequence[RunbookWaves]

    @property
    def hidden(self) -> int:
        """How many waves are not drawn."""
        return sum(one.hidden for one in self.runbooks)

    @property
    def found(self) -> int:
        """How many waves there are."""
        return self.hidden + sum(len(one.waves) for one in self.runbooks)


def wave_calendar(store: Store, begin: datetime, end: datetime) -> WaveCalendar:
    """Look at the waves between two moments."""
    with store.reading() as tx:
        at = tx.time()
        heads: dict[str, list[WaveHead]] = defaultdict(list)
        for head in waves_between(tx, begin, end):
            heads[head.runbook_name].append(head)
        drawn = _waves(tx, _chosen(heads.values(), at))
        return WaveCalendar(at, begin, end, [_of(name, heads[name], drawn) for name in sorted(heads)])


def _of(name: str, heads: Sequence[WaveHead], drawn: Mapping[int, Wave]) -> RunbookWaves:
    waves = [drawn[head.id] for head in heads if head.id in drawn]
    return RunbookWaves(name, waves, len(heads) - len(waves))


def _chosen(found: Iterable[Sequence[WaveHead]], at: datetime) -> list[int]:
    """Choose which are drawn: held ones and those whose T is nearest, as many of each runbook as there is room for."""

    def rank(head: WaveHead) -> tuple[bool, float]:
        return not head.is_held, abs((head.batch_start_time - at).total_seconds())

    in_turn = chain.from_iterable(zip_longest(*(sorted(heads, key=rank) for heads in found)))
    return [head.id for head in in_turn if head is not None][:_MOST_DRAWN]


def _waves(tx: Transaction, ids: Sequence[int]) -> dict[int, Wave]:
    phases: dict[int, list[PhaseRow]] = defaultdict(list)
    for phase in phases_of_batches(tx, ids):
        if phase.status is not PhaseStatus.SUPERSEDED:
            phases[phase.batch_id].append(phase)
    views = batch_views(tx, batches_by_id(tx, ids))
    return {view.batch.id: Wave(view, sorted(phases[view.batch.id], key=lambda one: one.order)) for view in views}
