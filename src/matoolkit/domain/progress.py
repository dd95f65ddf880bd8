"""What a member does next (rules O3, O5 and O9).

One thing at a time: first compensations, then its steps, phase by phase. A member waits for a job that is out, even if
the step was cancelled: the job may still change the tenant, and its answer may bring outputs (rule O5).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.gates import Gates
from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, MemberStatus, StepStatus
from matoolkit.domain.why import Why, WhyKind
from matoolkit.records import record


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
    """A member, its batch, and its open work: at least the first open step of each phase, and the phases of these.

    `work` is what would begin, as the gates know it, without its phase; `places` are the phases in which the member
    has a place.
    """

    member: MemberStatus
    batch: BatchStatus
    gates: Gates
    work: Work
    compensations: Sequence[OpenCompensation]
    steps: Sequence[OpenStep]
    phases: Mapping[int, PhaseDoor]
    places: Collection[int] = ()


@record
class Compensate:
    """Send this compensating step."""

    id: int


@record
class Do:
    """Send this step."""

    id: int


@record
class Refuse:
    """Fail this step unsent: a person has not approved its member (rule S3)."""

    id: int
    by: str
    reason: str | None


@record
class Wait:
    """Send nothing now, for each of these reasons (rule X1)."""

    whys: Sequence[Why]


Next: TypeAlias = Compensate | Do | Refuse | Wait


def next_of(situation: Situation) -> Next:
    """Say what a member does next, or why it waits."""
    if out := _jobs_out((*situation.steps, *situation.compensations)):
        return Wait([*out, *_undoing_behind(situation, out)])
    if situation.compensations:
        return _next_compensation(situation.compensations)
    if situation.member is not MemberStatus.ACTIVE:
        return Wait((Why(WhyKind.ENDED, f"the member is {situation.member}"),))
    if situation.batch not in UNFINISHED_BATCHES:
        return Wait((Why(WhyKind.ENDED, f"the batch is {situation.batch}"),))
    if not situation.steps:
        return Wait((Why(WhyKind.ENDED, "nothing is left to do"),))
    if under_way := _under_way(situation.steps):
        return Wait(under_way)
    return _next_step(situation)


def next_of_init(steps: Sequence[OpenWork]) -> Do | Wait:
    """Say what an init does next, given the steps of its latest version that are open; none overlaps with another."""
    if under_way := _jobs_out(steps) or _under_way(steps):
        return Wait(under_way)
    return Do(min(steps, key=lambda step: step.step_index).id) if steps else Wait((Why(WhyKind.ENDED, "it is done"),))


def first_step(situation: Situation) -> OpenStep:
    """Return the step that comes first of those that are open (rule O3)."""
    phases = situation.phases
    return min(situation.steps, key=lambda step: (phases[step.phase_execution_id].order, step.step_index))


def _next_step(situation: Situation) -> Do | Refuse | Wait:
    phases, first = situation.phases, first_step(situation)
    if first.step_index > 0:
        return Do(first.id)
    phase = phases[first.phase_execution_id]
    if phase.sign_offs is not None and (no := phase.sign_offs.refusal(situation.work.joined_no)) is not None:
        return Refuse(first.id, no.signed_by, no.reason)
    shut = []
    if situation.gates.may_keep(phase):
        shut = situation.gates.at(
            Door.START, replace(situation.work, phase=phase, has_place=phase.id in situation.places)
        )
    if situation.batch is not BatchStatus.ACTIVE:
        shut = [*shut, Why(WhyKind.INIT, "init is not done")]
    return Wait(shut) if shut else Do(first.id)


def _next_compensation(open_ones: Sequence[OpenCompensation]) -> Compensate | Wait:
    if under_way := _under_way(open_ones):
        return Wait(under_way)
    return Compensate(min(open_ones, key=lambda step: (step.sequence, step.step_index)).id)


def _jobs_out(work: Iterable[OpenWork]) -> list[Why]:
    return [
        Why(WhyKind.JOB_OUT, "its job is out", until=step.lost_at, work_id=step.id, undoes=_undoes(step))
        for step in work
        if step.lost_at is not None
    ]


def _undoing_behind(situation: Situation, out: Iterable[Why]) -> list[Why]:
    """Say that what is to be undone waits for a job that may still change the tenant (rule O5)."""
    if not situation.compensations or all(why.undoes for why in out):
        return []
    return [Why(WhyKind.COMPENSATION, "what was done for it is undone after that")]


def _under_way(work: Iterable[OpenWork]) -> list[Why]:
    """Say for what work waits that was sent before."""
    found = []
    for step in work:
        if step.status is not StepStatus.PENDING:
            told = "it is asked again whether it is done"
            found.append(Why(WhyKind.POLL, told, work_id=step.id, undoes=_undoes(step)))
        elif step.retry_after is not None:
            told, undoes = "it is tried again", _undoes(step)
            found.append(Why(WhyKind.RETRY, told, until=step.retry_after, work_id=step.id, undoes=undoes))
    return found


def _undoes(step: OpenWork) -> bool:
    return isinstance(step, OpenCompensation)
