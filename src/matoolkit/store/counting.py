"""Counts that are stored as they change, so that nobody has to count when somebody looks.

Every statement that moves something notes what it moved. Just before the transaction commits, all notes become one
change of each table of counts. So counts and rows are never apart, whatever is undone, and a pile of any size costs the
same few statements. Who counts within a transaction has the notes written first.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Insert, Integer, Select, Table, Update, func, literal_column, select, update

from matoolkit.domain.states import StepStatus
from matoolkit.store.memberfacts import NUMBER
from matoolkit.store.schema import (
    batch_changes,
    batch_members,
    member_counts,
    phase_executions,
    step_counts,
    step_executions,
)
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, change
from matoolkit.store.sql.transaction import Transaction

_MEASURES = {step_counts: "steps", member_counts: "members", batch_changes: "changes"}
_OF_STEPS, _OF_MEMBERS = ("phase_execution_id", "step_index", "status"), ("batch_id", "counted_as")

Deltas = Mapping[tuple[Any, ...], int]


@dataclass(frozen=True, slots=True)
class StepsMoved:
    """How many more steps of a phase there are now in one place and state; negative if there are fewer."""

    phase_execution_id: int
    step_index: int
    status: StepStatus
    more: int


@dataclass(frozen=True, slots=True)
class MembersJoined:
    """How many new members a batch has, and what their rows say that they are counted as."""

    batch_id: int
    counted_as: int
    more: int


@dataclass(frozen=True, slots=True)
class Note:
    """What a statement changed: batches, steps that are counted, members to look at, and new ones."""

    batches: Collection[int] = ()
    steps: Sequence[StepsMoved] = ()
    members: Collection[int] = ()
    joined: Sequence[MembersJoined] = ()


@dataclass(slots=True)
class _Sum:
    batches: set[int] = field(default_factory=set)
    steps: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    members: set[int] = field(default_factory=set)
    standings: Counter[tuple[Any, ...]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Recounted:
    """A member that is not what it is counted as."""

    id: int
    batch_id: int
    counted_as: int | None
    number: int


def write_counts(tx: Transaction, notes: Sequence[Note]) -> None:
    """Write what was noted in a transaction."""
    total = _Sum()
    for note in notes:
        total.batches.update(note.batches)
        total.members.update(note.members)
        for moved in note.steps:
            total.steps[moved.phase_execution_id, moved.step_index, moved.status] += moved.more
        for joined in note.joined:
            total.standings[joined.batch_id, joined.counted_as] += joined.more
    _add(tx, step_counts, total.steps)
    total.standings.update(_look_at(tx, total.members))
    _add(tx, member_counts, total.standings)
    _add(tx, batch_changes, dict.fromkeys(((number,) for number in total.batches), 1))


def changes_of(tx: Transaction, batch_ids: Collection[int]) -> dict[int, int]:
    """Return for each batch a number that every transaction raises that moves the batch or anything in it."""
    return dict(tx.rows(_row, _changes(tx, batch_ids))) if batch_ids else {}


@prepared
def _changes(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    column = batch_changes.c.batch_id
    return select(column, batch_changes.c.changes).where(among(draft, column, ids))


def differing_counts(tx: Transaction, batch_ids: Collection[int]) -> list[str]:
    """Say where the counts of batches are not what their rows are; there is nothing to say unless rows were edited."""
    if not batch_ids:
        return []
    wrong = [f"member {one.id}: {one.counted_as}, not {one.number}" for one in _of_batches(tx, batch_ids)]
    wrong += [f"members of batch {batch} as {number}: {more:+}" for (batch, number), more in _members(tx, batch_ids)]
    wrong += [f"steps of phase {key[0]}, {key[1]}, {key[2]}: {more:+}" for key, more in _steps(tx, batch_ids)]
    return wrong


def count_again(tx: Transaction, batch_ids: Collection[int]) -> None:
    """Count the steps and members of batches anew, after rows were edited behind the moves' back."""
    if not batch_ids:
        return
    _add(tx, step_counts, dict(_steps(tx, batch_ids)))
    _add(tx, member_counts, _corrected(tx, _of_batches(tx, batch_ids)))
    _add(tx, member_counts, dict(_members(tx, batch_ids)))
    _add(tx, batch_changes, dict.fromkeys(((number,) for number in batch_ids), 1))


def _row(*cells: Any) -> tuple[Any, ...]:
    return cells


def _look_at(tx: Transaction, ids: Collection[int]) -> Deltas:
    """Let members say what they are counted as now, and return what that changes."""
    return _corrected(tx, tx.rows(_Recounted, _miscounted(tx, ids))) if ids else {}


def _corrected(tx: Transaction, members: Sequence[_Recounted]) -> Deltas:
    groups: dict[int, list[int]] = {}
    deltas: Counter[tuple[Any, ...]] = Counter()
    for one in members:
        groups.setdefault(one.number, []).append(one.id)
        deltas[one.batch_id, one.number] += 1
        if one.counted_as is not None:
            deltas[one.batch_id, one.counted_as] -= 1
    for number, ids in groups.items():
        change(tx, batch_members, ids, {"counted_as": number})
    return deltas


@prepared
def _miscounted(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    return _not_as_counted().where(among(draft, batch_members.c.id, ids))


def _of_batches(tx: Transaction, ids: Collection[int]) -> list[_Recounted]:
    return tx.rows(_Recounted, _miscounted_of(tx, ids))


@prepared
def _miscounted_of(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    return _not_as_counted().where(among(draft, batch_members.c.batch_id, ids))


def _not_as_counted() -> Select[Any]:
    columns = (batch_members.c.id, batch_members.c.batch_id, batch_members.c.counted_as, NUMBER.label("number"))
    return select(*columns).where(batch_members.c.counted_as.is_distinct_from(NUMBER))


def _steps(tx: Transaction, batch_ids: Collection[int]) -> list[tuple[tuple[Any, ...], int]]:
    phases = tx.values(_phases_of(tx, batch_ids))
    actual = tx.rows(_row, _steps_there(tx, phases))
    return _difference(actual, tx.rows(_row, _counted(tx, phases, table=step_counts, names=_OF_STEPS)))


def _members(tx: Transaction, batch_ids: Collection[int]) -> list[tuple[tuple[Any, ...], int]]:
    actual = tx.rows(_row, _members_there(tx, batch_ids))
    return _difference(actual, tx.rows(_row, _counted(tx, batch_ids, table=member_counts, names=_OF_MEMBERS)))


def _difference(
    actual: Sequence[tuple[Any, ...]], counted: Sequence[tuple[Any, ...]]
) -> list[tuple[tuple[Any, ...], int]]:
    more: Counter[tuple[Any, ...]] = Counter({tuple(key): number for *key, number in actual})
    more.subtract({tuple(key): number for *key, number in counted})
    return sorted((key, number) for key, number in more.items() if number)


@prepared
def _phases_of(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    return select(phase_executions.c.id).where(among(draft, phase_executions.c.batch_id, batch_ids))


@prepared
def _steps_there(draft: Drafting, phases: Collection[int]) -> Select[Any]:
    columns = [step_executions.c[name] for name in _OF_STEPS]
    return select(*columns, func.count()).where(among(draft, columns[0], phases)).group_by(*columns)


@prepared
def _members_there(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    columns = [batch_members.c[name] for name in _OF_MEMBERS]
    there = (among(draft, columns[0], batch_ids), columns[1].is_not(None))
    return select(*columns, func.count()).where(*there).group_by(*columns)


@prepared
def _counted(draft: Drafting, owners: Collection[int], *, table: Table, names: tuple[str, ...]) -> Select[Any]:
    columns = [table.c[name] for name in names]
    return select(*columns, table.c[_MEASURES[table]]).where(among(draft, columns[0], owners))


def _add(tx: Transaction, table: Table, deltas: Deltas) -> None:
    """Add to counts, in the order of their keys; those that are not there yet begin with none."""
    rows = sorted((*key, more) for key, more in deltas.items() if more)
    if not rows:
        return
    there = set(tx.rows(_row, _raised(tx, rows, table=table)))
    missing = [row for row in rows if row[:-1] not in there]
    if missing:
        # Somebody else may begin one of them at the same time, so what is added is added in a second step.
        tx.execute(_begun(tx, missing, table=table))
        tx.execute(_raised(tx, missing, table=table))


@prepared
def _raised(draft: Drafting, rows: Any, *, table: Table) -> Update:
    measure, keys = table.c[_MEASURES[table]], list(table.primary_key.columns)
    given = draft.table_of({**{one.name: one.type for one in keys}, "more": Integer()}, rows)
    mine = update(table).where(*(one == given.c[one.name] for one in keys))
    return mine.values({measure.name: measure + given.c.more}).returning(*keys)


@prepared
def _begun(draft: Drafting, rows: Any, *, table: Table) -> Insert:
    measure, keys = table.c[_MEASURES[table]], list(table.primary_key.columns)
    given = draft.table_of({**{one.name: one.type for one in keys}, "more": Integer()}, rows)
    cells = {**{one.name: given.c[one.name] for one in keys}, measure.name: literal_column("0", measure.type)}
    return draft.insert_missing(table, cells, given, [one.name for one in keys])
