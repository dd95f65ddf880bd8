"""The few forms that most statements of this room have."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import (
    ClauseElement,
    Column,
    ColumnElement,
    Executable,
    FromClause,
    Integer,
    Select,
    Table,
    Update,
    literal_column,
    select,
    type_coerce,
    update,
)

from matoolkit.store.sql.prepared import Draft, Drafting, Named, Ready, prepared
from matoolkit.store.sql.transaction import Transaction

RowT = TypeVar("RowT")
Record = Callable[..., Any]  # a dataclass whose fields are columns

# The place of a record among those that are inserted, where the database has to be told their order.
_PLACE = "place"
_NOTHING: Mapping[str, Any] = {}


@cache
def columns_of(record: Record, table: Table) -> tuple[Column[Any], ...]:
    """Return the columns of a table that a record is made of, in the record's order."""
    return tuple(table.c[name] for name in _names_of(record))


def select_records(record: Record, table: Table) -> Select[Any]:
    """Begin a query for records of a table."""
    return select(*columns_of(record, table))


def is_any(column: Column[Any], words: Collection[str]) -> ColumnElement[bool]:
    """Compare a status with words that stand in the statement itself, so that partial indexes apply.

    For the same words it is the same condition.
    """
    return _is_any(column, tuple(sorted(map(str, words))))


@cache
def _is_any(column: Column[Any], words: tuple[str, ...]) -> ColumnElement[bool]:
    literals = [literal_column(f"'{word}'", column.type) for word in words]
    return column == literals[0] if len(words) == 1 else column.in_(literals)


def contains(column: ColumnElement[Any], part: str) -> ColumnElement[bool]:
    """Look for a text inside a column, sign for sign."""
    # A bracket means something to SQL Server alone; the others take it, escaped, for what it is.
    escaped = "".join(f"/{sign}" if sign in "/%_[" else sign for sign in part)
    return column.like(f"%{escaped}%", escape="/")


def among(tx: Drafting, column: Column[Any], values: Collection[Any]) -> ColumnElement[bool]:
    """Compare a column with any number of values in one parameter."""
    return column.in_(select(tx.values_of(column.type, values).c.value))


def chosen_once(query: Select[Any]) -> Select[Any]:
    """Make a query that locks a limited number of rows run only once, whatever plan the database chooses."""
    chosen = query.cte("chosen")
    return select(*chosen.c)


def records_among(
    tx: Transaction, record: Callable[..., RowT], table: Table, column: Column[Any], values: Collection[Any]
) -> list[RowT]:
    """Return the records whose column has one of the values, by id."""
    if not values:
        return []
    return rows_by_id(tx, record, _records_among(tx, values, record=record, table=table, column=column))


@prepared
def _records_among(
    draft: Drafting, values: Collection[Any], *, record: Record, table: Table, column: Column[Any]
) -> Executable:
    return select_records(record, table).where(among(draft, column, values))


def rows_by_id(tx: Transaction, record: Callable[..., RowT], query: Executable | Ready) -> list[RowT]:
    """Run a query for records with an id and return them in that order.

    They are sorted here: asked to sort, SQLite would rather read a whole table in order than use an index.
    """
    return sorted(tx.rows(record, query), key=attrgetter("id"))


def change(
    tx: Transaction,
    table: Table,
    ids: Collection[int],
    values: Mapping[str, Any],
    *guards: ColumnElement[bool],
    parameters: Mapping[str, Any] = _NOTHING,
) -> list[int]:
    """Change rows alike where the guards hold, and return the ids of those that changed (rule M3).

    Guards, and values that are expressions, are made once and for all (see `prepared`). `parameters` has what is
    `given`.
    """
    if not ids:
        return []
    # Databases return changed rows in any order; what follows must not depend on it.
    return sorted(tx.values(changing(tx, table, ids, values, *guards, parameters=parameters)))


def changing(
    tx: Transaction,
    table: Table,
    ids: Collection[int],
    values: Mapping[str, Any],
    *guards: ColumnElement[bool],
    returning: tuple[Column[Any], ...] = (),
    parameters: Mapping[str, Any] = _NOTHING,
) -> Ready:
    """Prepare to change rows alike as `change` does, and to return more of those that changed than their ids."""
    plain, expressions = _told_apart(values)
    columns = returning or (table.c.id,)
    shape = (table, columns, expressions, guards)
    return _changed(tx, ids, plain, shape=shape).with_parameters(parameters)


_Expressions = tuple[tuple[str, Any], ...]


@prepared
def _changed(
    draft: Drafting,
    ids: Collection[int],
    values: Named,
    *,
    shape: tuple[Table, tuple[Column[Any], ...], _Expressions, tuple[ColumnElement[bool], ...]],
) -> Update:
    table, returning, expressions, guards = shape
    chosen = update(table).where(among(draft, table.c.id, ids), *map(draft.dialect.only_checked, guards))
    return chosen.values({**values, **dict(expressions)}).returning(*returning)


def change_each(
    tx: Transaction,
    table: Table,
    changes: Sequence[Any],
    values: Mapping[str, Any],
    *guards: ColumnElement[bool],
    differing: tuple[str, ...] = (),
) -> list[int]:
    """Change each row to what its record says where the guards hold, and return the ids that changed (rule M3)."""
    if not changes:
        return []
    return sorted(tx.values(changing_each(tx, table, changes, values, *guards, differing=differing)))


def changing_each(
    tx: Transaction,
    table: Table,
    changes: Sequence[Any],
    values: Mapping[str, Any],
    *guards: ColumnElement[bool],
    matching: tuple[str, ...] = (),
    following: tuple[str, ...] = (),
    differing: tuple[str, ...] = (),
    often_alike: tuple[str, ...] = (),
    returning: tuple[Column[Any], ...] = (),
    parameters: Mapping[str, Any] = _NOTHING,
) -> Ready:
    """Prepare to change each row to what its record says where the guards hold, and to return those that changed.

    A record has an `id`; its other fields are written to the columns of their names. Those in `matching` the row must
    already have; those in `following` must be one more than what it has, those in `differing` something else. Those in
    `often_alike` are handed over once if all records have the same. A row has one record: with two, it would be unclear
    which of them the returned id means. Guards, and values that are expressions, are made once and for all (see
    `prepared`); `parameters` has what is `given`.
    """
    if len({entry.id for entry in changes}) < len(changes):
        raise ValueError(f"two changes of one row of {table.name}")
    record: Record = type(changes[0])
    plain, expressions = _told_apart(values)
    shared = _shared(changes, often_alike)
    names = tuple(name for name in _names_of(record) if name not in shared)
    compared = {"matching": matching, "following": following, "differing": differing}
    shape = (table, returning or (table.c.id,), names, expressions, guards)
    cells = _cells_of(names, changes)
    return _changed_each(tx, cells, plain, shared, shape=shape, **compared).with_parameters(parameters)


@prepared
def _changed_each(
    draft: Draft,
    rows: Any,
    values: Named,
    shared: Named,
    *,
    shape: tuple[Table, tuple[Column[Any], ...], tuple[str, ...], _Expressions, tuple[ColumnElement[bool], ...]],
    matching: tuple[str, ...],
    following: tuple[str, ...],
    differing: tuple[str, ...],
) -> Update:
    table, returning, names, expressions, guards = shape
    cells = _cells_given(table, _rows_of(draft, table, names, rows), names, shared)
    checked = [table.c[name] == cells[name] for name in matching]
    checked += [table.c[name] == cells[name] - 1 for name in following]
    checked += [table.c[name].is_distinct_from(cells[name]) for name in differing]
    written = {name: cell for name, cell in cells.items() if name not in ("id", *matching)}
    chosen = update(table).where(table.c.id == cells["id"], *map(draft.dialect.only_checked, [*checked, *guards]))
    return chosen.values({**written, **values, **dict(expressions)}).returning(*returning)


def insert_each(
    tx: Transaction,
    table: Table,
    rows: Sequence[Any],
    values: Mapping[str, Any],
    key: tuple[str, ...] = (),
    returning: tuple[Column[Any], ...] = (),
    often_alike: tuple[str, ...] = (),
) -> Ready:
    """Prepare the insertion of records with some values in common; with a key, of those not there yet.

    Rows get their numbers in the order of the records. What is in `often_alike` is handed over once if all records have
    the same.
    """
    if key:
        rows = _first_of_each(rows, [name for name in key if name not in values])
    shared = Named({**values, **_shared(rows, often_alike)})
    record: Record = type(rows[0])
    names = tuple(name for name in _names_of(record) if name not in shared)
    cells = _cells_of(names, rows)
    if not tx.dialect.keeps_order:
        cells = [(*row, place) for place, row in enumerate(cells)]
    return _inserted_each(tx, cells, shared, table=table, names=names, key=key, returning=returning)


@prepared
def _inserted_each(
    draft: Draft,
    rows: Any,
    shared: Named,
    *,
    table: Table,
    names: tuple[str, ...],
    key: tuple[str, ...],
    returning: tuple[Column[Any], ...],
) -> Executable:
    columns = {name: table.c[name].type for name in names}
    if not draft.dialect.keeps_order:
        columns[_PLACE] = Integer()
    given = draft.rows_of(columns, rows)
    order = None if draft.dialect.keeps_order else given.c[_PLACE]
    written = _cells_given(table, given, names, shared)
    if key:
        statement = draft.insert_missing(table, written, given, key, order)
    else:
        statement = draft.dialect.insert_from(table, written, given, order)
    return statement.returning(*returning) if returning else statement


def _first_of_each(rows: Sequence[Any], key: Sequence[str]) -> Sequence[Any]:
    # Not every database passes by a row that is twice in one statement.
    key_of = attrgetter(*key)
    first: dict[Any, Any] = {}
    for row in rows:
        first.setdefault(key_of(row), row)
    return list(first.values())


def _told_apart(values: Mapping[str, Any]) -> tuple[Named, tuple[tuple[str, Any], ...]]:
    # A value goes into a parameter. An expression stands in the statement, and so belongs to its shape.
    expressions = tuple((name, value) for name, value in values.items() if isinstance(value, ClauseElement))
    if not expressions:
        return Named(values), ()
    return Named({name: value for name, value in values.items() if not isinstance(value, ClauseElement)}), expressions


@cache
def _names_of(record: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


def _shared(records: Sequence[Any], names: tuple[str, ...]) -> Named:
    """Return what all records have the same of these fields: a value that is handed over once is read once."""
    columns = {name: list(map(attrgetter(name), records)) for name in names}
    return Named({name: column[0] for name, column in columns.items() if column.count(column[0]) == len(column)})


def _cells_of(names: tuple[str, ...], records: Sequence[Any]) -> list[tuple[Any, ...]]:
    cells = attrgetter(*names)  # of one name it gives the value itself
    return list(map(cells, records)) if len(names) > 1 else [(cells(one),) for one in records]


def _rows_of(draft: Draft, table: Table, names: tuple[str, ...], rows: Any) -> FromClause:
    return draft.rows_of({name: table.c[name].type for name in names}, rows)


def _cells_given(
    table: Table, given: FromClause, names: Sequence[str], shared: Mapping[str, Any]
) -> dict[str, ColumnElement[Any]]:
    """Return what is given for each column of a table: in rows, or once for all of them."""
    alike = {name: type_coerce(value, table.c[name].type) for name, value in shared.items()}
    return {**{name: given.c[name] for name in names}, **alike}
