"""What statements note about the rows that they moved or made, so that counts change with them (see `counting.py`)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import Column, Table

from matoolkit.domain.moves import Move
from matoolkit.domain.states import OPEN_STEPS, MemberStatus, StepStatus
from matoolkit.store.counting import MembersJoined, Note, StepsMoved, write_counts
from matoolkit.store.memberfacts import COUNTED_BY, Standing
from matoolkit.store.schema import batch_members, batches, rollback_executions, step_executions
from matoolkit.store.sql.transaction import Transaction

_ALSO: Mapping[Table, tuple[str, ...]] = {
    step_executions: ("phase_execution_id", "step_index"),
    rollback_executions: ("batch_member_id",),
}


@cache
def returned(table: Table) -> tuple[Column[Any], ...]:
    """Return the columns that a statement that moves rows returns of each, so that it can be noted."""
    names = ("id",) if table is batches else ("id", "batch_id", *_ALSO.get(table, ()))
    return tuple(table.c[name] for name in names)


def note_moved(
    tx: Transaction, table: Table, move: Move[Any], from_state: StrEnum | None, columns: Sequence[tuple[Any, ...]]
) -> None:
    """Note a move of rows; the columns are those of `returned`."""
    ids, owners = columns[0], columns[0 if table is batches else 1]
    steps: list[StepsMoved] = []
    if isinstance(from_state, StepStatus) and move.to_state is not None:
        places = Counter(zip(columns[2], columns[3], strict=True))
        steps = [*_more(places, from_state, -1), *_more(places, move.to_state, 1)]
    members: Collection[int] = ()
    if table is batch_members and _changes_standing(move):
        members = ids
    elif table is rollback_executions and _opens_or_closes(move):
        members = {number for number in columns[2] if number is not None}
    tx.note(write_counts, Note(set(owners), steps, members))


def note_batches(tx: Transaction, ids: Collection[int]) -> None:
    """Note that batches have changed in a way that is not counted."""
    if ids:
        tx.note(write_counts, Note(set(ids)))


def note_new_steps(tx: Transaction, batch_ids: Collection[int], places: Mapping[tuple[int, int], int]) -> None:
    """Note new steps, by phase and place, in batches."""
    if places:
        tx.note(write_counts, Note(set(batch_ids), _more(places, StepStatus.PENDING, 1)))


def note_cancelled_steps(tx: Transaction, from_state: StepStatus, steps: Sequence[Any]) -> None:
    """Note that steps were cancelled that had been in a state."""
    places = Counter((step.phase_execution_id, step.step_index) for step in steps)
    moved = [*_more(places, from_state, -1), *_more(places, StepStatus.CANCELLED, 1)]
    tx.note(write_counts, Note({step.batch_id for step in steps}, moved))


def note_rollbacks(tx: Transaction, batch_ids: Collection[int], member_ids: Collection[int | None]) -> None:
    """Note new compensating steps of members, or of the inits of batches."""
    tx.note(write_counts, Note(set(batch_ids), members={number for number in member_ids if number is not None}))


def standing_of_new(is_caught_up: bool) -> int:
    """Return what a new member is counted as."""
    return Standing(MemberStatus.ACTIVE, is_caught_up).number


def note_new_members(tx: Transaction, counted: Counter[tuple[int, int]]) -> None:
    """Note new members, by batch and by what they are counted as."""
    joined = [MembersJoined(batch, number, more) for (batch, number), more in counted.items()]
    tx.note(write_counts, Note({batch for batch, _ in counted}, joined=joined))


def _more(places: Mapping[tuple[int, int], int], status: StepStatus, sign: int) -> list[StepsMoved]:
    return [StepsMoved(phase, index, status, sign * more) for (phase, index), more in places.items()]


@cache
def _changes_standing(move: Move[Any]) -> bool:
    return move.to_state is not None or not COUNTED_BY.isdisjoint(move.writes)


@cache
def _opens_or_closes(move: Move[Any]) -> bool:
    return move.to_state is not None and any(
        (state in OPEN_STEPS) != (move.to_state in OPEN_STEPS) for state in move.from_states
    )
