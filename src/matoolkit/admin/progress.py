"""How members go through the phase that runs, or ran last: over time, and step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from matoolkit.admin.queries import PhaseView, existing_batch, phase_views
from matoolkit.domain.states import OPEN_STEPS, PhaseStatus, StepStatus
from matoolkit.store import Store
from matoolkit.store.phases import PhaseRow
from matoolkit.store.progress import StepTally, begun_by, step_tallies, through_by

_SLOTS = 48
# The rate is that of the last quarter of the time that is shown.
_RECENT = _SLOTS // 4


@dataclass(frozen=True, slots=True)
class StepStates:
    """A step, and how many members have it in which state."""

    name: str
    counts: Mapping[StepStatus, int]


@dataclass(frozen=True, slots=True)
class PhaseProgress:
    """How many members had begun a phase, and were through with it, at times that are equally far apart."""

    phase: PhaseRow
    begin: datetime
    end: datetime
    members: int
    begun: Sequence[int]
    through: Sequence[int]
    steps: Sequence[StepStates]

    def has(self, status: StepStatus) -> bool:
        """Tell whether any step is in a state."""
        return any(step.counts.get(status) for step in self.steps)

    @property
    def remaining(self) -> int:
        """How many members are still to come through."""
        return sum(self.steps[-1].counts.get(status, 0) for status in OPEN_STEPS)

    @property
    def each_minute(self) -> float:
        """How many members have come through in a minute of late."""
        lasted = (self.end - self.begin) * _RECENT / _SLOTS
        recent = self.through[-1] - self.through[-1 - _RECENT]
        return 60 * recent / lasted.total_seconds() if lasted else 0.0

    @property
    def ends_about(self) -> datetime | None:
        """When the last member comes through at this rate, if the phase still runs."""
        if self.phase.status is not PhaseStatus.DISPATCHED or not self.remaining or not self.each_minute:
            return None
        return self.end + timedelta(minutes=self.remaining / self.each_minute)


def phase_progress(store: Store, batch_id: int) -> PhaseProgress | None:
    """Look at the phase that runs or ran last; nothing if none has begun."""
    with store.reading() as tx:
        existing_batch(tx, batch_id)
        phase = _phase_to_show(phase_views(tx, batch_id))
        if phase is None or phase.dispatched_at is None:
            return None
        tallies = step_tallies(tx, phase.id)
        if not tallies:
            return None
        begin, end = phase.dispatched_at, phase.completed_at or tx.time()
        edges = [begin + (end - begin) * slot / _SLOTS for slot in range(_SLOTS)] + [end]
        begun, through = begun_by(tx, phase.id, edges), through_by(tx, phase.id, tallies[-1].step_index, edges)
    members = sum(tally.count for tally in tallies if tally.step_index == 0)
    return PhaseProgress(phase, begin, end, members, begun, through, _by_step(tallies))


def _phase_to_show(views: Sequence[PhaseView]) -> PhaseRow | None:
    """Choose the running phase in which most is under way, else the one that began last."""
    begun = [view for view in views if view.phase.dispatched_at and view.steps]
    running = [view for view in begun if view.phase.status is PhaseStatus.DISPATCHED]
    if running:
        return max(running, key=lambda view: (_under_way(view), -view.phase.order[2])).phase
    return max((view.phase for view in begun), key=lambda phase: phase.order, default=None)


def _under_way(view: PhaseView) -> int:
    return view.steps.get(StepStatus.DISPATCHED, 0) + view.steps.get(StepStatus.POLLING, 0)


def _by_step(tallies: Sequence[StepTally]) -> list[StepStates]:
    found: dict[tuple[int, str], dict[StepStatus, int]] = {}
    for tally in tallies:
        found.setdefault((tally.step_index, tally.step_name), {})[tally.status] = tally.count
    return [StepStates(name, counts) for (_, name), counts in found.items()]
