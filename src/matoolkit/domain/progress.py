"""What a member does next (rules O3, O5 and O9).

One thing at a time: first compensations, then its steps, phase by phase. A member waits for a job that is out, even if
the step was cancelled: the job may still change the tenant, and its answer may bring outputs (rule O5).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from matoolkit.domain.gates import Door, Gates, Work
from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, MemberStatus, StepStatus
from matoolkit.records import record

# Phases go by version, then from the largest offset before T to the latest after it, then as the runbook lists them.
PhaseOrder: TypeAlias = tuple[int, int, int]


def phase_order(runbook_version: int, offset_minutes: int, phase_index: int) -> PhaseOrder:
    """Say where a phase stands in the order in which a member goes through phases (rules O3 and V4)."""
    return runbook_version, -offset_minutes, phase_index


@record
class OpenWork:
    """Work that has not ended, or whose job is out. `lost_at` is then the time at which the job counts as lost."""

    id: int
    step_index: int
    status: StepStatus
    lost_at: datetime | None
    retry_after: datetime | None

    @property
    def is_in_flight(self) -> bool:
        """Whether a job is out whose answer may still come, even if the step itself was cancelled."""
        return self.lost_at is not None


@record
class OpenStep(OpenWork):
    """An open step of a member."""

    phase_execution_id: int


@record
class OpenCompensation(OpenWork):
    """An open compensating step of a member; sequences go by the number of their first step."""

    sequence: int


@record
class Situation:
    """A member, its batch, and its open work: at least the first open step of each phase, and the order of phases.

    `work` is what would begin, as the gates in force know it.
    """

    member: MemberStatus
    batch: BatchStatus
    gates: Gates
    work: Work
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


def next_of(situation: Situation) -> Next:
    """Say what a member does next."""
    for step in (*situation.steps, *situation.compensations):
        if step.lost_at is not None:
            return Wait("a job is out")
    if situation.compensations:
        return _next_compensation(situation.compensations)
    if situation.member is not MemberStatus.ACTIVE:
        return Wait(f"the member is {situation.member}")
    if situation.batch not in UNFINISHED_BATCHES:
        return Wait(f"the batch is {situation.batch}")
    if not situation.steps:
        return Wait("nothing is left to do")
    if any(map(_is_under_way, situation.steps)):
        return Wait("a step is under way")
    first = min(situation.steps, key=lambda step: (situation.order[step.phase_execution_id], step.step_index))
    if first.step_index == 0 and (shut := situation.gates.at(Door.START, situation.work)):
        return Wait(f"a gate is shut: {shut[0].reason}")
    if first.step_index == 0 and situation.batch is not BatchStatus.ACTIVE:
        return Wait("init is not done")
    return Do(first.id)


def _next_compensation(open_ones: Sequence[OpenCompensation]) -> Compensate | Wait:
    if any(map(_is_under_way, open_ones)):
        return Wait("a compensation is under way")
    return Compensate(min(open_ones, key=lambda step: (step.sequence, step.step_index)).id)


def _is_under_way(step: OpenWork) -> bool:
    return step.status is not StepStatus.PENDING or step.retry_after is not None
