"""Steps of rollbacks and removals that failed: work that was to be undone and was not (rule O9).

One that a member or an init has left behind by beginning again is passed by: nobody waits for it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from matoolkit.domain.states import FAILED_STEPS, RollbackCause, StepStatus
from matoolkit.store.schema import batch_members, batches, init_executions, rollback_executions
from matoolkit.store.sql.statements import is_any
from matoolkit.store.sql.transaction import Transaction

_UNDO = rollback_executions.c
_OWN = (
    *("id", "batch_id", "batch_member_id", "cause", "sequence_name", "step_name", "status", "attempt"),
    *("error_type", "error_message", "completed_at"),
)


@dataclass(frozen=True, slots=True)
class UndoFailure:
    """A step that was to undo something and failed; the member is empty for an init."""

    id: int
    batch_id: int
    runbook_name: str
    batch_member_id: int | None
    member_key: str | None
    cause: RollbackCause
    sequence_name: str
    step_name: str
    status: StepStatus
    attempt: int
    error_type: str | None
    error_message: str | None
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class UndoFailureCount:
    """How many steps that were to undo something have failed in a runbook's batches."""

    runbook_name: str
    count: int


def undo_failures_page(
    tx: Transaction, *, batch_id: int | None = None, before: int | None = None, limit: int = 100
) -> list[UndoFailure]:
    """Return one page of failed undo steps, newest first, from before the last id of the page before."""
    columns = (*(_UNDO[name] for name in _OWN), batches.c.runbook_name, batch_members.c.member_key)
    query = _standing(batch_id, *columns)
    if before is not None:
        query = query.where(_UNDO.id < before)
    return tx.rows(UndoFailure, query.order_by(_UNDO.id.desc()).limit(limit))


def count_undo_failures(tx: Transaction, *, batch_id: int | None = None) -> int:
    """Count failed undo steps, of one batch or of all."""
    count: int = tx.values(_standing(batch_id, func.count(_UNDO.id)))[0]
    return count


def undo_failure_counts(tx: Transaction) -> list[UndoFailureCount]:
    """Count failed undo steps by runbook."""
    name = batches.c.runbook_name
    query = _standing(None, name, func.count(_UNDO.id).label("count")).group_by(name).order_by(name)
    return tx.rows(UndoFailureCount, query)


def _standing(batch_id: int | None, *columns: ColumnElement[Any]) -> Select[Any]:
    # Outer joins, or SQLite would go through all batches first.
    query = (
        select(*columns)
        .select_from(rollback_executions)
        .outerjoin(batches, batches.c.id == _UNDO.batch_id)
        .outerjoin(batch_members, batch_members.c.id == _UNDO.batch_member_id)
        .outerjoin(init_executions, init_executions.c.id == _UNDO.init_execution_id)
        .where(
            is_any(_UNDO.status, FAILED_STEPS),
            or_(
                batch_members.c.epoch == _UNDO.epoch,
                and_(_UNDO.batch_member_id.is_(None), is_any(init_executions.c.status, FAILED_STEPS)),
            ),
        )
    )
    return query if batch_id is None else query.where(_UNDO.batch_id == batch_id)
