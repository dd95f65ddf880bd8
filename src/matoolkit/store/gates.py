"""Gates as they are stored: which are in force, and what they cover, for `domain/gates.py` and for queries.

Queries that look for what to do next leave out what a gate covers. They say in SQL what `Gates.at` says in Python, and
a test holds both against each other (rule G1).
"""

from datetime import datetime
from typing import Any, cast

from sqlalchemy import Column, ColumnElement, FromClause, Select, Table, and_, exists, or_, select

from matoolkit.domain.doors import Door
from matoolkit.domain.gates import Gate, GateKind
from matoolkit.store.schema import batch_members, batches, gates, phase_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import is_any, rows_by_id, select_records
from matoolkit.store.sql.transaction import Transaction


def is_standing(table: FromClause) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return what makes a gate a hold that stands: it has not been opened, and waits for the approval of something."""
    return table.c.opened_at.is_(None), table.c.hold_key.is_not(None)


_standing = gates.alias("standing")
IS_HELD = exists().where(_standing.c.batch_id == batches.c.id, *is_standing(_standing))


def gates_in_force(tx: Transaction, at: datetime) -> list[Gate]:
    """Return all gates that are shut now, by id; read after the batches are locked (rules G3 and M5)."""
    return rows_by_id(tx, Gate, _in_force(tx, at))


def freezes_ahead(tx: Transaction, at: datetime) -> list[Gate]:
    """Return the freezes that are not over, also those that are still to begin, by id (rule K6)."""
    return rows_by_id(tx, Gate, _freezes(tx, at))


@prepared
def _freezes(_draft: Drafting, at: datetime) -> Select[Any]:
    is_not_over = or_(gates.c.shut_until.is_(None), gates.c.shut_until > at)
    is_freeze = is_any(gates.c.kind, {GateKind.FREEZE})
    return select_records(Gate, gates).where(gates.c.opened_at.is_(None), is_freeze, is_not_over)


@prepared
def _in_force(_draft: Drafting, at: datetime) -> Select[Any]:
    return select_records(Gate, gates).where(*is_in_force(gates, at))


def is_in_force(table: FromClause, at: Any) -> tuple[ColumnElement[bool], ...]:
    """Return what makes a gate shut at a time."""
    is_not_over = or_(table.c.shut_until.is_(None), table.c.shut_until > at)
    return table.c.opened_at.is_(None), has_begun(table, at), is_not_over


def has_begun(table: FromClause, at: Any) -> ColumnElement[bool]:
    """Return whether a gate has been shut already: only a freeze is written ahead.

    A clock that is put back does not open a gate that somebody has shut.
    """
    is_other = ~is_any(cast("Column[Any]", table.c.kind), {GateKind.FREEZE})
    return or_(table.c.shut_from <= at, is_other, table.c.swept_at.is_not(None))


def keeps_phases_of_batch(at: Any) -> ColumnElement[bool]:
    """Return whether a gate keeps all phases of a batch from beginning; those of single phases are asked later (G5)."""
    gate = gates.alias("gate")
    return exists().where(
        *is_in_force(gate, at),
        gate.c.worker_id.is_(None),
        gate.c.member_key_fold.is_(None),
        gate.c.phase_execution_id.is_(None),
        or_(gate.c.batch_id.is_(None), gate.c.batch_id == batches.c.id),
        or_(gate.c.runbook_name.is_(None), gate.c.runbook_name == batches.c.runbook_name),
    )


def keeps_jobs_of(work: Table, at: Any) -> ColumnElement[bool]:
    """Return whether a gate keeps the next job of work, whose turn it is, from leaving (rule G6)."""
    gate = gates.alias("gate")
    runbook = select(batches.c.runbook_name).where(batches.c.id == work.c.batch_id).correlate(work).scalar_subquery()
    its_member: ColumnElement[bool] = gate.c.member_key_fold.is_(None)
    if "batch_member_id" in work.c:
        mine = batch_members.c.id == work.c.batch_member_id
        key = select(batch_members.c.member_key_fold).where(mine).correlate(work).scalar_subquery()
        its_member = or_(its_member, gate.c.member_key_fold == key)
    covers = (
        _covers_phase_of(work, gate),
        or_(gate.c.worker_id.is_(None), gate.c.worker_id == work.c.worker_id),
        or_(gate.c.batch_id.is_(None), gate.c.batch_id == work.c.batch_id),
        or_(gate.c.runbook_name.is_(None), gate.c.runbook_name == runbook),
        its_member,
    )
    is_shut = (*is_in_force(gate, at), is_any(gate.c.reach, {Door.SEND}))
    return select(gate.c.id).where(*is_shut, *covers).correlate(work).exists()


def _covers_phase_of(work: Table, gate: FromClause) -> ColumnElement[bool]:
    """Return whether a gate is about no phase in particular, or about one that work has reached."""
    of_no_phase = gate.c.phase_execution_id.is_(None)
    if "phase_execution_id" not in work.c:
        return of_no_phase
    mine, named = phase_executions.alias("mine"), phase_executions.alias("named")
    is_earlier = or_(
        named.c.offset_minutes > mine.c.offset_minutes,
        and_(named.c.offset_minutes == mine.c.offset_minutes, named.c.phase_index <= mine.c.phase_index),
    )
    same_version = and_(named.c.batch_id == mine.c.batch_id, named.c.runbook_version == mine.c.runbook_version)
    reached = (
        select(named.c.id)
        .select_from(named.join(mine, and_(same_version, is_earlier)))
        .where(named.c.id == gate.c.phase_execution_id, mine.c.id == work.c.phase_execution_id)
        .correlate(work, gate)
        .exists()
    )
    return or_(of_no_phase, reached)
