"""Steps of rollbacks and removals that failed: work that was to be undone and was not (rule O9).

One that a member or an init has left behind by beginning again is passed by: nobody waits for it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, literal_column, or_, select

from matoolkit.domain.states import FAILED_STEPS, RollbackCause, StepStatus
from matoolkit.store.failures import cause_of, shortened_error_of
from matoolkit.store.schema import batch_members, batches, init_executions, rollback_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any, rows_by_id
from matoolkit.store.sql.transaction import Transaction

_UNDO = rollback_executions.c
_OWN = (
    *("id", "batch_id", "batch_member_id", "cause", "sequence_name", "step_name", "status", "attempt"),
    *("error_type", "error_message", "completed_at"),
)
_ALL = (*(_UNDO[name] for name in _OWN), batches.c.runbook_name, batch_members.c.member_key)


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


@dataclass(frozen=True, slots=True)
class UndoFailureGroup:
    """Undo steps that failed for one cause, and one of the members; there are none for an init."""

    runbook_name: str
    sequence_name: str
    step_name: str
    error_type: str | None
    error: str
    steps: int
    members: int
    example_key: str | None


@dataclass(frozen=True, slots=True)
class UndoCause:
    """Undo steps of a batch that failed for one cause; one of them stands for all."""

    batch_id: int
    runbook_name: str
    sequence_name: str
    step_name: str
    error_type: str | None
    error: str
    steps: int
    members: int
    example_id: int


_IS_FAILED = is_any(_UNDO.status, FAILED_STEPS)
# Whether something could not be undone for a member in its present epoch.
IS_LEFT_BEHIND: ColumnElement[bool] = (
    select(literal_column("1"))
    .where(_UNDO.batch_member_id == batch_members.c.id, _UNDO.epoch == batch_members.c.epoch, _IS_FAILED)
    .correlate(batch_members)
    .exists()
)


def undo_failures_page(
    tx: Transaction, *, batch_id: int | None = None, before: int | None = None, limit: int = 100
) -> list[UndoFailure]:
    """Return one page of failed undo steps, newest first, from before the last id of the page before."""
    query = _of_batch(batch_id, *_ALL)
    if before is not None:
        query = query.where(_UNDO.id < before)
    return tx.rows(UndoFailure, query.order_by(_UNDO.id.desc()).limit(limit))


def undo_failures_of_members(tx: Transaction, member_ids: Collection[int]) -> list[UndoFailure]:
    """Return what could not be undone for members, by id."""
    return rows_by_id(tx, UndoFailure, _of_members(tx, member_ids)) if member_ids else []


@prepared
def _of_members(draft: Drafting, member_ids: Collection[int]) -> Select[Any]:
    return standing_failures(*_ALL).where(among(draft, _UNDO.batch_member_id, member_ids))


def undo_failures_by_cause(tx: Transaction, batch_ids: Collection[int]) -> list[UndoFailureGroup]:
    """Group failed undo steps of batches by step and cause, the largest group first."""
    return tx.rows(UndoFailureGroup, _by_cause(tx, batch_ids)) if batch_ids else []


@prepared
def _by_cause(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    groups = (batches.c.runbook_name, _UNDO.sequence_name, _UNDO.step_name, _UNDO.error_type)
    counted = (
        func.min(shortened_error_of(rollback_executions)).label("error"),
        func.count().label("steps"),
        func.count(_UNDO.batch_member_id.distinct()).label("members"),
        func.min(batch_members.c.member_key).label("example_key"),
    )
    return (
        standing_failures(*groups, *counted)
        .where(among(draft, _UNDO.batch_id, batch_ids))
        .group_by(*groups, cause_of(rollback_executions))
        .order_by(func.count().desc(), func.min(_UNDO.id))
    )


def undo_causes(tx: Transaction, *, batch_id: int | None = None, limit: int = 100) -> list[UndoCause]:
    """Group failed undo steps by batch, step and cause, the newest batch first and its largest group first."""
    groups = (_UNDO.batch_id, batches.c.runbook_name, _UNDO.sequence_name, _UNDO.step_name, _UNDO.error_type)
    counted = (
        func.min(shortened_error_of(rollback_executions)).label("error"),
        func.count().label("steps"),
        func.count(_UNDO.batch_member_id.distinct()).label("members"),
        func.min(_UNDO.id).label("example_id"),
    )
    query = (
        _of_batch(batch_id, *groups, *counted)
        .group_by(*groups, cause_of(rollback_executions))
        .order_by(_UNDO.batch_id.desc(), func.count().desc(), func.min(_UNDO.id))
    )
    return tx.rows(UndoCause, query.limit(limit))


def undo_steps_like(tx: Transaction, example_id: int) -> list[int]:
    """Return the failed undo steps of the same batch that failed at the same step for the same cause, by id."""
    like, cause = rollback_executions.alias("one"), cause_of(rollback_executions)
    same = [_UNDO[name] == like.c[name] for name in ("batch_id", "sequence_name", "step_name")]
    same_type = func.coalesce(_UNDO.error_type, "") == func.coalesce(like.c.error_type, "")
    found = standing_failures(_UNDO.id).where(like.c.id == example_id, *same, same_type, cause == cause_of(like))
    return sorted(tx.values(found))


def count_undo_failures(tx: Transaction, *, batch_id: int | None = None) -> int:
    """Count failed undo steps, of one batch or of all."""
    count: int = tx.values(_of_batch(batch_id, func.count(_UNDO.id)))[0]
    return count


def undo_failure_counts(tx: Transaction) -> list[UndoFailureCount]:
    """Count failed undo steps by runbook."""
    name = batches.c.runbook_name
    query = standing_failures(name, func.count(_UNDO.id).label("count")).group_by(name).order_by(name)
    return tx.rows(UndoFailureCount, query)


def _of_batch(batch_id: int | None, *columns: ColumnElement[Any]) -> Select[Any]:
    query = standing_failures(*columns)
    return query if batch_id is None else query.where(_UNDO.batch_id == batch_id)


def standing_failures(*columns: ColumnElement[Any]) -> Select[Any]:
    """Begin a query for failed undo steps that still stand."""
    # Outer joins, or SQLite would go through all batches first.
    return (
        select(*columns)
        .select_from(rollback_executions)
        .outerjoin(batches, batches.c.id == _UNDO.batch_id)
        .outerjoin(batch_members, batch_members.c.id == _UNDO.batch_member_id)
        .outerjoin(init_executions, init_executions.c.id == _UNDO.init_execution_id)
        .where(
            _IS_FAILED,
            or_(
                batch_members.c.epoch == _UNDO.epoch,
                and_(_UNDO.batch_member_id.is_(None), is_any(init_executions.c.status, FAILED_STEPS)),
            ),
        )
    )
