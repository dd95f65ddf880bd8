"""What waits for a person, as counts by batch and cause; no query returns members, and each is cut."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, true

from matoolkit.domain.states import (
    FAILED_STEPS,
    UNFINISHED_BATCHES,
    BatchStatus,
    DeadLetterStatus,
    MemberStatus,
    PhaseStatus,
)
from matoolkit.store.failures import cause_of_error, shortened_error, shortened_error_of
from matoolkit.store.gates import is_standing, keeps_phases_of_batch
from matoolkit.store.schema import (
    batch_members,
    batches,
    dead_letters,
    gates,
    init_executions,
    phase_executions,
    rollback_executions,
    runbooks,
    step_executions,
)
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import is_any, select_records
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.undofailures import standing_failures

# Groups of failures that are read at once; people act on the largest.
_MOST_GROUPS = 200
_MOST_PHASES = 1000


@dataclass(frozen=True, slots=True)
class HeldBatch:
    """A batch that waits for a person's approval."""

    id: int
    runbook_name: str
    batch_start_time: datetime | None
    held_at: datetime
    hold_reason: str | None


@dataclass(frozen=True, slots=True)
class PendingPhase:
    """A phase that has not begun."""

    batch_id: int
    runbook_name: str
    batch_start_time: datetime | None
    phase_id: int
    phase_name: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class BatchFailure:
    """Members of a batch that failed in one way, or an init that did; `error` is the text of one of them."""

    batch_id: int
    runbook_name: str
    batch_start_time: datetime | None
    place: str
    step_name: str
    error: str
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Open dead letters of one kind that one subscription could not handle."""

    subscription: str
    message_type: str
    count: int
    first_at: datetime
    reason: str
    deliveries: int


@dataclass(frozen=True, slots=True)
class FailingRunbook:
    """An active version whose last tick failed; `read_at` is when its source was last read."""

    name: str
    last_error: str
    last_error_at: datetime | None
    read_at: datetime | None


def waiting_holds(tx: Transaction) -> list[HeldBatch]:
    """Return the batches whose hold nobody has approved yet, longest held first."""
    return tx.rows(HeldBatch, _holds(tx))


@prepared
def _holds(_draft: Drafting) -> Select[Any]:
    named = (batches.c.id, batches.c.runbook_name, batches.c.batch_start_time)
    query = select(*named, gates.c.shut_from.label("held_at"), gates.c.reason.label("hold_reason"))
    mine = query.join(gates, gates.c.batch_id == batches.c.id)
    return mine.where(*is_standing(gates), gates.c.approved_at.is_(None)).order_by(gates.c.shut_from, batches.c.id)


def overdue_phases(tx: Transaction, due_before: datetime, at: datetime) -> list[PendingPhase]:
    """Return phases that have been due since before a time and that no gate keeps now, longest overdue first."""
    return tx.rows(PendingPhase, _overdue(tx, due_before, at))


@prepared
def _overdue(_draft: Drafting, due_before: datetime, at: datetime) -> Select[Any]:
    query = _pending(at).where(phase_executions.c.due_at <= due_before)
    return query.order_by(phase_executions.c.due_at, phase_executions.c.id).limit(_MOST_PHASES)


def next_phase(tx: Transaction, after: datetime) -> PendingPhase | None:
    """Return the phase that is due next."""
    return next(iter(tx.rows(PendingPhase, _next(tx, after))), None)


@prepared
def _next(_draft: Drafting, after: datetime) -> Select[Any]:
    query = _pending(after).where(phase_executions.c.due_at > after)
    return query.order_by(phase_executions.c.due_at, phase_executions.c.id).limit(1)


def _pending(at: Any) -> Select[Any]:
    """Begin a query for phases that begin as soon as they are due."""
    named, phase = (
        (batches.c.id.label("batch_id"), batches.c.runbook_name, batches.c.batch_start_time),
        phase_executions.c,
    )
    return (
        select(*named, phase.id.label("phase_id"), phase.phase_name, phase.due_at)
        .join(phase_executions, phase_executions.c.batch_id == batches.c.id)
        .where(
            is_any(phase_executions.c.status, {PhaseStatus.PENDING}),
            is_any(batches.c.status, {BatchStatus.ACTIVE}),
            ~keeps_phases_of_batch(at),
        )
    )


def failures_of_members(tx: Transaction, ended_after: datetime) -> list[BatchFailure]:
    """Group members that have failed by batch and cause, in batches that go on or ended after a time."""
    return tx.rows(BatchFailure, _of_members(tx, ended_after))


@prepared
def _of_members(_draft: Drafting, ended_after: datetime) -> Select[Any]:
    step = step_executions.c
    groups = (
        *(batches.c.id, batches.c.runbook_name, batches.c.batch_start_time),
        *(phase_executions.c.phase_name, step.step_name),
    )
    present = and_(batch_members.c.id == step.batch_member_id, batch_members.c.epoch == step.epoch)
    members = func.count(step.batch_member_id.distinct())
    query = (
        select(
            groups[0].label("batch_id"),
            *groups[1:3],
            groups[3].label("place"),
            groups[4],
            func.min(shortened_error).label("error"),
            members.label("count"),
            func.min(step.completed_at).label("first_at"),
            func.max(step.completed_at).label("last_at"),
        )
        .select_from(batches)
        .join(phase_executions, phase_executions.c.batch_id == batches.c.id)
        .join(step_executions, step.phase_execution_id == phase_executions.c.id)
        .join(batch_members, present)
        .where(
            _still_matters(ended_after),
            is_any(step.status, FAILED_STEPS),
            is_any(batch_members.c.status, {MemberStatus.FAILED}),
        )
        .group_by(*groups, cause_of_error)
        .order_by(members.desc(), groups[0], func.min(step.id))
    )
    return query.limit(_MOST_GROUPS)


def failures_of_inits(tx: Transaction, ended_after: datetime) -> list[BatchFailure]:
    """Return the inits that have failed, by batch and step, in batches that go on or ended after a time."""
    return tx.rows(BatchFailure, _of_inits(tx, ended_after))


@prepared
def _of_inits(_draft: Drafting, ended_after: datetime) -> Select[Any]:
    step = init_executions.c
    query = (
        select(
            *(batches.c.id.label("batch_id"), batches.c.runbook_name, batches.c.batch_start_time),
            step.step_name.label("place"),
            step.step_name,
            shortened_error_of(init_executions).label("error"),
            step.attempt.label("count"),
            step.completed_at.label("first_at"),
            step.completed_at.label("last_at"),
        )
        .join(batches, batches.c.id == step.batch_id)
        .where(is_any(step.status, FAILED_STEPS), _still_matters(ended_after), step.init_count == batches.c.init_count)
        .order_by(step.completed_at, step.id)
    )
    return query.limit(_MOST_GROUPS)


def failures_of_undo(tx: Transaction) -> list[BatchFailure]:
    """Group the undo steps that have failed by batch, sequence and step, most first."""
    return tx.rows(BatchFailure, _of_undo(tx))


@prepared
def _of_undo(_draft: Drafting) -> Select[Any]:
    step = rollback_executions.c
    groups = (
        *(step.batch_id, batches.c.runbook_name, batches.c.batch_start_time),
        *(step.sequence_name.label("place"), step.step_name),
    )
    counted = (
        func.min(shortened_error_of(rollback_executions)).label("error"),
        func.count().label("count"),
        func.min(step.completed_at).label("first_at"),
        func.max(step.completed_at).label("last_at"),
    )
    query = standing_failures(*groups, *counted).group_by(*groups).order_by(func.count().desc(), step.batch_id)
    return query.limit(_MOST_GROUPS)


def failing_runbooks(tx: Transaction) -> list[FailingRunbook]:
    """Return the runbooks whose last tick failed, by name."""
    return tx.rows(FailingRunbook, _failing(tx))


@prepared
def _failing(_draft: Drafting) -> Select[Any]:
    mine = runbooks.c
    failed = select_records(FailingRunbook, runbooks).where(mine.is_active == true(), mine.last_error.is_not(None))
    return failed.order_by(mine.name_key)


def open_letters(tx: Transaction) -> list[LetterGroup]:
    """Group open dead letters by who could not handle them and what they are, the oldest first."""
    return tx.rows(LetterGroup, _letters(tx))


@prepared
def _letters(_draft: Drafting) -> Select[Any]:
    letter = dead_letters.c
    groups = (letter.subscription, letter.message_type)
    query = (
        select(
            *groups,
            func.count().label("count"),
            func.min(letter.dead_lettered_at).label("first_at"),
            func.min(letter.reason).label("reason"),
            func.max(letter.delivery_count).label("deliveries"),
        )
        .where(is_any(letter.status, {DeadLetterStatus.OPEN}))
        .group_by(*groups)
        .order_by(func.min(letter.dead_lettered_at), *groups)
    )
    return query.limit(_MOST_GROUPS)


def _still_matters(ended_after: datetime) -> ColumnElement[bool]:
    goes_on = is_any(batches.c.status, UNFINISHED_BATCHES)
    ended = is_any(batches.c.status, {BatchStatus.COMPLETED, BatchStatus.FAILED})
    return or_(goes_on, and_(ended, batches.c.completed_at >= ended_after))
