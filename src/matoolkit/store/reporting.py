"""What a report says of people: where they are, and what they did last; counts of it for whole batches (rule U1).

A page of people takes three statements, however many batches they are in.
"""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, case, func, literal_column, or_, select

from matoolkit.domain.keys import folded
from matoolkit.domain.states import FAILED_STEPS, MemberState, MemberStatus, StepStatus
from matoolkit.records import record
from matoolkit.store.batches import BatchRow, select_batches
from matoolkit.store.failures import cause_of_error, shortened_error
from matoolkit.store.memberstates import STATE, is_in_state
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, contains, is_any, rows_by_id
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.undofailures import IS_LEFT_BEHIND


@dataclass(frozen=True, slots=True)
class ReportFilter:
    """Whom a report is about: the members of a batch, of a runbook's batches, or everybody; and which of them."""

    batch_id: int | None = None
    runbook_name: str | None = None
    state: MemberState | None = None
    key_part: str | None = None
    error_part: str | None = None
    only_not_undone: bool = False


@record
class TriedStep:
    """A step that was tried for a member."""

    id: int
    phase_name: str
    step_name: str
    status: StepStatus
    attempt: int
    error_type: str | None
    error_message: str | None
    dispatched_at: datetime | None
    completed_at: datetime | None


@record
class ReportRow:
    """A member, its batch and its state, and the number of the last step that was tried for it."""

    id: int
    batch_id: int
    runbook_name: str
    batch_start_time: datetime | None
    member_key: str
    data_json: str
    state: MemberState
    added_at: datetime
    failed_at: datetime | None
    removed_at: datetime | None
    last_step_id: int | None


@record
class PhaseTally:
    """How many members of a batch have steps in a phase, are through with it, or failed in it."""

    phase_execution_id: int
    members: int
    completed: int
    failed: int


@record
class Beginners:
    """How many members of a batch left out the first phases of a version, because they had completed them before."""

    batch_id: int
    first_phase_version: int
    first_phase_place: int
    members: int


@record
class FailedPeople:
    """Members that failed at the same step with the same error, and one of them."""

    runbook_name: str
    phase_name: str
    step_name: str
    error_type: str | None
    error: str
    members: int
    example_key: str


_MEMBER = ("id", "batch_id", "member_key", "data_json", "added_at", "failed_at", "removed_at")
_IS_PRESENT = is_any(batch_members.c.status, {MemberStatus.ACTIVE, MemberStatus.FAILED})
# The state looks at `batches` too, for itself.
_owner = batches.alias("owner")
_tried = step_executions.alias("tried")
_LAST_STEP = (
    select(func.max(_tried.c.id))
    .where(
        _tried.c.batch_member_id == batch_members.c.id,
        _tried.c.epoch == batch_members.c.epoch,
        or_(_tried.c.attempt > literal_column("0"), is_any(_tried.c.status, FAILED_STEPS)),
    )
    .correlate(batch_members)
    .scalar_subquery()
)


def report_page(tx: Transaction, wanted: ReportFilter, *, after: int = 0, limit: int = 100) -> list[ReportRow]:
    """Return one page of people by batch and number, from after the last number of the page before."""
    columns = [batch_members.c[name] for name in _MEMBER]
    started = (_owner.c.runbook_name, _owner.c.batch_start_time)
    people = select(*columns, *started, STATE.label("state"), _LAST_STEP.label("last_step_id"))
    people = people.join(_owner, _owner.c.id == batch_members.c.batch_id).where(*_conditions(wanted))
    if after:
        last = batch_members.alias("last")
        place = select(last.c.batch_id).where(last.c.id == after).scalar_subquery()
        batch_id = batch_members.c.batch_id
        people = people.where(batch_id >= place, or_(batch_id > place, batch_members.c.id > after))
    return tx.rows(ReportRow, people.order_by(batch_members.c.batch_id, batch_members.c.id).limit(limit))


def tried_steps(tx: Transaction, ids: Collection[int]) -> dict[int, TriedStep]:
    """Return steps with the names of their phases by their numbers."""
    return {step.id: step for step in tx.rows(TriedStep, _tried_steps(tx, ids))} if ids else {}


@prepared
def _tried_steps(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    names = [field.name for field in fields(TriedStep) if field.name != "phase_name"]
    query = select(*(step_executions.c[name] for name in names), phase_executions.c.phase_name)
    return query.join(phase_executions, phase_executions.c.id == step_executions.c.phase_execution_id).where(
        among(draft, step_executions.c.id, ids)
    )


def count_report(tx: Transaction, wanted: ReportFilter) -> int:
    """Count the people of a report."""
    query = select(func.count()).select_from(batch_members).join(_owner, _owner.c.id == batch_members.c.batch_id)
    count: int = tx.values(query.where(*_conditions(wanted)))[0]
    return count


def batches_of_report(tx: Transaction, wanted: ReportFilter) -> list[BatchRow]:
    """Return the batches that a report is about, by number."""
    return rows_by_id(tx, BatchRow, select_batches().where(*_scope(wanted, batches)))


def phase_tallies(tx: Transaction, phase_ids: Collection[int]) -> list[PhaseTally]:
    """Count for phases who is through with them, without those who left and without what was done in earlier epochs."""
    return tx.rows(PhaseTally, _tallies(tx, phase_ids)) if phase_ids else []


@prepared
def _tallies(draft: Drafting, phase_ids: Collection[int]) -> Select[Any]:
    phase, status = step_executions.c.phase_execution_id, step_executions.c.status
    of_member = (
        select(
            phase,
            func.min(case((is_any(status, {StepStatus.SUCCEEDED}), 1), else_=0)).label("completed"),
            func.max(case((is_any(status, FAILED_STEPS), 1), else_=0)).label("failed"),
        )
        .join(batch_members, batch_members.c.id == step_executions.c.batch_member_id)
        .where(among(draft, phase, phase_ids), step_executions.c.epoch == batch_members.c.epoch, _IS_PRESENT)
        .group_by(phase, step_executions.c.batch_member_id)
        .subquery()
    )
    return select(
        of_member.c.phase_execution_id,
        func.count().label("members"),
        func.sum(of_member.c.completed).label("completed"),
        func.sum(of_member.c.failed).label("failed"),
    ).group_by(of_member.c.phase_execution_id)


def beginners(tx: Transaction, batch_ids: Collection[int]) -> list[Beginners]:
    """Count who left out the first phases of a version (rule O14)."""
    return tx.rows(Beginners, _beginners(tx, batch_ids)) if batch_ids else []


@prepared
def _beginners(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    groups = [batch_members.c[name] for name in ("batch_id", "first_phase_version", "first_phase_place")]
    left_out = batch_members.c.first_phase_place > literal_column("0")
    mine = among(draft, batch_members.c.batch_id, batch_ids)
    return select(*groups, func.count().label("members")).where(mine, left_out, _IS_PRESENT).group_by(*groups)


def failed_people(tx: Transaction, batch_ids: Collection[int]) -> list[FailedPeople]:
    """Group the members that have failed by step and cause, the largest group first."""
    return tx.rows(FailedPeople, _failed(tx, batch_ids)) if batch_ids else []


@prepared
def _failed(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    mine = among(draft, batch_members.c.batch_id, batch_ids)
    members = (
        select(batch_members.c.member_key, batch_members.c.batch_id, _LAST_STEP.label("last_step_id"))
        .where(mine, is_any(batch_members.c.status, {MemberStatus.FAILED}))
        .subquery()
    )
    steps = (step_executions.c.step_name, step_executions.c.error_type)
    groups = (batches.c.runbook_name, phase_executions.c.phase_name, *steps)
    counted = (func.count().label("members"), func.min(members.c.member_key).label("example_key"))
    return (
        select(*groups, func.min(shortened_error).label("error"), *counted)
        .select_from(members)
        .join(batches, batches.c.id == members.c.batch_id)
        .join(step_executions, step_executions.c.id == members.c.last_step_id)
        .join(phase_executions, phase_executions.c.id == step_executions.c.phase_execution_id)
        .group_by(*groups, cause_of_error)
        .order_by(func.count().desc(), func.min(members.c.member_key))
    )


def _scope(wanted: ReportFilter, owner: FromClause) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.batch_id is not None:
        found.append(owner.c.id == wanted.batch_id)
    if wanted.runbook_name is not None:
        found.append(owner.c.runbook_name == wanted.runbook_name)
    return found


def _conditions(wanted: ReportFilter) -> list[ColumnElement[bool]]:
    found = _scope(wanted, _owner)
    if wanted.batch_id is not None:
        # The database does not conclude that from the condition on the batch.
        found.append(batch_members.c.batch_id == wanted.batch_id)
    if wanted.state is not None:
        found += is_in_state(wanted.state)
    if wanted.key_part is not None:
        found.append(contains(batch_members.c.member_key_fold, folded(wanted.key_part)))
    if wanted.error_part is not None:
        found.append(_has_error(wanted.error_part))
    if wanted.only_not_undone:
        found.append(IS_LEFT_BEHIND)
    return found


def _has_error(part: str) -> ColumnElement[bool]:
    failed = step_executions.alias("failed")
    return (
        select(literal_column("1"))
        .where(
            failed.c.id == _LAST_STEP,
            is_any(failed.c.status, FAILED_STEPS),
            contains(func.lower(failed.c.error_message), part.lower()),
        )
        .exists()
    )
