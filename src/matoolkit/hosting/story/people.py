"""What happened to members between two looks: who came, went, moved on, failed, and what was undone."""

from collections.abc import Iterator
from datetime import timedelta

from matoolkit.domain.states import FAILED_STEPS, MOVED, MemberStatus, PhaseStatus, StepStatus
from matoolkit.duration import format_duration
from matoolkit.hosting.story.lines import Line, Mark
from matoolkit.hosting.story.look import Comparison, Look
from matoolkit.store.executions import ExecutionRow, RollbackRow, StepRow
from matoolkit.store.members import MemberRow

_LEFT_OUT = frozenset({PhaseStatus.SUPERSEDED, PhaseStatus.CANCELLED})


def members_told(looks: Comparison) -> Iterator[Line]:
    """Tell of members that joined late, came back, left, or are through."""
    for member in looks.after.members.values():
        known, key, batch = looks.before.members.get(member.id), member.member_key, member.batch_id
        if known is None and batch in looks.before.batches:
            yield looks.line(member.added_at, Mark.JOINED, f"{key} late, and catches up", batch)
        elif known and member.epoch > known.epoch:
            yield looks.line(member.added_at, Mark.JOINED, f"{key} again, and starts all over", batch)
        if member.status is MemberStatus.REMOVED and (known is None or known.status is not member.status):
            why = "it has another time now" if member.remove_reason == MOVED else member.remove_reason
            yield looks.line(member.removed_at, Mark.LEFT, f"{key}: {why}", batch)
        if is_through(looks.after, member) and not (known and is_through(looks.before, known)):
            ends = [step.completed_at for step in looks.after.steps_of(member) if step.completed_at]
            yield looks.line(max(ends, default=None), Mark.MIGRATED, key, batch)


def steps_told(looks: Comparison) -> Iterator[Line]:
    """Tell of steps that were done, those of one member and phase together, and of steps that were not."""
    done: dict[tuple[int, int], list[StepRow]] = {}
    for step in looks.after.steps.values():
        known = looks.before.steps.get(step.id)
        if step.status is StepStatus.SUCCEEDED and (known is None or known.status is not step.status):
            done.setdefault((step.batch_member_id, step.phase_execution_id), []).append(step)
        yield from _trouble(looks, step, known, f"{_key(looks, step)} {step.step_name}")
    for steps in done.values():
        names = ", ".join(step.step_name for step in sorted(steps, key=lambda step: step.step_index))
        at = max((step.completed_at for step in steps if step.completed_at), default=None)
        yield looks.line(at, Mark.DONE, f"{_key(looks, steps[0])} {names}", steps[0].batch_id)


def rollbacks_told(looks: Comparison) -> Iterator[Line]:
    """Tell of what was undone."""
    for step in looks.after.rollbacks.values():
        known = looks.before.rollbacks.get(step.id)
        said = f"{_key(looks, step)} {step.step_name} ({step.sequence_name})"
        if step.status is StepStatus.SUCCEEDED and (known is None or known.status is not step.status):
            yield looks.line(step.completed_at, Mark.UNDONE, said, step.batch_id)
        yield from _trouble(looks, step, known, said)


def is_through(look: Look, member: MemberRow) -> bool:
    """Whether a member has done all that its batch will ever ask of it."""
    phases = [phase for phase in look.phases_of(member.batch_id) if phase.status not in _LEFT_OUT]
    if member.status is not MemberStatus.ACTIVE or member.caught_up_at is None:
        return False
    if any(phase.status is PhaseStatus.PENDING or _is_unexpanded(phase.status, phase.expanded_at) for phase in phases):
        return False
    steps = look.steps_of(member)
    return bool(steps) and all(step.status is StepStatus.SUCCEEDED for step in steps)


def _is_unexpanded(status: PhaseStatus, expanded_at: object) -> bool:
    return status is PhaseStatus.DISPATCHED and expanded_at is None


def _trouble(looks: Comparison, step: ExecutionRow, known: ExecutionRow | None, said: str) -> Iterator[Line]:
    if step.status in FAILED_STEPS and (known is None or known.status is not step.status):
        yield looks.line(step.completed_at, Mark.FAILED, f"{said}: {step.error_message}", step.batch_id)
    elif step.retry_after and step.retry_after != (known.retry_after if known else None):
        wait = format_duration(timedelta(seconds=step.retry_interval_sec or 0))
        text = f"{said} in {wait}: {step.error_message}"
        yield looks.line(step.answered_at, Mark.AGAIN, text, step.batch_id)
    elif step.poll_started_at and step.status is StepStatus.POLLING and not (known and known.poll_started_at):
        every = format_duration(timedelta(seconds=step.poll_interval_sec or 0))
        yield looks.line(step.poll_started_at, Mark.WAITS, f"{said}, every {every}", step.batch_id)


def _key(looks: Comparison, step: StepRow | RollbackRow) -> str:
    member = looks.after.members.get(step.batch_member_id) if step.batch_member_id else None
    return member.member_key if member else "init"
