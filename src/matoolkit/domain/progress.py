"""What a member does next (rules O3, O5 and O9).

One thing at a time: first whatever undoes its work, then its steps, phase by phase. A job that is out is waited for,
even if nobody wants its step any more.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TypeAlias

from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, MemberStatus, StepStatus
from matoolkit.records import record

# Phases go by version, then from the largest offset before T to the latest after it, then as the runbook lists them.
PhaseOrder: TypeAlias = tuple[int, int, int]


def phase_order(runbook_version: int, offset_minutes: int, phase_index: int) -> PhaseOrder:
    """Say where a phase stands in the order in which a member goes through phases (rules O3 and V4)."""
    return runbook_version, -offset_minutes, phase_index


@record
class OpenStep:
    """A step of a member that has not ended, or whose job is still out: then it says when that counts as lost."""

    id: int
    phase_execution_id: int
    step_index: int
    status: StepStatus
    lost_at: datetime | None
    retry_after: datetime | None

    @property
    def is_in_flight(self) -> bool:
        """Whether a job is out whose answer may still come, even if the step itself was cancelled."""
        return self.lost_at is not None


@record
class OpenCompensation:
    """A compensating step of a member that has not ended; sequences go by the number of their first step."""

    id: int
    sequence: int
    step_index: int
    status: StepStatus
    lost_at: datetime | None
    retry_after: datetime | None


@record
class Situation:
    """A member, its batch, and what it has open: of each phase at least its first open step, and the phases' order."""

    member: MemberStatus
    batch: BatchStatus
    is_held: bool
    compensations: Sequence[OpenCompensation]
    steps: Sequence[OpenStep]
    order: Mapping[int, PhaseOrder]


@record
class Compensate:
    """Send this compensating step."""

    id: int


@record
class Do:
    """Send this step."""

    id: int


@record
class Wait:
    """Send nothing now."""

    reason: str


Next: TypeAlias = Compensate | Do | Wait


_is_out = attrgetter("lost_at")


def next_of(situation: Situation) -> Next:
    """Say what a member does next."""
    if any(map(_is_out, situation.steps)) or any(map(_is_out, situation.compensations)):
        return Wait("a job is out")
    if situation.compensations:
        first = min(situation.compensations, key=lambda step: (step.sequence, step.step_index))
        is_busy = any(map(_is_under_way, situation.compensations))
        return Wait("a compensation is under way") if is_busy else Compensate(first.id)
    if situation.member is not MemberStatus.ACTIVE:
        return Wait(f"the member is {situation.member}")
    if situation.batch not in UNFINISHED_BATCHES:
        return Wait(f"the batch is {situation.batch}")
    if not situation.steps:
        return Wait("nothing is left to do")
    if any(map(_is_under_way, situation.steps)):
        return Wait("a step is under way")
    step = min(situation.steps, key=lambda step: (situation.order[step.phase_execution_id], step.step_index))
    if step.step_index == 0 and situation.is_held:
        return Wait("the batch is held")
    if step.step_index == 0 and situation.batch is not BatchStatus.ACTIVE:
        return Wait("init is not done")
    return Do(step.id)


def _is_under_way(step: OpenStep | OpenCompensation) -> bool:
    return step.status is not StepStatus.PENDING or step.retry_after is not None
