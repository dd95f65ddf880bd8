"""What a member waits for, and what comes next: the first reason that keeps it from going on, read from the state."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from matoolkit.admin.queries import MemberHistory, existing_batch, member_history
from matoolkit.domain.keys import folded
from matoolkit.domain.states import (
    FAILED_STEPS,
    OPEN_STEPS,
    UNFINISHED_BATCHES,
    BatchStatus,
    MemberState,
    MemberStatus,
    PhaseStatus,
    StepStatus,
)
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow
from matoolkit.store.enrolments import Enrolment
from matoolkit.store.exclusions import Exclusion, exclusion_of
from matoolkit.store.executions import ExecutionRow, RollbackRow, StepRow
from matoolkit.store.people import enrolments_of_key
from matoolkit.store.phases import PhaseRow, phases_of_batches

_MOST_PLACES = 20


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence, and the time that it is about; `is_stuck` if nothing goes on without a person."""

    text: str
    at: datetime | None = None
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class Outlook:
    """Why a member is where it is, and what comes next for it."""

    waits: Sequence[Reason]
    following: Sequence[Reason]

    @property
    def is_stuck(self) -> bool:
        """Whether nothing goes on without a person."""
        return any(reason.is_stuck for reason in self.waits)


@dataclass(frozen=True, slots=True)
class MemberLook:
    """A member with its batch and all its places, read at once."""

    at: datetime
    batch: BatchRow
    phases: Sequence[PhaseRow]
    history: MemberHistory
    places: Sequence[Enrolment]
    exclusion: Exclusion | None

    @property
    def steps(self) -> list[StepRow]:
        """The steps of its present epoch, in their order."""
        epoch = self.history.member.row.epoch
        return self.in_order([step for step in self.history.steps if step.epoch == epoch])

    def in_order(self, steps: Sequence[StepRow]) -> list[StepRow]:
        """Sort steps as a member goes through them (rule O3)."""
        order = {phase.id: phase.order for phase in self.phases}
        return sorted(steps, key=lambda step: (order[step.phase_execution_id], step.step_index))

    @property
    def outlook(self) -> Outlook:
        """What it waits for, and what comes next."""
        waits = [*_waits(self)]
        return Outlook(waits, [] if any(reason.is_stuck for reason in waits) else [*_following(self)])


def look_at_member(store: Store, batch_id: int, member_id: int) -> MemberLook:
    """Look at a member."""
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        history = member_history(store.within(tx), batch_id, member_id)
        key = history.member.row.member_key
        return MemberLook(
            tx.time(),
            batch,
            phases_of_batches(tx, [batch_id]),
            history,
            enrolments_of_key(tx, key, _MOST_PLACES),
            exclusion_of(tx, batch.runbook_name, folded(key)),
        )


def _waits(look: MemberLook) -> Iterator[Reason]:
    """Say what it waits for; the first reason that holds hides those that would hold after it."""
    work = [*look.history.rollbacks, *look.history.steps]
    yield from _failures(look)
    yield from _undoing(look.history.rollbacks)
    under_way = [reason for row in work for reason in _under_way(row)]
    yield from under_way
    if under_way:
        return
    row = look.history.member.row
    if row.status is MemberStatus.REMOVED:
        yield Reason(f"it has left: {row.remove_reason or 'no reason is known'}", row.removed_at)
    elif row.status is MemberStatus.FAILED:
        yield Reason("nothing more happens by itself: a person retries it, undoes it or leaves it", is_stuck=True)
    elif look.batch.status not in UNFINISHED_BATCHES:
        yield Reason(f"the batch is {look.batch.status}", look.batch.completed_at)
    else:
        yield from _ahead(look)


def _failures(look: MemberLook) -> Iterator[Reason]:
    names = look.history.phases
    for step in look.steps:
        if step.status in FAILED_STEPS and look.history.member.row.status is MemberStatus.FAILED:
            where = f"{names.get(step.phase_execution_id, '')}/{step.step_name}"
            tried = f"after {step.attempt} attempts" if step.attempt > 1 else "at the first attempt"
            yield Reason(
                f"{where} failed {tried}: {step.error_message or step.error_type or step.status}", step.completed_at
            )
    for rollback in look.history.rollbacks:
        if rollback.status in FAILED_STEPS:
            yield Reason(
                f"{rollback.sequence_name}/{rollback.step_name} was to undo something and failed:"
                f" {rollback.error_message or rollback.error_type or rollback.status}",
                rollback.completed_at,
                is_stuck=True,
            )


def _undoing(rollbacks: Sequence[RollbackRow]) -> Iterator[Reason]:
    if open_ones := [row for row in rollbacks if row.status in OPEN_STEPS]:
        yield Reason(f"what was done is being undone: {open_ones[0].sequence_name}, from", open_ones[0].created_at)


def _under_way(row: ExecutionRow) -> Iterator[Reason]:
    if row.is_in_flight:
        ended = "" if row.status in OPEN_STEPS else ", although the step was cancelled"
        yield Reason(f"the job of {row.step_name} is out at {row.worker_id}{ended}, since", row.dispatched_at)
        yield Reason("it counts as lost if no answer has come by", row.lost_at)
    elif row.status is StepStatus.POLLING:
        yield Reason(
            f"{row.step_name} asks again whether it is done ({row.poll_count} times so far) at", row.poll_due_at
        )
        if row.poll_started_at and row.poll_timeout_sec:
            yield Reason("it gives up at", row.poll_started_at + timedelta(seconds=row.poll_timeout_sec))
    elif row.status is StepStatus.PENDING and row.retry_after:
        tried = f"attempt {row.attempt} of {row.step_name} did not succeed"
        yield Reason(
            f"{tried} ({row.error_message or row.error_type or 'no reason is known'}); it is tried again at",
            row.retry_after,
        )


def _ahead(look: MemberLook) -> Iterator[Reason]:
    """Say what keeps an active member from its next step."""
    opened = [step for step in look.steps if step.status in OPEN_STEPS]
    if opened and opened[0].step_index > 0:
        yield Reason(f"{opened[0].step_name} is sent next")
        return
    if look.batch.is_held:
        yield Reason(
            f"the batch is held: {look.batch.hold_reason or 'it waits for approval'}, since",
            look.batch.held_at,
            is_stuck=True,
        )
    elif look.batch.status is not BatchStatus.ACTIVE:
        yield Reason("the batch has not ended its init; no phase begins before")
    elif opened:
        yield Reason(f"{opened[0].step_name} is sent next")
    elif look.history.member.row.caught_up_at is None and _begun(look):
        yield Reason("it joined late and catches up with the phases that have begun")
    else:
        yield from _not_due(look)


def _not_due(look: MemberLook) -> Iterator[Reason]:
    pending = _pending(look)
    if not pending:
        done = look.history.member.state is MemberState.DONE
        yield Reason("everything is done" if done else "nothing is left to do; it waits for the others of its batch")
    elif pending[0].due_at is None:
        yield Reason(f"{pending[0].phase_name} begins when a person advances the batch", is_stuck=True)
    elif pending[0].due_at <= look.at:
        yield Reason(
            f"{pending[0].phase_name} is due and begins with the next tick of the scheduler; it is due since",
            pending[0].due_at,
        )
    else:
        yield Reason(f"{pending[0].phase_name} is not due before", pending[0].due_at)


def _following(look: MemberLook) -> Iterator[Reason]:
    """Name the steps and phases that are still to come."""
    if look.history.member.row.status is not MemberStatus.ACTIVE or look.batch.status not in UNFINISHED_BATCHES:
        return
    to_come = [step for step in look.steps if step.status is StepStatus.PENDING and not step.retry_after]
    by_phase: dict[int, list[str]] = {}
    for step in to_come:
        by_phase.setdefault(step.phase_execution_id, []).append(step.step_name)
    for phase_id, names in by_phase.items():
        yield Reason(f"{look.history.phases.get(phase_id, '')}: {', '.join(names)}")
    for phase in _pending(look):
        yield Reason(f"{phase.phase_name}, due" if phase.due_at else phase.phase_name, phase.due_at)


def _pending(look: MemberLook) -> list[PhaseRow]:
    pending = [phase for phase in look.phases if phase.status is PhaseStatus.PENDING]
    return sorted(pending, key=lambda phase: phase.order)


def _begun(look: MemberLook) -> bool:
    return any(phase.status is PhaseStatus.DISPATCHED for phase in look.phases)
