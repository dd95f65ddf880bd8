"""The phases of a batch on a time line: when each was due, began and ended. Time in which nothing happens is folded."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from matoolkit.admin.looking import BatchLook
from matoolkit.admin.queries import PhaseView
from matoolkit.domain.states import ENDED_BATCHES, FAILED_STEPS, PhaseStatus, StepStatus
from matoolkit.runbook.offsets import Offset
from matoolkit.store.executions import InitRow
from matoolkit.words import distance

_EDGE = 3.0
# The part of the line that a folded stretch takes, the least that another takes, and the most of all folded ones.
_FOLDED, _LEAST, _MOST_FOLDED = 9.0, 1.5, 0.6
_FOLDED_FROM = timedelta(hours=1)
_LEAST_BETWEEN_LABELS = 13.0
_LONGEST_OVERDUE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Lane:
    """A phase, or the init, as one line of the picture and of the table."""

    name: str
    offset: str
    status: str
    due: datetime | None
    begun: datetime | None
    ended: datetime | None
    done: int
    total: int
    failed: int

    @property
    def delay(self) -> timedelta | None:
        """How much later than planned it began, if that is worth a word."""
        late = self.begun - self.due if self.begun and self.due else timedelta()
        return late if late > _LONGEST_OVERDUE else None


@dataclass(frozen=True, slots=True)
class Mark:
    """A time with its place, and a label if there is room for one."""

    at: datetime
    x: float
    label: str | None


@dataclass(frozen=True, slots=True)
class Idle:
    """A folded stretch in which nothing happens."""

    x: float
    label: str | None


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Lanes, and where times are upon them, in per cent of the width."""

    lanes: Sequence[Lane]
    marks: Sequence[Mark]
    idle: Sequence[Idle]
    now: float | None
    _times: Sequence[datetime]
    _places: Sequence[float]

    def x(self, at: datetime) -> str:
        """Return where a time is, as a coordinate."""
        return f"{_place(self._times, self._places, at):.1f}%"

    def width(self, begun: datetime, ended: datetime) -> str:
        """Return how wide the time between two others is."""
        return f"{_place(self._times, self._places, ended) - _place(self._times, self._places, begun):.1f}%"


def time_line(seen: BatchLook) -> TimeLine:
    """Draw a batch as it was seen."""
    lanes = [*_inits(seen.detail.inits), *map(_lane, seen.phases)]
    ended = seen.detail.view.batch.status in ENDED_BATCHES
    now = None if ended or not lanes else seen.at
    spans = [(lane.begun, lane.ended or seen.at) for lane in lanes if lane.begun]
    times = sorted({*_times(lanes), *(end for _, end in spans), *([now] if now else ())})
    places = _places(times, spans)
    return TimeLine(
        lanes,
        _marks(lanes, times, places),
        _idle(times, places, spans),
        _place(times, places, now) if now and times else None,
        times,
        places,
    )


def _lane(view: PhaseView) -> Lane:
    phase, steps = view.phase, view.steps
    return Lane(
        phase.phase_name,
        str(Offset(phase.offset_minutes)),
        phase.status,
        phase.due_at,
        phase.dispatched_at,
        phase.completed_at if phase.dispatched_at else None,
        sum(steps.get(word, 0) for word in (StepStatus.SUCCEEDED, *FAILED_STEPS)),
        sum(steps.values()),
        sum(steps.get(word, 0) for word in FAILED_STEPS),
    )


def _inits(rows: Sequence[InitRow]) -> list[Lane]:
    """Return the init of the latest version as a lane, if the runbook has one."""
    latest = max((row.runbook_version for row in rows), default=0)
    steps = [row for row in rows if row.runbook_version == latest]
    if not steps:
        return []
    counts = Counter(step.status for step in steps)
    begun = min((step.dispatched_at for step in steps if step.dispatched_at), default=None)
    failed = sum(counts[word] for word in FAILED_STEPS)
    done = counts[StepStatus.SUCCEEDED] + failed
    ends = [step.completed_at for step in steps if step.completed_at]
    ended = max(ends) if begun and len(ends) == len(steps) else None
    return [Lane("init", "", _status_of_init(counts, failed), None, begun, ended, done, len(steps), failed)]


def _status_of_init(counts: Counter[StepStatus], failed: int) -> str:
    if failed:
        return PhaseStatus.FAILED
    if set(counts) == {StepStatus.SUCCEEDED}:
        return PhaseStatus.COMPLETED
    if counts[StepStatus.CANCELLED]:
        return PhaseStatus.CANCELLED
    return PhaseStatus.PENDING if set(counts) == {StepStatus.PENDING} else PhaseStatus.DISPATCHED


def _times(lanes: Sequence[Lane]) -> Iterable[datetime]:
    for lane in lanes:
        yield from (at for at in (lane.due, lane.begun, lane.ended) if at is not None)


def _places(times: Sequence[datetime], spans: Sequence[tuple[datetime, datetime]]) -> list[float]:
    """Give each time its place: by the clock while something happens, and the same for each long idle stretch."""
    stretches = list(pairwise(times))
    folded = [_is_folded(*stretch, spans) for stretch in stretches]
    lasting = sum((end - start for (start, end), fold in zip(stretches, folded, strict=True) if not fold), timedelta())
    widths = [
        _FOLDED if fold else max(100.0 * ((end - start) / lasting if lasting else 0), _LEAST)
        for (start, end), fold in zip(stretches, folded, strict=True)
    ]
    # What is folded keeps its width as far as there is room, and the rest shares what is left.
    room, fixed = 100.0 - 2 * _EDGE, _FOLDED * sum(folded)
    fixed = room if all(folded) else min(fixed, room * _MOST_FOLDED)
    shared = sum(width for width, fold in zip(widths, folded, strict=True) if not fold)
    places, x = [_EDGE], _EDGE
    for width, fold in zip(widths, folded, strict=True):
        x += fixed / sum(folded) if fold else (room - fixed) * width / shared
        places.append(x)
    return places[: len(times)]


def _is_folded(start: datetime, end: datetime, spans: Sequence[tuple[datetime, datetime]]) -> bool:
    happens = any(begun < end and start < ended for begun, ended in spans)
    return not happens and end - start >= _FOLDED_FROM


def _place(times: Sequence[datetime], places: Sequence[float], at: datetime) -> float:
    if at <= times[0]:
        return places[0]
    if at >= times[-1]:
        return places[-1]
    right = bisect_right(times, at)
    before, after = times[right - 1], times[right]
    return places[right - 1] + (places[right] - places[right - 1]) * ((at - before) / (after - before))


def _marks(lanes: Sequence[Lane], times: Sequence[datetime], places: Sequence[float]) -> list[Mark]:
    """Mark when phases are due; a label that would touch the one before it is left out."""
    found: list[Mark] = []
    last = float("-inf")
    for at, offset in sorted({(lane.due, lane.offset) for lane in lanes if lane.due}):
        x = _place(times, places, at)
        fits = x - last >= _LEAST_BETWEEN_LABELS
        last = x if fits else last
        found.append(Mark(at, x, offset if fits else None))
    return found


def _idle(times: Sequence[datetime], places: Sequence[float], spans: Sequence[tuple[datetime, datetime]]) -> list[Idle]:
    found: list[Idle] = []
    last = float("-inf")
    for index, (start, end) in enumerate(pairwise(times)):
        if _is_folded(start, end, spans):
            x = (places[index] + places[index + 1]) / 2
            fits = x - last >= _LEAST_BETWEEN_LABELS
            last = x if fits else last
            found.append(Idle(x, f"{distance(end - start)} idle" if fits else None))
    return found
