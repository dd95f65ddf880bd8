"""What a new version of a runbook does to a batch in flight (rules V2 to V6).

The scheduler does what is decided here, and publishing shows it beforehand: both ask the same question.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from matoolkit.domain.keys import folded
from matoolkit.domain.lateness import limit_of
from matoolkit.domain.phaseorder import phase_order
from matoolkit.domain.states import ENDED_BATCHES, OPEN_PHASES, BatchStatus, OverdueBehavior, PhaseStatus
from matoolkit.runbook.model import Runbook

_BEGUN = frozenset({PhaseStatus.DISPATCHED, PhaseStatus.COMPLETED, PhaseStatus.FAILED})


class Stay(StrEnum):
    """Why a batch does not take a version."""

    ENDED = "it has ended"
    CURRENT = "it follows this version already"
    MANUAL = "it is a manual batch, which keeps its version"
    REOPENED = "a person's retry reopened it, and it keeps its version"
    UNBEGUN = "it waits for a person before it begins, and then follows the version that is active"
    HELD = "it is held, and takes the version once the hold has ended"


class InitChange(StrEnum):
    """What happens to the init of a batch that takes a version."""

    KEPT = "init counts as done, or goes on under the version that began it"
    REQUESTED = "init runs again, and phases wait for it"
    DROPPED = "what is open of init is cancelled; the version has none"


@dataclass(frozen=True, slots=True)
class PhaseInFlight:
    """A phase that a batch has; `was_dispatched` also says so of one that was superseded later."""

    id: int
    version: int
    name: str
    index: int
    offset_minutes: int
    status: PhaseStatus
    was_dispatched: bool = False

    @property
    def has_begun(self) -> bool:
        """Whether members may have done some of its steps."""
        return self.was_dispatched or self.status in _BEGUN


@dataclass(frozen=True, slots=True)
class BatchInFlight:
    """A batch, as far as a new version matters to it."""

    id: int
    status: BatchStatus
    start_time: datetime | None
    phases: Sequence[PhaseInFlight] = ()
    is_current: bool = False
    is_manual: bool = False
    is_reopened: bool = False
    is_held: bool = False
    is_unbegun: bool = False


@dataclass(frozen=True, slots=True)
class TargetVersion:
    """The version that batches in flight are to take, and how it was published."""

    number: int
    runbook: Runbook
    overdue_behavior: OverdueBehavior = OverdueBehavior.RERUN
    rerun_init: bool = False

    @property
    def in_order(self) -> list[int]:
        """The places of its phases in the runbook, in the order in which a member goes through them (rule O3)."""
        phases = self.runbook.phases
        return sorted(range(len(phases)), key=lambda index: phase_order(0, phases[index].offset.minutes, index))


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """A phase that a batch is given; `is_repeated` if a phase of this name has begun before.

    A phase that `stays_due` is past due and still runs under `ignore`, because no member has begun it yet. Until when a
    phase may begin counts from the transition, if it was due before (rule K5).
    """

    name: str
    index: int
    offset_minutes: int
    due_at: datetime | None
    status: PhaseStatus
    is_repeated: bool = False
    stays_due: bool = False
    late_after: datetime | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether it is passed by."""
        return self.status is PhaseStatus.SKIPPED


@dataclass(frozen=True, slots=True)
class Transition:
    """What a version does to a batch: nothing, for a reason, or all of the rest."""

    batch_id: int
    stays: Stay | None = None
    superseded: tuple[PhaseInFlight, ...] = ()
    going_on: tuple[PhaseInFlight, ...] = ()
    created: tuple[PlannedPhase, ...] = ()
    init: InitChange = InitChange.KEPT
    activates: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether the batch will take the version later."""
        return self.stays is Stay.HELD

    @property
    def repeated(self) -> tuple[PlannedPhase, ...]:
        """Phases that members have begun before and that run again."""
        return tuple(phase for phase in self.created if phase.is_repeated and not phase.is_skipped)

    @property
    def first_time(self) -> tuple[PlannedPhase, ...]:
        """Phases that run for the first time."""
        return tuple(phase for phase in self.created if not phase.is_repeated and not phase.is_skipped)

    @property
    def skipped(self) -> tuple[PlannedPhase, ...]:
        """Phases past due that are passed by."""
        return tuple(phase for phase in self.created if phase.is_skipped)

    @property
    def staying_due(self) -> tuple[PlannedPhase, ...]:
        """Phases past due that are not passed by, because they have not begun."""
        return tuple(phase for phase in self.created if phase.stays_due)

    @property
    def interrupted(self) -> tuple[PhaseInFlight, ...]:
        """Superseded phases that run now; their open steps are cancelled."""
        return tuple(phase for phase in self.superseded if phase.status is PhaseStatus.DISPATCHED)

    def in_words(self) -> str:
        """Say what happens, for the log and for the person who publishes."""
        if self.stays is not None:
            return str(self.stays)
        parts = [
            _listed("run again", self.repeated),
            _listed("run", (phase for phase in self.first_time if not phase.stays_due)),
            _listed("run although past due, because they have not begun", self.staying_due),
            _listed("skipped as past due", self.skipped),
            _listed("interrupted", self.interrupted),
            _listed("superseded", (phase for phase in self.superseded if phase not in self.interrupted)),
            _listed("finish under the version that began them", self.going_on),
        ]
        return "; ".join([*filter(None, parts), str(self.init)])


def transition(batch: BatchInFlight, target: TargetVersion, now: datetime) -> Transition:
    """Decide what a version does to a batch; a phase is past due when its time is now or before."""
    stays = why_it_stays(batch)
    if stays is not None or batch.start_time is None:
        return Transition(batch.id, stays or Stay.MANUAL)
    unfinished = [phase for phase in batch.phases if phase.version != target.number and phase.status in OPEN_PHASES]
    going_on = [phase for phase in unfinished if _goes_on(phase, target)]
    init = _init_change(batch, target)
    return Transition(
        batch.id,
        superseded=tuple(phase for phase in unfinished if phase not in going_on),
        going_on=tuple(going_on),
        created=tuple(_planned(batch, batch.start_time, target, now)),
        init=init,
        activates=init is InitChange.DROPPED and batch.status is not BatchStatus.ACTIVE,
    )


def taken_up(batch: BatchInFlight, target: TargetVersion, now: datetime) -> Transition:
    """Decide what happens to the phases of a batch that takes a version for a person's retry (rule O14).

    Running phases go on under their own version. Past phases are created skipped, so that they open for the retried
    members alone. The others are still to come, for everybody.
    """
    unfinished = [phase for phase in batch.phases if phase.version != target.number and phase.status in OPEN_PHASES]
    waiting = [phase for phase in unfinished if phase.status is PhaseStatus.PENDING]
    planned = [_as_planned(batch, target, index, now) for index in target.in_order]
    past = _past(batch, planned, {folded(phase.name) for phase in waiting}, now)
    return Transition(
        batch.id,
        superseded=tuple(waiting),
        going_on=tuple(phase for phase in unfinished if phase not in waiting),
        created=tuple(replace(phase, status=PhaseStatus.SKIPPED) if phase in past else phase for phase in planned),
    )


def _as_planned(batch: BatchInFlight, target: TargetVersion, index: int, now: datetime) -> PlannedPhase:
    phase = target.runbook.phases[index]
    due_at = phase.offset.due_at(batch.start_time) if batch.start_time else None
    late_after = limit_of(due_at, target.runbook.max_delay, now)
    return PlannedPhase(phase.name, index, phase.offset.minutes, due_at, PhaseStatus.PENDING, late_after=late_after)


def _past(
    batch: BatchInFlight, planned: Sequence[PlannedPhase], waiting: Collection[str], now: datetime
) -> Sequence[PlannedPhase]:
    begun = {folded(phase.name) for phase in batch.phases if phase.has_begun}
    if batch.is_manual:
        # It has no calendar: whatever comes before a phase that has begun is past.
        last = max((place for place, phase in enumerate(planned) if folded(phase.name) in begun), default=-1)
        return planned[: last + 1]
    return [
        phase
        for phase in planned
        if folded(phase.name) in begun
        or (phase.due_at is not None and phase.due_at <= now and folded(phase.name) not in waiting)
    ]


def why_it_stays(batch: BatchInFlight) -> Stay | None:
    """Say why a batch does not take a version, if it does not."""
    # In the order in which they last: a hold ends, the rest does not.
    if batch.status in ENDED_BATCHES:
        return Stay.ENDED
    if batch.is_current:
        return Stay.CURRENT
    if batch.is_manual:
        return Stay.MANUAL
    if batch.is_reopened:
        return Stay.REOPENED
    if batch.is_unbegun:
        return Stay.UNBEGUN
    return Stay.HELD if batch.is_held else None


def _goes_on(phase: PhaseInFlight, target: TargetVersion) -> bool:
    return target.overdue_behavior is OverdueBehavior.IGNORE and phase.status is PhaseStatus.DISPATCHED


def _init_change(batch: BatchInFlight, target: TargetVersion) -> InitChange:
    # The init of a detected batch was never requested, so it cannot count as done.
    if not target.rerun_init and batch.status is not BatchStatus.DETECTED:
        return InitChange.KEPT
    return InitChange.REQUESTED if target.runbook.init else InitChange.DROPPED


def _planned(
    batch: BatchInFlight, start_time: datetime, target: TargetVersion, now: datetime
) -> Iterable[PlannedPhase]:
    begun = {folded(phase.name) for phase in batch.phases if phase.has_begun}
    # A phase that is still pending, for example because init runs, was never done and is not skipped (rule V4).
    waiting = {folded(phase.name) for phase in batch.phases if phase.status is PhaseStatus.PENDING} - begun
    for index, phase in enumerate(target.runbook.phases):
        due_at, name = phase.offset.due_at(start_time), folded(phase.name)
        is_passed_by = target.overdue_behavior is OverdueBehavior.IGNORE and due_at <= now
        yield PlannedPhase(
            phase.name,
            index,
            phase.offset.minutes,
            due_at,
            PhaseStatus.SKIPPED if is_passed_by and name not in waiting else PhaseStatus.PENDING,
            is_repeated=name in begun,
            stays_due=is_passed_by and name in waiting,
            late_after=limit_of(due_at, target.runbook.max_delay, now),
        )


def _listed(what: str, phases: Iterable[PhaseInFlight | PlannedPhase]) -> str:
    names = ", ".join(phase.name for phase in phases)
    return f"{what}: {names}" if names else ""
