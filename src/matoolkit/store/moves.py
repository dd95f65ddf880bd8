"""Moves of the tables in `domain/moves`, written: many at once, guarded in the statement (rule M3).

Every function returns the ids of the rows that made the move.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, and_, false, func, select, true

from matoolkit.domain.moves import Guard, Move, Value
from matoolkit.domain.moves.member import UNDO, UNDO_EXCLUDED
from matoolkit.domain.moves.step import CANCEL, DISPATCH, REOPEN, REPEAT, SUCCEED, StepMove
from matoolkit.domain.states import EXCLUDED, StepStatus
from matoolkit.ids import Kind
from matoolkit.store.dialect.types import Instant
from matoolkit.store.executions import TABLES
from matoolkit.store.noting import note_moved, returned
from matoolkit.store.schema import runbooks, step_executions
from matoolkit.store.sql.prepared import Ready, given
from matoolkit.store.sql.statements import changing, changing_each, is_any
from matoolkit.store.sql.transaction import Transaction

_NOTHING: Mapping[str, Any] = {}
_AT = given("at", Instant())

# Guards that look at the row, at the time of the move, or at a value that all rows are given.
_CONDITIONS: Mapping[Guard, Callable[[Table], ColumnElement[bool]]] = {
    Guard.UNANSWERED: lambda table: table.c.answered_at.is_(None),
    Guard.OVERDUE: lambda table: table.c.lost_at <= _AT,
    Guard.NOT_OUT: lambda table: table.c.lost_at.is_(None),
    Guard.IN_SOURCE: lambda table: table.c.left_source_at.is_(None),
    Guard.GONE_FROM_SOURCE: lambda table: table.c.left_source_at.is_not(None),
    Guard.NOT_CAUGHT_UP: lambda table: table.c.caught_up_at.is_(None),
    Guard.NOT_SEEN_OFF: lambda table: table.c.seen_off_at.is_(None),
    Guard.EXCLUDED: lambda table: table.c.remove_reason == EXCLUDED,
    Guard.UNDONE: lambda table: table.c.undone_at.is_not(None),
    Guard.NOT_UNDONE: lambda table: table.c.undone_at.is_(None),
    Guard.AUTOMATED: lambda table: table.c.is_manual == false(),
    Guard.MANUAL: lambda table: table.c.is_manual == true(),
    Guard.OTHER_VERSION: lambda table: and_(
        table.c.runbook_id != given("runbook_id", table.c.runbook_id.type),
        table.c.runbook_name
        == select(runbooks.c.name).where(runbooks.c.id == given("runbook_id", runbooks.c.id.type)).scalar_subquery(),
    ),
    Guard.NOT_REOPENED: lambda table: table.c.reopened_at.is_(None),
}
# Guards that compare a row with its record: it has the same, or one less.
_MATCHING = {Guard.SAME_JOB: "job_id", Guard.SAME_EPOCH: "epoch"}
_FOLLOWING = {Guard.NEXT_ATTEMPT: "attempt"}

_EXPRESSIONS: Mapping[Value, Callable[[Column[Any]], ColumnElement[Any]]] = {
    Value.KEPT_OR_NOW: lambda column: func.coalesce(column, _AT),
    Value.ONE_MORE: lambda column: column + 1,
}

# What is handed over once if it is the same for all: the jobs of one phase are mostly alike.
_OFTEN_ALIKE: Mapping[Move[Any], tuple[str, ...]] = {
    DISPATCH: ("attempt", "function_name", "lost_at"),
    SUCCEED: ("result_json", "missing_outputs_json"),
    UNDO: ("undo_version", "removed_by", "remove_reason"),
    UNDO_EXCLUDED: ("undo_version", "removed_by", "remove_reason"),
}

# A job that is out mostly answers; work that is waited for mostly waits for its first job.
_LIKELIEST = (
    *(StepStatus.DISPATCHED, StepStatus.PENDING, StepStatus.POLLING),
    *(StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.POLL_TIMEOUT, StepStatus.SUCCEEDED),
)


@dataclass(frozen=True, slots=True)
class _Form:
    """A move as the statements of one table have it; made once, because `prepared` knows conditions by identity."""

    from_state: StrEnum | None
    guards: tuple[ColumnElement[bool], ...]
    compared: Mapping[str, Any]
    fixed: Mapping[str, Any]
    timed: tuple[str, ...]
    needs_time: bool

    def values(self, at: datetime | None) -> dict[str, Any]:
        """Return what all rows are given."""
        if self.needs_time and at is None:
            raise ValueError("the move needs its time")
        return {**self.fixed, **dict.fromkeys(self.timed, at)}


def move_steps(tx: Transaction, kind: Kind, moves: Sequence[StepMove], at: datetime | None = None) -> list[int]:
    """Make moves of steps, each with values of its own. There is one statement for each kind of move."""
    grouped: dict[Move[StepStatus], list[StepMove]] = {}
    for one in moves:
        grouped.setdefault(one.move, []).append(one)
    return [number for move, group in grouped.items() for number in make_each(tx, TABLES[kind], move, group, at)]


def cancel(tx: Transaction, kind: Kind, ids: Collection[int], at: datetime) -> list[int]:
    """Cancel open work; a job that is out stays in flight until its answer comes or it is lost (rule O5)."""
    return make_alike(tx, TABLES[kind], CANCEL, ids, at)


def reopen(tx: Transaction, kind: Kind, ids: Collection[int]) -> list[int]:
    """Let failed or cancelled work begin again for a person; its parameters are resolved anew (rule R8)."""
    return make_alike(tx, TABLES[kind], REOPEN, ids)


def repeat(tx: Transaction, kind: Kind, ids: Collection[int]) -> list[int]:
    """Let work begin again for a person whatever became of it, because what it did was undone."""
    return make_alike(tx, TABLES[kind], REPEAT, ids)


def make_each(
    tx: Transaction, table: Table, move: Move[Any], records: Sequence[Any], at: datetime | None = None
) -> list[int]:
    """Make a move of many rows, each with the values of its record."""
    moved: set[int] = set()
    rest, alike = records, _OFTEN_ALIKE.get(move, ())
    for form in _forms(table, move):
        if rest := [one for one in rest if one.id not in moved] if moved else rest:
            statement = changing_each(
                tx,
                table,
                rest,
                form.values(at),
                *form.guards,
                often_alike=alike,
                returning=returned(table),
                parameters={"at": at},
                **form.compared,
            )
            moved.update(_noted(tx, table, move, form, statement))
    return sorted(moved)


def make_alike(
    tx: Transaction,
    table: Table,
    move: Move[Any],
    ids: Collection[int],
    at: datetime | None = None,
    brought: Mapping[str, Any] = _NOTHING,
) -> list[int]:
    """Make a move of many rows that brings the same to all of them."""
    moved: set[int] = set()
    rest = ids
    for form in _forms(table, move):
        if rest := [one for one in rest if one not in moved] if moved else rest:
            values, parameters = {**form.values(at), **brought}, {"at": at, **brought}
            statement = changing(
                tx, table, rest, values, *form.guards, returning=returned(table), parameters=parameters
            )
            moved.update(_noted(tx, table, move, form, statement))
    return sorted(moved)


def guards_of(table: Table, move: Move[Any]) -> tuple[ColumnElement[bool], ...]:
    """Return what must hold for a row, for a statement of another form."""
    return _form(table, move).guards


def values_of(table: Table, move: Move[Any], at: datetime | None = None) -> dict[str, Any]:
    """Return what a move writes, for a statement of another form."""
    return _form(table, move).values(at)


def forms_of(move: Move[StepStatus]) -> list[tuple[StepStatus, tuple[ColumnElement[bool], ...]]]:
    """Return each status from which a member's step may make a move, with what must hold for it then."""
    return [(StepStatus(form.from_state or ""), form.guards) for form in _counted_forms(move)]


def _noted(tx: Transaction, table: Table, move: Move[Any], form: _Form, statement: Ready) -> tuple[int, ...]:
    """Make a move in one of its forms, and note it for the counts."""
    moved = tx.rows(_row, statement)
    if not moved:
        return ()
    columns: list[tuple[Any, ...]] = list(zip(*moved, strict=True))
    note_moved(tx, table, move, form.from_state, columns)
    return columns[0]


def _row(*cells: Any) -> tuple[Any, ...]:
    return cells


def _forms(table: Table, move: Move[Any]) -> Sequence[_Form]:
    """Return the forms of a move: for what is counted by status one for each status from which it may start.

    No database says which status a row had before. So the likeliest is tried first, and mostly that was all.
    """
    return _counted_forms(move) if table is step_executions else (_form(table, move),)


@cache
def _counted_forms(move: Move[StepStatus]) -> tuple[_Form, ...]:
    if move.to_state is None:
        return (_form(step_executions, move),)
    return tuple(_form(step_executions, move, status) for status in _LIKELIEST if status in move.from_states)


@cache
def _form(table: Table, move: Move[Any], from_state: StrEnum | None = None) -> _Form:
    written = move.writes if move.to_state is None else {"status": move.to_state, **move.writes}
    conditions = [_CONDITIONS[guard](table) for guard in move.guards if guard in _CONDITIONS]
    if from_state is not None:
        conditions.insert(0, is_any(table.c.status, {from_state}))
    elif not move.is_from_anywhere:
        conditions.insert(0, is_any(table.c.status, move.from_states))
    compared = {"matching": _MATCHING, "following": _FOLLOWING}
    return _Form(
        from_state=from_state,
        guards=tuple(conditions),
        compared={how: tuple(known[one] for one in move.guards if one in known) for how, known in compared.items()},
        fixed={
            name: _EXPRESSIONS[value](table.c[name]) if isinstance(value, Value) else value
            for name, value in written.items()
            if value is not Value.NOW
        },
        timed=tuple(name for name, value in written.items() if value is Value.NOW),
        needs_time=Guard.OVERDUE in move.guards or not {Value.NOW, Value.KEPT_OR_NOW}.isdisjoint(written.values()),
    )
