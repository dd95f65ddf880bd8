"""Who waits in batches, grouped by what decides for what they wait (rule X3).

Each group comes with its size and with a few of its members, so the answer does not grow with batches.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Table,
    and_,
    case,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
)

from matoolkit.domain.states import OPEN_STEPS, UNFINISHED_BATCHES, MemberStatus, PhaseStatus, StepStatus
from matoolkit.store.batches import IS_UNDOING
from matoolkit.store.memberfacts import IS_TO_SEE_OFF
from matoolkit.store.schema import batch_members, batches, phase_executions, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any
from matoolkit.store.sql.transaction import Transaction

SAMPLES = 5
_NONE, _ONE = literal_column("0", Integer), literal_column("1", Integer)
_NOW, _LATER = 1, 2
# What a member does first: it waits for jobs, then it is undone, and then it goes through its phases (rules O3 and O5).
_OUT, _UNDOING_UNDER_WAY, _UNDOING, _UNDER_WAY, _TO_COME, _NOTHING = range(6)
# What the members of a group have in common.
_ALIKE = (
    *("batch_id", "member_status", "is_caught_up", "is_leaving", "gate_fold", "is_told", "is_pilot", "joined_no"),
    *("first_version", "first_place", "is_undoing", "phase_id", "is_first", "has_place"),
    *("step_name", "worker_id", "step_status", "is_out", "retry_due", "poll_due"),
)
_WORK = ("id", "step_index", "step_name", "worker_id", "status", "lost_at", "retry_after", "poll_due_at")
_IS_LEAVING = and_(*IS_TO_SEE_OFF)


@dataclass(frozen=True, slots=True)
class WaitingMember:
    """One of the first members of a group; `members` is how many are in the group, and `place` its place there."""

    batch_id: int
    member_id: int
    member_key: str
    group: int
    place: int
    members: int
    phase_id: int | None


def waiting_members(
    tx: Transaction,
    batch_ids: Collection[int],
    at: datetime,
    gate_folds: Collection[str],
    told: Collection[int],
    *,
    by_joining: bool = False,
) -> list[WaitingMember]:
    """Group the members of batches who have something open, or could have, and return some of each group.

    People who have a gate of their own, by the folds of their keys, have groups of their own. So do the members that a
    message on its way is about.
    """
    if not batch_ids:
        return []
    return tx.rows(WaitingMember, _waiting(tx, batch_ids, at, gate_folds, told, by_joining=by_joining))


@prepared
def _waiting(
    draft: Drafting,
    batch_ids: Collection[int],
    at: datetime,
    gate_folds: Collection[str],
    told: Collection[int],
    *,
    by_joining: bool,
) -> Select[Any]:
    keyed = _keyed(draft, batch_ids, at, gate_folds, told, by_joining=by_joining).subquery("keyed")
    alike = [keyed.c[name] for name in _ALIKE]
    place = func.row_number().over(partition_by=alike, order_by=(keyed.c.due_at, keyed.c.member_id))
    counted = select(
        *(keyed.c[name] for name in ("batch_id", "member_id", "member_key", "phase_id")),
        func.dense_rank().over(order_by=alike).label("group"),
        place.label("place"),
        func.count().over(partition_by=alike).label("members"),
    ).subquery("counted")
    columns = [counted.c[name] for name in WaitingMember.__dataclass_fields__]
    few = counted.c.place <= literal_column(str(SAMPLES))
    return select(*columns).where(few).order_by(counted.c.group, counted.c.place)


def _keyed(
    draft: Drafting,
    batch_ids: Collection[int],
    at: datetime,
    gate_folds: Collection[str],
    told: Collection[int],
    *,
    by_joining: bool,
) -> Select[Any]:
    """Say of each member who waits what decides for what, in columns by which they are grouped."""
    member, work = batch_members.c, _next_work(draft, batch_ids).subquery("work")
    fold = case((among(draft, member.member_key_fold, gate_folds), member.member_key_fold))
    columns = {
        "batch_id": member.batch_id,
        "member_id": member.id,
        "member_key": member.member_key,
        "member_status": member.status,
        "is_caught_up": _yes(member.caught_up_at.is_not(None)),
        "is_leaving": _yes(_IS_LEAVING),
        "gate_fold": fold,
        "is_told": _yes(among(draft, member.id, told)),
        "is_pilot": _yes(member.is_pilot == true()),
        "joined_no": member.joined_no if by_joining else _NONE,
        "first_version": member.first_phase_version,
        "first_place": member.first_phase_place,
        "is_undoing": work.c.is_undoing,
        "phase_id": work.c.phase_id,
        "is_first": _yes(work.c.step_index == 0),
        "has_place": _yes(_has_place(work)),
        "step_name": work.c.step_name,
        "worker_id": work.c.worker_id,
        "step_status": work.c.status,
        "is_out": _yes(work.c.lost_at.is_not(None)),
        "retry_due": _due(work.c.retry_after, at),
        "poll_due": _due(work.c.poll_due_at, at),
        "due_at": func.coalesce(work.c.lost_at, work.c.retry_after, work.c.poll_due_at),
    }
    named = (column.label(name) for name, column in columns.items())
    return select(*named).select_from(work.join(batch_members, member.id == work.c.member_id))


def _next_work(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    """Return of each member the work for which it waits first."""
    everything = (*_steps(draft, batch_ids), *_rollbacks(draft, batch_ids), _members(draft, batch_ids))
    found = union_all(*everything).subquery("found")
    order = [found.c[name] for name in ("rank", "version", "nearness", "phase_index", "step_index", "id")]
    turn = func.row_number().over(partition_by=found.c.member_id, order_by=order)
    placed = select(*found.c, turn.label("turn")).subquery("placed")
    return select(*placed.c).where(placed.c.turn == _ONE)


def _steps(draft: Drafting, batch_ids: Collection[int]) -> list[Select[Any]]:
    step, phase = step_executions.c, phase_executions.c
    running = select(phase.id).where(
        among(draft, phase.batch_id, batch_ids), is_any(phase.status, {PhaseStatus.DISPATCHED})
    )
    place: dict[str, ColumnElement[Any]] = {
        "phase_id": phase.id,
        "version": phase.runbook_version,
        "nearness": -phase.offset_minutes,
        "phase_index": phase.phase_index,
    }
    is_its = and_(batch_members.c.id == step.batch_member_id, batch_members.c.epoch == step.epoch)
    its = step_executions.join(phase_executions, phase.id == step.phase_execution_id)
    query = _work(step_executions, place, _OUT, _UNDER_WAY, _TO_COME)
    opened = query.select_from(its.join(batch_members, is_its)).where(
        step.phase_execution_id.in_(running), is_any(step.status, OPEN_STEPS)
    )
    # Beside those, the jobs of steps that have ended and of epochs that are over.
    late = query.select_from(its).where(*_still_out(draft, step_executions, batch_ids))
    return [opened, late]


def _rollbacks(draft: Drafting, batch_ids: Collection[int]) -> list[Select[Any]]:
    rollback = rollback_executions.c
    nowhere = literal_column("NULL", Integer)
    place = {"phase_id": nowhere, "version": _NONE, "nearness": _NONE, "phase_index": _NONE}
    query = _work(rollback_executions, place, _OUT, _UNDOING_UNDER_WAY, _UNDOING)
    opened = query.where(
        among(draft, rollback.batch_id, batch_ids),
        is_any(rollback.status, OPEN_STEPS),
        rollback.batch_member_id.is_not(None),
    )
    is_members = rollback.batch_member_id.is_not(None)
    return [opened, query.where(*_still_out(draft, rollback_executions, batch_ids), is_members)]


def _members(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    """Return everybody who may go on, as if without any work; those who have some have it before this."""
    goes_on = and_(is_any(batch_members.c.status, {MemberStatus.ACTIVE}), is_any(batches.c.status, UNFINISHED_BATCHES))
    # So everybody is found by number, and is not looked for among all that is open.
    nothing = [literal_column("NULL", step_executions.c[name].type).label(name) for name in _WORK]
    place = {"phase_id": literal_column("NULL", Integer), "version": _NONE, "nearness": _NONE, "phase_index": _NONE}
    return (
        select(
            *nothing,
            batch_members.c.epoch,
            batch_members.c.id.label("member_id"),
            _NONE.label("is_undoing"),
            _number(_NOTHING).label("rank"),
            *(column.label(name) for name, column in place.items()),
        )
        .select_from(batch_members.join(batches, batches.c.id == batch_members.c.batch_id))
        .where(among(draft, batch_members.c.batch_id, batch_ids), or_(goes_on, _IS_LEAVING))
    )


def _still_out(draft: Drafting, table: Table, batch_ids: Collection[int]) -> tuple[ColumnElement[bool], ...]:
    mine = among(draft, table.c.batch_id, batch_ids)
    return mine, table.c.lost_at.is_not(None), ~is_any(table.c.status, OPEN_STEPS)


def _work(table: Table, place: Mapping[str, ColumnElement[Any]], out: int, under_way: int, to_come: int) -> Select[Any]:
    is_under_way = or_(is_any(table.c.status, {StepStatus.POLLING}), table.c.retry_after.is_not(None))
    rank = case(
        (table.c.lost_at.is_not(None), _number(out)), (is_under_way, _number(under_way)), else_=_number(to_come)
    )
    is_undoing = _ONE if table is rollback_executions else _NONE
    return select(
        *(table.c[name] for name in _WORK),
        table.c.epoch,
        table.c.batch_member_id.label("member_id"),
        is_undoing.label("is_undoing"),
        rank.label("rank"),
        *(column.label(name) for name, column in place.items()),
    )


def _has_place(work: FromClause) -> ColumnElement[bool]:
    first = step_executions.alias("first")
    holds = (
        first.c.batch_member_id == work.c.member_id,
        first.c.epoch == work.c.epoch,
        first.c.phase_execution_id == work.c.phase_id,
        first.c.step_index == 0,
        first.c.holds_place == true(),
    )
    return select(first.c.id).where(*holds).correlate(work).exists()


def _due(column: ColumnElement[Any], at: Any) -> ColumnElement[Any]:
    return case((column <= at, _number(_NOW)), (column.is_not(None), _number(_LATER)), else_=_NONE)


def _yes(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return case((condition, _ONE), else_=_NONE)


def _number(number: int) -> ColumnElement[Any]:
    return literal_column(str(number), Integer)


def open_batches(tx: Transaction) -> list[int]:
    """Return the batches that have not ended, and those in which something is still undone, by id."""
    return tx.values(_open(tx))


@prepared
def _open(_draft: Drafting) -> Select[Any]:
    query = select(batches.c.id).where(or_(is_any(batches.c.status, UNFINISHED_BATCHES), IS_UNDOING))
    return query.order_by(batches.c.id)
