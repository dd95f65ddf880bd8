"""What failed of a member, so that it goes no further by itself, and what a person can do about it (rule X2)."""

from collections.abc import Iterator

from matoolkit.admin.scene import Scene
from matoolkit.domain.states import FAILED_STEPS, MemberStatus
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.store import Transaction
from matoolkit.store.executions import ExecutionRow
from matoolkit.store.members import MemberRow
from matoolkit.store.rollbacks import rollbacks_of_members
from matoolkit.store.steps import steps_of_members


def failures_of(tx: Transaction, scene: Scene, member: MemberRow) -> list[Why]:
    """Say what of a member has failed: what ended its way through its batch, and what was to undo something."""
    return [*_failed_steps(tx, scene, member), *_failed_rollbacks(tx, member)]


def _failed_steps(tx: Transaction, scene: Scene, member: MemberRow) -> Iterator[Why]:
    if member.status is not MemberStatus.FAILED:
        return
    names = {phase.id: phase.phase_name for phase in scene.phases[member.batch_id]}
    for step in steps_of_members(tx, [member.id]):
        if step.epoch == member.epoch and step.status in FAILED_STEPS:
            where = f"{names.get(step.phase_execution_id, '')}/{step.step_name}"
            tried = f"after {step.attempt} attempts" if step.attempt > 1 else "at the first attempt"
            yield Why(WhyKind.ENDED, f"{where} failed {tried}: {_error(step)}", step.completed_at)


def _failed_rollbacks(tx: Transaction, member: MemberRow) -> Iterator[Why]:
    command = f"matoolkit undo-failure list --batch {member.batch_id}"
    for row in rollbacks_of_members(tx, [member.id]):
        if row.status in FAILED_STEPS:
            told = f"{row.sequence_name}/{row.step_name} was to undo something and failed: {_error(row)}"
            yield Why(WhyKind.UNDO, told, row.completed_at, None, EndedBy.PERSON, "Operator", command)


def _error(row: ExecutionRow) -> str:
    return row.error_message or row.error_type or row.status
