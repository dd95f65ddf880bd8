"""Failures by what they have in common: the unit in which people act on them."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, func, literal_column, select

from matoolkit.domain.states import FAILED_STEPS, UNFINISHED_BATCHES
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.sql.statements import is_any
from matoolkit.store.sql.transaction import Transaction

ERROR_GROUP_LENGTH = 200


def shortened_error_of(work: FromClause) -> ColumnElement[Any]:
    """Return the beginning of the error with which work failed."""
    # Numbers are written out: two parameters with the same value are not the same expression to GROUP BY.
    text = func.coalesce(work.c.error_message, literal_column("''"))
    return func.substring(text, literal_column("1"), literal_column(str(ERROR_GROUP_LENGTH)))


def cause_of(work: FromClause) -> ColumnElement[Any]:
    """Return what failures with one cause have in common: a fingerprint; older ones have only their text."""
    return func.coalesce(work.c.error_fingerprint, shortened_error_of(work))


shortened_error = shortened_error_of(step_executions)
cause_of_error = cause_of(step_executions)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Steps of a batch that failed in the same way: the unit in which people act on failures.

    `error` is the text of one of them. Failures of before fingerprints were kept have their text for a fingerprint.
    """

    phase_name: str
    step_name: str
    error_type: str | None
    error: str
    fingerprint: str
    steps: int
    members: int
    example_step_id: int


@dataclass(frozen=True, slots=True)
class OpenFailures:
    """Members of unfinished batches of a runbook that failed in the same way; old failures have no fingerprint."""

    runbook_name: str
    step_name: str
    error_type: str | None
    fingerprint: str | None
    members: int


def failures_by_error(tx: Transaction, batch_id: int) -> list[FailureGroup]:
    """Group the failed steps of a batch by phase, step and cause, the largest group first.

    What a member failed at before it started all over is left out.
    """
    groups = (phase_executions.c.phase_name, step_executions.c.step_name, step_executions.c.error_type)
    query = (
        _failures(
            batch_id,
            *groups,
            func.min(shortened_error).label("error"),
            cause_of_error.label("fingerprint"),
            func.count().label("steps"),
            func.count(step_executions.c.batch_member_id.distinct()).label("members"),
            func.min(step_executions.c.id).label("example_step_id"),
        )
        .group_by(*groups, cause_of_error)
        .order_by(func.count().desc(), func.min(step_executions.c.id))
    )
    return tx.rows(FailureGroup, query)


def members_that_failed(
    tx: Transaction,
    batch_id: int,
    *,
    phase_name: str | None = None,
    step_name: str | None = None,
    error: str | None = None,
    fingerprint: str | None = None,
) -> list[int]:
    """Return the members of a batch that failed, at a step, with an error or like others if that is given, by id."""
    query = _failures(batch_id, step_executions.c.batch_member_id)
    if phase_name is not None:
        query = query.where(phase_executions.c.phase_name == phase_name)
    if step_name is not None:
        query = query.where(step_executions.c.step_name == step_name)
    if error is not None:
        query = query.where(shortened_error == error)
    if fingerprint is not None:
        query = query.where(cause_of_error == fingerprint)
    return sorted(set(tx.values(query)))


def _failures(batch_id: int, *columns: ColumnElement[Any]) -> Select[Any]:
    return _failed_steps(*columns).where(phase_executions.c.batch_id == batch_id)


def _failed_steps(*columns: ColumnElement[Any]) -> Select[Any]:
    """Begin a query for the steps at which members failed in their present epoch."""
    present = and_(
        batch_members.c.id == step_executions.c.batch_member_id,
        batch_members.c.epoch == step_executions.c.epoch,
    )
    failed = is_any(step_executions.c.status, FAILED_STEPS)
    return (
        select(*columns)
        .select_from(step_executions)
        .join(phase_executions, phase_executions.c.id == step_executions.c.phase_execution_id)
        .join(batch_members, present)
        .where(failed)
    )


def open_failures(tx: Transaction, limit: int = 100) -> list[OpenFailures]:
    """Count the failed steps of unfinished batches by runbook, step and cause, the largest group first."""
    groups = (
        batches.c.runbook_name,
        step_executions.c.step_name,
        step_executions.c.error_type,
        step_executions.c.error_fingerprint.label("fingerprint"),
    )
    counted = func.count(step_executions.c.batch_member_id.distinct())
    query = (
        _failed_steps(*groups, counted.label("members"))
        .join(batches, batches.c.id == phase_executions.c.batch_id)
        .where(is_any(batches.c.status, UNFINISHED_BATCHES))
        .group_by(*groups)
        .order_by(counted.desc(), *groups)
    )
    return tx.rows(OpenFailures, query.limit(limit))
