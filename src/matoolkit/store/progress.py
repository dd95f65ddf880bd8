"""How the members of a phase go through it: its steps by state, and when members began and came through.

The number of statements and of rows in an answer does not grow with members, although the time that they take does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, and_, case, func, literal_column, select

from matoolkit.domain.states import StepStatus
from matoolkit.store.schema import batch_members, step_executions
from matoolkit.store.sql.statements import is_any
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class StepTally:
    """How many steps of one kind are in one state, in the members' present epochs."""

    step_index: int
    step_name: str
    status: StepStatus
    count: int


@dataclass(frozen=True, slots=True)
class _Slot:
    slot: int
    count: int


def step_tallies(tx: Transaction, phase_id: int) -> list[StepTally]:
    """Count the steps of a phase by step and state."""
    groups = (step_executions.c.step_index, step_executions.c.step_name, step_executions.c.status)
    counted = select(*groups, func.count().label("count")).select_from(_present()).where(_of(phase_id))
    return tx.rows(StepTally, counted.group_by(*groups).order_by(*groups))


def begun_by(tx: Transaction, phase_id: int, edges: Sequence[datetime]) -> list[int]:
    """Count the members whose first step in a phase had been sent by each of these times."""
    sent = step_executions.c.dispatched_at
    return _up_to(tx, sent, edges, _of(phase_id), step_executions.c.step_index == 0)


def through_by(tx: Transaction, phase_id: int, last_index: int, edges: Sequence[datetime]) -> list[int]:
    """Count the members whose last step in a phase had succeeded by each of these times."""
    succeeded = is_any(step_executions.c.status, {StepStatus.SUCCEEDED})
    ended, is_last = step_executions.c.completed_at, step_executions.c.step_index == last_index
    return _up_to(tx, ended, edges, _of(phase_id), is_last, succeeded)


def _up_to(tx: Transaction, at: Column[Any], edges: Sequence[datetime], *conditions: ColumnElement[bool]) -> list[int]:
    slots = (
        select(_slot(at, edges, 0, len(edges)).label("slot"))
        .select_from(_present())
        .where(at.is_not(None), *conditions)
        .subquery()
    )
    counted = select(slots.c.slot, func.count().label("count")).group_by(slots.c.slot)
    found = {row.slot: row.count for row in tx.rows(_Slot, counted)}
    sums, so_far = [], 0
    for slot in range(len(edges)):
        so_far += found.get(slot, 0)
        sums.append(so_far)
    return sums


def _slot(at: Column[Any], edges: Sequence[datetime], low: int, high: int) -> ColumnElement[Any]:
    """Find between which edges a time lies, by halves: a row is compared with few of them."""
    if low == high:
        return literal_column(str(low))
    middle = (low + high) // 2
    return case((at <= edges[middle], _slot(at, edges, low, middle)), else_=_slot(at, edges, middle + 1, high))


def _present() -> FromClause:
    is_its = and_(
        batch_members.c.id == step_executions.c.batch_member_id, batch_members.c.epoch == step_executions.c.epoch
    )
    return step_executions.join(batch_members, is_its)


def _of(phase_id: int) -> ColumnElement[bool]:
    return step_executions.c.phase_execution_id == phase_id
