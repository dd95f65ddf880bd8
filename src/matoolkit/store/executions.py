"""Executed work of the three kinds: its records, and what the sweeps look for."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, Table, and_, or_, select

from matoolkit.domain.states import RollbackCause, StepStatus
from matoolkit.ids import Kind
from matoolkit.store.gates import keeps_jobs_of
from matoolkit.store.schema import init_executions, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import among, is_any, records_among
from matoolkit.store.sql.transaction import Transaction

TABLES: dict[Kind, Table] = {
    Kind.STEP: step_executions,
    Kind.INIT: init_executions,
    Kind.ROLLBACK: rollback_executions,
}


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """What all executed work has."""

    id: int
    batch_id: int
    step_name: str
    step_index: int
    worker_id: str
    function_name: str | None
    params_json: str | None
    status: StepStatus
    attempt: int
    job_id: str | None
    result_json: str | None
    error_type: str | None
    error_message: str | None
    missing_outputs_json: str | None
    dispatched_at: datetime | None
    completed_at: datetime | None
    timeout_sec: int
    answered_at: datetime | None
    lost_at: datetime | None
    is_poll_step: bool
    poll_interval_sec: int | None
    poll_timeout_sec: int | None
    poll_started_at: datetime | None
    last_polled_at: datetime | None
    poll_due_at: datetime | None
    poll_count: int
    on_failure: str | None
    retry_count: int
    max_retries: int
    retry_interval_sec: int | None
    retry_after: datetime | None
    throttled_since: datetime | None
    created_at: datetime

    @property
    def is_in_flight(self) -> bool:
        """Whether a job is out whose answer may still come, even if the step itself was cancelled."""
        return self.lost_at is not None


@dataclass(frozen=True, slots=True)
class StepRow(ExecutionRow):
    """A step of a member."""

    phase_execution_id: int
    batch_member_id: int
    epoch: int
    holds_place: bool | None


@dataclass(frozen=True, slots=True)
class InitRow(ExecutionRow):
    """A step of a batch's init."""

    runbook_version: int


@dataclass(frozen=True, slots=True)
class RollbackRow(ExecutionRow):
    """A step of a rollback, or of what runs when a member is removed."""

    batch_member_id: int | None
    epoch: int | None
    runbook_version: int
    cause: RollbackCause
    step_execution_id: int | None
    init_execution_id: int | None
    sequence_name: str
    sequence_key: str


@dataclass(frozen=True, slots=True)
class Overdue:
    """Work of any kind that a sweep has to wake."""

    kind: Kind
    id: int
    batch_id: int
    attempt: int
    status: StepStatus
    due_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExecution:
    """What a new execution of any kind takes from its step of the runbook."""

    step_name: str
    step_index: int
    worker_id: str
    timeout_sec: int
    is_poll_step: bool = False
    poll_interval_sec: int | None = None
    poll_timeout_sec: int | None = None
    on_failure: str | None = None
    max_retries: int = 0
    retry_interval_sec: int | None = None


def unstarted(at: datetime) -> dict[str, Any]:
    """Return what new work of any kind begins with."""
    return {"status": StepStatus.PENDING, "attempt": 0, "poll_count": 0, "retry_count": 0, "created_at": at}


def steps_by_id(tx: Transaction, ids: Collection[int]) -> list[StepRow]:
    """Return steps of members, by id."""
    return records_among(tx, StepRow, step_executions, step_executions.c.id, ids)


def inits_by_id(tx: Transaction, ids: Collection[int]) -> list[InitRow]:
    """Return steps of init, by id."""
    return records_among(tx, InitRow, init_executions, init_executions.c.id, ids)


def rollbacks_by_id(tx: Transaction, ids: Collection[int]) -> list[RollbackRow]:
    """Return steps of rollbacks, by id."""
    return records_among(tx, RollbackRow, rollback_executions, rollback_executions.c.id, ids)


def polls_due(
    tx: Transaction,
    kind: Kind,
    at: datetime,
    *,
    kept: Collection[int] = (),
    after: Overdue | None = None,
    limit: int = 1000,
) -> list[Overdue]:
    """Return a slice of the work that polls and whose interval has passed, longest overdue first (T9, G6).

    The work of the phases in `kept` is left out, as is what stored gates keep.
    """
    table = TABLES[kind]
    polls = is_any(table.c.status, {StepStatus.POLLING})
    return _slice(tx, kind, table.c.poll_due_at, polls, at, after, limit, stops_at_gates=True, kept=kept)


def retries_due(
    tx: Transaction,
    kind: Kind,
    at: datetime,
    *,
    kept: Collection[int] = (),
    after: Overdue | None = None,
    limit: int = 1000,
) -> list[Overdue]:
    """Return a slice of the work whose retry is due, longest overdue first; `kept` as for polls (T9, G6)."""
    table = TABLES[kind]
    waits = is_any(table.c.status, {StepStatus.PENDING})
    return _slice(tx, kind, table.c.retry_after, waits, at, after, limit, stops_at_gates=True, kept=kept)


def lost_jobs(
    tx: Transaction, kind: Kind, at: datetime, *, after: Overdue | None = None, limit: int = 1000
) -> list[Overdue]:
    """Return a slice of the work whose job has been out for too long, longest overdue first (rule O16)."""
    table = TABLES[kind]
    return _slice(tx, kind, table.c.lost_at, _is_out(table), at, after, limit)


@cache
def _is_out(table: Table) -> ColumnElement[bool]:
    return table.c.lost_at.is_not(None)


def _slice(
    tx: Transaction,
    kind: Kind,
    due: Column[Any],
    guard: ColumnElement[bool],
    at: datetime,
    after: Overdue | None,
    limit: int,
    *,
    stops_at_gates: bool = False,
    kept: Collection[int] = (),
) -> list[Overdue]:
    last = Named() if after is None else Named(due_at=after.due_at, id=after.id)
    # Only steps of members are of a phase.
    without = Named(phase_execution_id=kept) if kept and kind is Kind.STEP else Named()
    table = TABLES[kind]
    query = _overdue(
        tx, at, last, without, table=table, due=due, guard=guard, limit=limit, stops_at_gates=stops_at_gates
    )
    return tx.rows(Overdue, query, kind=kind)


@prepared
def _overdue(
    draft: Drafting,
    at: datetime,
    after: Named,
    without: Named,
    *,
    table: Table,
    due: Column[Any],
    guard: ColumnElement[bool],
    limit: int,
    stops_at_gates: bool,
) -> Select[Any]:
    query = select(table.c.id, table.c.batch_id, table.c.attempt, table.c.status, due.label("due_at")).where(
        guard, due <= at
    )
    if stops_at_gates:
        query = query.where(~keeps_jobs_of(table, at))
    query = query.where(*(~among(draft, table.c[name], values) for name, values in without.items()))
    if after:
        query = query.where(or_(due > after["due_at"], and_(due == after["due_at"], table.c.id > after["id"])))
    return query.order_by(due, table.c.id).limit(limit)
