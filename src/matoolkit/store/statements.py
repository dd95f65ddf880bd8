"""The few forms that most statements of this room have."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, FromClause, Select, Table, bindparam, literal, select, update

from matoolkit.store.dialect.questions import insert_from
from matoolkit.store.transaction import Transaction

RowT = TypeVar("RowT")


def columns_of(record: type[Any], table: Table) -> list[Column[Any]]:
    """Return the columns of a table that a record is made of, in the record's order."""
    return [table.c[field.name] for field in fields(record)]


def select_records(record: type[Any], table: Table) -> Select[Any]:
    """Begin a query for records of a table."""
    return select(*columns_of(record, table))


def is_any(column: Column[Any], words: Collection[str]) -> ColumnElement[bool]:
    """Compare a status with words that stand in the statement itself, so that partial indexes apply."""
    if len(words) == 1:
        return column == bindparam("word", next(iter(words)), column.type, unique=True, literal_execute=True)
    fixed = bindparam("words", sorted(words), column.type, unique=True, expanding=True, literal_execute=True)
    return column.in_(fixed)


def among(tx: Transaction, column: Column[Any], values: Collection[Any]) -> ColumnElement[bool]:
    """Compare a column with any number of values in one parameter."""
    given = tx.table_of({"value": column.type}, [(value,) for value in values])
    return column.in_(select(given.c.value))


def chosen_once(query: Select[Any]) -> Select[Any]:
    """Let a query that locks a limited number of rows run once, whatever plan the database makes of the whole."""
    chosen = query.cte("chosen")
    return select(*chosen.c)


def records_among(
    tx: Transaction, record: type[RowT], table: Table, column: Column[Any], values: Collection[Any]
) -> list[RowT]:
    """Return the records whose column has one of the values, by id."""
    if not values:
        return []
    return rows_by_id(tx, record, select_records(record, table).where(among(tx, column, values)))


def rows_by_id(tx: Transaction, record: Callable[..., RowT], query: Select[Any]) -> list[RowT]:
    """Run a query for records with an id and return them in that order.

    They are sorted here: asked to sort, SQLite would rather read a whole table in order than use an index.
    """
    return sorted(tx.rows(record, query), key=attrgetter("id"))


def move(
    tx: Transaction,
    table: Table,
    ids: Collection[int],
    values: Mapping[str, Any],
    *guards: ColumnElement[bool],
) -> list[int]:
    """Change rows alike where the guards hold, and return the ids of those that changed (rule M3)."""
    if not ids:
        return []
    chosen = update(table).where(among(tx, table.c.id, ids), *guards)
    return sorted(tx.values(chosen.values(dict(values)).returning(table.c.id)))


def move_each(
    tx: Transaction,
    table: Table,
    moves: Sequence[Any],
    values: Mapping[str, Any],
    *guards: ColumnElement[bool],
    matching: Iterable[str] = (),
    following: Iterable[str] = (),
    differing: Iterable[str] = (),
) -> list[int]:
    """Change each row to what its move says where the guards hold, and return the ids that changed (rule M3).

    A move is a record with an `id`; its other fields are written to the columns of their names. Those in
    `matching` the row must already have; those in `following` must be one more than what it has, those in
    `differing` something else. A row has one move: with two, nobody could tell which of them the answer is about.
    """
    if not moves:
        return []
    if len({entry.id for entry in moves}) < len(moves):
        raise ValueError(f"two moves of one row of {table.name}")
    names, given = _table_of_records(tx, table, moves)
    same = [table.c[name] == given.c[name] for name in ("id", *matching)]
    same += [table.c[name] == given.c[name] - 1 for name in following]
    same += [table.c[name].is_distinct_from(given.c[name]) for name in differing]
    written = {name: given.c[name] for name in names if name not in ("id", *matching)}
    statement = update(table).where(*same, *guards).values(written | dict(values)).returning(table.c.id)
    return sorted(tx.values(statement))


def insert_each(
    tx: Transaction, table: Table, rows: Sequence[Any], values: Mapping[str, Any], key: Iterable[str] = ()
) -> Any:
    """Prepare the insertion of records with some values in common; with a key, of those not there yet."""
    if key:
        rows = _first_of_each(rows, [name for name in key if name not in values])
    names, given = _table_of_records(tx, table, rows)
    alike = {name: literal(value, table.c[name].type) for name, value in values.items()}
    written: dict[str, ColumnElement[Any]] = {**{name: given.c[name] for name in names}, **alike}
    if not key:
        return insert_from(table, written, given)
    return tx.insert_missing(table, written, given, key)


def _first_of_each(rows: Sequence[Any], key: Sequence[str]) -> Sequence[Any]:
    # Not every database passes by a row that is twice in one statement.
    key_of = attrgetter(*key)
    first: dict[Any, Any] = {}
    for row in rows:
        first.setdefault(key_of(row), row)
    return list(first.values())


def _table_of_records(tx: Transaction, table: Table, records: Sequence[Any]) -> tuple[list[str], FromClause]:
    names = [field.name for field in fields(records[0])]
    values = attrgetter(*names)
    return names, tx.table_of({name: table.c[name].type for name in names}, [values(row) for row in records])
