"""Sequences that undo a member's or an init's work: created here, run one step at a time (rule O9)."""

from collections.abc import Iterator, Sequence
from typing import Any

from matoolkit.domain.states import RollbackCause
from matoolkit.domain.undoing import Removal, version_that_undoes
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import REMOVAL, definition_of, fields_from_step
from matoolkit.orchestrator.versions import Version
from matoolkit.runbook.model import Step
from matoolkit.store.narrow_executions import InitState, NextStep, StepState
from matoolkit.store.narrow_members import NarrowMember
from matoolkit.store.rollbacks import NewRollback, insert_rollbacks


def undo_steps(agenda: Agenda, failed: Sequence[StepState | NextStep]) -> None:
    """Create the rollbacks of steps that failed for good and have one."""
    new: list[NewRollback] = []
    for state in failed:
        definition = definition_of(agenda, state)
        version, rollback = definition.version, definition.step.on_failure
        new += _sequence(
            agenda,
            version,
            _rollback(version, rollback),
            batch_id=state.batch_id,
            cause=RollbackCause.STEP_FAILED,
            sequence_name=rollback or "",
            # Made of facts and unique: the same failure handled twice creates no second sequence (rule M2).
            sequence_key=f"step-{state.id}-{state.attempt}",
            batch_member_id=state.batch_member_id,
            epoch=state.epoch,
            step_execution_id=state.id,
        )
    insert_rollbacks(agenda.tx, new, agenda.at)


def undo_inits(agenda: Agenda, failed: Sequence[InitState]) -> None:
    """Create the rollbacks of init steps that failed for good and have one."""
    new: list[NewRollback] = []
    for state in failed:
        definition = definition_of(agenda, state)
        version, rollback = definition.version, definition.step.on_failure
        new += _sequence(
            agenda,
            version,
            _rollback(version, rollback),
            batch_id=state.batch_id,
            cause=RollbackCause.INIT_FAILED,
            sequence_name=rollback or "",
            sequence_key=f"init-{state.id}-{agenda.batches[state.batch_id].init_count}",
            init_execution_id=state.id,
        )
    insert_rollbacks(agenda.tx, new, agenda.at)


def undo_membership(agenda: Agenda, removed: Sequence[NarrowMember]) -> None:
    """Create the removal steps of members that left, from the version that the batch follows or a person chose."""
    new: list[NewRollback] = []
    for member in removed:
        batch = agenda.batches[member.batch_id]
        removal = Removal(member.remove_reason, member.undone_at is not None, member.undo_version)
        number = version_that_undoes(removal, batch.status, agenda.version_of(batch.id).number)
        if number is None:
            continue
        version = agenda.version(batch.id, number)
        new += _sequence(
            agenda,
            version,
            version.runbook.on_member_removed,
            batch_id=member.batch_id,
            cause=RollbackCause.MEMBER_REMOVED,
            sequence_name=REMOVAL,
            sequence_key=f"removed-{member.id}-{member.epoch}",
            batch_member_id=member.id,
            epoch=member.epoch,
        )
    insert_rollbacks(agenda.tx, new, agenda.at)


def _sequence(agenda: Agenda, version: Version, steps: Sequence[Step], **origin: Any) -> Iterator[NewRollback]:
    """Make the rows of a sequence; `origin` says what it undoes and why."""
    for index, step in enumerate(steps):
        yield NewRollback(
            runbook_version=version.number, **origin, **fields_from_step(agenda, version.runbook, step, index)
        )


def _rollback(version: Version, name: str | None) -> Sequence[Step]:
    return (version.runbook.rollback(name) or ()) if name is not None else ()
