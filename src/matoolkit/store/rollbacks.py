"""Steps of rollbacks and removals, tracked like any step (rule O9)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from matoolkit.domain.states import FAILED_STEPS, OPEN_STEPS, RollbackCause, StepStatus
from matoolkit.store.executions import NewExecution, RollbackRow, unstarted
from matoolkit.store.noting import note_rollbacks
from matoolkit.store.schema import rollback_executions
from matoolkit.store.sql.statements import (
    among,
    columns_of,
    insert_each,
    is_any,
    records_among,
    rows_by_id,
    select_records,
)
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRollback(NewExecution):
    """A compensating step to be created; its sequence key says what started the sequence."""

    batch_id: int
    runbook_version: int
    cause: RollbackCause
    sequence_name: str
    sequence_key: str
    batch_member_id: int | None = None
    epoch: int | None = None
    step_execution_id: int | None = None
    init_execution_id: int | None = None


def insert_rollbacks(tx: Transaction, new: Sequence[NewRollback], at: datetime) -> list[RollbackRow]:
    """Create compensating steps whose sequence does not have them yet, and return those that were created."""
    if not new:
        return []
    key, returning = ("sequence_key", "step_index"), columns_of(RollbackRow, rollback_executions)
    made = tx.rows(RollbackRow, insert_each(tx, rollback_executions, new, unstarted(at), key, returning))
    note_rollbacks(tx, {one.batch_id for one in made}, {one.batch_member_id for one in made})
    return sorted(made, key=lambda rollback: rollback.id)


def rollbacks_of_members(tx: Transaction, member_ids: Collection[int]) -> list[RollbackRow]:
    """Return the compensating steps of members in all their epochs, by id."""
    column = rollback_executions.c.batch_member_id
    return records_among(tx, RollbackRow, rollback_executions, column, member_ids)


def rollbacks_of_batches(tx: Transaction, batch_ids: Collection[int]) -> list[RollbackRow]:
    """Return the compensating steps of batches, those of init included, by id."""
    column = rollback_executions.c.batch_id
    return records_among(tx, RollbackRow, rollback_executions, column, batch_ids)


def rollbacks_in_sequences(tx: Transaction, keys: Collection[str]) -> list[RollbackRow]:
    """Return the steps of sequences, by id."""
    column = rollback_executions.c.sequence_key
    return records_among(tx, RollbackRow, rollback_executions, column, keys)


def open_rollbacks_of_batches(tx: Transaction, batch_ids: Collection[int]) -> list[RollbackRow]:
    """Return the compensating steps that keep batches from ending (rule O9)."""
    return _in_states(tx, batch_ids, OPEN_STEPS)


def failed_rollbacks_of_batches(tx: Transaction, batch_ids: Collection[int]) -> list[RollbackRow]:
    """Return the compensating steps of batches that failed, by id."""
    return _in_states(tx, batch_ids, FAILED_STEPS)


def _in_states(tx: Transaction, batch_ids: Collection[int], states: Collection[StepStatus]) -> list[RollbackRow]:
    if not batch_ids:
        return []
    query = select_records(RollbackRow, rollback_executions).where(
        among(tx, rollback_executions.c.batch_id, batch_ids), is_any(rollback_executions.c.status, states)
    )
    return rows_by_id(tx, RollbackRow, query)
