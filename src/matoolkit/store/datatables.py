"""Data tables: the rows of a runbook version's query, kept for people to report from (rules D2 and T4).

A row is written when it is new, when it changed, when it leaves and when it comes back; otherwise nothing is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Insert,
    MetaData,
    Select,
    Table,
    Unicode,
    UnicodeText,
    Update,
    literal,
    select,
    true,
    type_coerce,
    update,
)
from sqlalchemy.schema import CreateTable

from matoolkit.domain.cells import MOST_COLUMNS, typed_row
from matoolkit.domain.keys import MAX_KEY_LENGTH, folded, is_usable_key
from matoolkit.errors import TooManyColumns, UnusableKey
from matoolkit.runbook.templates import Json
from matoolkit.store.datanames import DataTableName, column_names
from matoolkit.store.dialect.types import BigId, FoldedKey, Instant
from matoolkit.store.schema import data_table_columns
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import insert_each
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class DataTable:
    """A data table that is ready to take rows with these source columns, and whether it was just created."""

    columns: Mapping[str, str]
    table: Table
    is_new: bool = False


class DataRow(NamedTuple):
    """A row of the source: a text or nothing for each source column, in the order of `DataTable.columns`.

    The fingerprint changes when anything in the row does. The kinds say which values were no texts in the source.
    """

    member_key: str
    batch_time: datetime | None
    fingerprint: bytes
    values: Sequence[str | None]
    kinds: str = ""


@dataclass(frozen=True, slots=True)
class TypedRow:
    """A row that the source had at the last reading, with the types that it had there (rule O14)."""

    batch_time: datetime | None
    fingerprint: str
    data: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Upserted:
    """How many rows were new, and how many changed or came back."""

    inserted: int
    changed: int


@dataclass(frozen=True, slots=True)
class _ColumnName:
    source_name: str
    column_name: str


def open_data_table(
    tx: Transaction, place: DataTableName, sources: Sequence[str], *, may_be_old: bool = False
) -> DataTable:
    """Create a data table, or add the columns that it does not have yet; one of an older release lacks the kinds."""
    name, schema = place.name, place.schema
    known = _known_columns(tx, name)
    missing = column_names(sources, known, _OWN_COLUMNS)
    columns = known | missing
    if len(columns) > MOST_COLUMNS:
        raise TooManyColumns(name, len(columns), MOST_COLUMNS)
    table = _table(place, columns.values())
    is_new = not tx.has_table(name, schema)
    if is_new:
        tx.execute(CreateTable(table))
    else:
        if may_be_old and not tx.has_column(name, _KINDS, schema):
            tx.operations().add_column(name, _kinds_column(), schema=schema)
        for column in missing.values():
            tx.operations().add_column(name, Column(column, UnicodeText), schema=schema)
    _remember_columns(tx, name, missing)
    return DataTable(columns, table, is_new)


def known_fingerprints(tx: Transaction, data: DataTable) -> set[bytes]:
    """Return the fingerprints of the rows that the source had last time: a row that is among them has not changed."""
    return set(map(bytes.fromhex, tx.values(_fingerprints(tx, table=data.table))))


def upsert_rows(
    tx: Transaction, data: DataTable, rows: Sequence[DataRow], at: datetime, *, is_empty: bool = False
) -> Upserted:
    """Write rows that are new, changed or back again; there may be many, but not a whole source at once.

    In a table that has none of them nothing is looked up.
    """
    if not rows:
        return Upserted(0, 0)
    known = {} if is_empty else _ids_of(tx, data, [folded(row.member_key) for row in rows])
    new: list[tuple[Any, ...]] = []
    changed: list[tuple[Any, ...]] = []
    for row in rows:
        key, row_hash = folded(row.member_key), row.fingerprint.hex()
        row_id = known.get(key)
        if row_id is None:
            new.append((_checked(row.member_key), key, row.batch_time, row_hash, row.kinds, *row.values))
        else:
            changed.append((row_id, row.batch_time, row_hash, row.kinds, *row.values))
    _insert(tx, data, new, at)
    _update(tx, data, changed, at)
    return Upserted(len(new), len(changed))


def current_keys(tx: Transaction, data: DataTable, *, after: int, limit: int) -> list[tuple[int, str]]:
    """Return a slice of the rows that the source had last time, id and folded key, from after an id."""
    return tx.rows(lambda row_id, key: (row_id, key), _keys(tx, after, table=data.table, limit=limit))


def mark_gone(tx: Transaction, data: DataTable, row_ids: Collection[int], at: datetime) -> int:
    """Mark rows that the source no longer returns; says how many."""
    if not row_ids:
        return 0
    return tx.changed(_gone(tx, [(row_id,) for row_id in row_ids], at, table=data.table))


def data_rows(tx: Transaction, data: DataTable, *, after: int = 0, limit: int | None = None) -> list[tuple[Any, ...]]:
    """Return rows that the source has now: id, key, batch time, then a value for each source column."""
    t = data.table
    values = [t.c[name] for name in data.columns.values()]
    query = select(t.c["_row_id"], t.c["_member_key"], t.c["_batch_time"], *values).where(
        t.c["_row_id"] > after, t.c["_is_current"] == true()
    )
    return tx.rows(lambda *row: row, query.order_by(t.c["_row_id"]).limit(limit))


def current_row(tx: Transaction, place: DataTableName, key: str) -> tuple[str, datetime | None] | None:
    """Return the key, as it is spelled, and the batch time of a row that the source had last time, if it had it."""
    if not tx.has_table(place.name, place.schema):
        return None
    t = _table(place, ()).c
    query = select(t["_member_key"], t["_batch_time"]).where(
        t["_member_key_fold"] == folded(key), t["_is_current"] == true()
    )
    return next(iter(tx.rows(lambda spelled, time: (spelled, time), query)), None)


def current_rows_of(tx: Transaction, place: DataTableName, folds: Collection[str]) -> dict[str, TypedRow]:
    """Return the rows that some folded keys have in a data table, as the source had them at the last reading."""
    if not folds:
        return {}
    columns = _known_columns(tx, place.name)
    t = _table(place, columns.values()).c
    given = tx.table_of({"key": FoldedKey}, [(fold,) for fold in folds])
    own = (t["_member_key_fold"], t["_batch_time"], t["_row_hash"], t[_KINDS])
    query = select(*own, *(t[column] for column in columns.values())).where(
        t["_member_key_fold"].in_(select(given.c.key)), t["_is_current"] == true(), t[_KINDS].is_not(None)
    )
    return {
        fold: TypedRow(batch_time, row_hash, typed_row(columns, texts, kinds))
        for fold, batch_time, row_hash, kinds, *texts in tx.rows(lambda *row: row, query)
    }


_KINDS = "_cell_kinds"
_OWN_COLUMNS = (
    "_row_id",
    "_member_key",
    "_member_key_fold",
    "_batch_time",
    "_first_seen_at",
    "_last_seen_at",
    "_is_current",
    "_row_hash",
    _KINDS,
)


def _ids_of(tx: Transaction, data: DataTable, keys: Collection[str]) -> dict[str, int]:
    return dict(tx.rows(lambda key, row_id: (key, row_id), _ids(tx, [(key,) for key in keys], table=data.table)))


@prepared
def _fingerprints(_draft: Drafting, *, table: Table) -> Select[Any]:
    return select(table.c["_row_hash"]).where(table.c["_is_current"] == true())


@prepared
def _keys(_draft: Drafting, after: Any, *, table: Table, limit: int) -> Select[Any]:
    t = table.c
    query = select(t["_row_id"], t["_member_key_fold"]).where(t["_is_current"] == true(), t["_row_id"] > after)
    return query.order_by(t["_row_id"]).limit(limit)


@prepared
def _gone(draft: Drafting, row_ids: Any, at: Any, *, table: Table) -> Update:
    given = draft.table_of({"id": BigId}, row_ids)
    chosen = update(table).where(table.c["_row_id"].in_(select(given.c.id)), table.c["_is_current"] == true())
    return chosen.values(_is_current=False, _last_seen_at=at)


@prepared
def _ids(draft: Drafting, keys: Any, *, table: Table) -> Select[Any]:
    t, given = table.c, draft.table_of({"key": FoldedKey}, keys)
    return select(t["_member_key_fold"], t["_row_id"]).where(t["_member_key_fold"].in_(select(given.c.key)))


def _table(place: DataTableName, columns: Collection[str]) -> Table:
    return _table_with(place, tuple(columns))


# The statements of a table go by the table: with another object for the same one they would be built and compiled anew.
@lru_cache(maxsize=200)
def _table_with(place: DataTableName, columns: tuple[str, ...]) -> Table:
    return Table(
        place.name,
        MetaData(),
        Column("_row_id", BigId, primary_key=True, autoincrement=True),
        Column("_member_key", Unicode(MAX_KEY_LENGTH), nullable=False),
        Column("_member_key_fold", FoldedKey, nullable=False, unique=True),
        Column("_batch_time", Instant),
        Column("_first_seen_at", Instant, nullable=False),
        Column("_last_seen_at", Instant, nullable=False),
        Column("_is_current", Boolean, nullable=False),
        Column("_row_hash", Unicode(32), nullable=False),
        _kinds_column(),
        *(Column(column, UnicodeText) for column in columns),
        sqlite_autoincrement=True,
        schema=place.schema,
    )


def _kinds_column() -> Column[Any]:
    return Column(_KINDS, Unicode(MOST_COLUMNS))


def _known_columns(tx: Transaction, name: str) -> dict[str, str]:
    return dict(tx.rows(lambda *names: names, _column_names(tx, name)))


@prepared
def _column_names(_draft: Drafting, name: str) -> Select[Any]:
    query = select(data_table_columns.c.source_name, data_table_columns.c.column_name)
    return query.where(data_table_columns.c.table_name == name).order_by(data_table_columns.c.id)


def _remember_columns(tx: Transaction, name: str, chosen: Mapping[str, str]) -> None:
    rows = [_ColumnName(source, column) for source, column in chosen.items()]
    if rows:
        tx.execute(insert_each(tx, data_table_columns, rows, {"table_name": name}))


def _insert(tx: Transaction, data: DataTable, rows: Sequence[tuple[Any, ...]], at: datetime) -> None:
    if not rows:
        return
    names = ("_member_key", "_member_key_fold", "_batch_time", "_row_hash", _KINDS, *data.columns.values())
    tx.execute(_inserted(tx, rows, at, table=data.table, names=names))


@prepared
def _inserted(draft: Drafting, rows: Any, at: Any, *, table: Table, names: tuple[str, ...]) -> Insert:
    given = draft.table_of({name: table.c[name].type for name in names}, rows)
    values: dict[str, ColumnElement[Any]] = {name: given.c[name] for name in names}
    values["_first_seen_at"] = values["_last_seen_at"] = type_coerce(at, Instant)
    values["_is_current"] = literal(value=True)
    return draft.dialect.insert_from(table, values, given)


def _update(tx: Transaction, data: DataTable, rows: Sequence[tuple[Any, ...]], at: datetime) -> None:
    if not rows:
        return
    names = ("_row_id", "_batch_time", "_row_hash", _KINDS, *data.columns.values())
    tx.execute(_updated(tx, rows, at, table=data.table, names=names))


@prepared
def _updated(draft: Drafting, rows: Any, at: Any, *, table: Table, names: tuple[str, ...]) -> Update:
    given = draft.table_of({name: table.c[name].type for name in names}, rows)
    written = {name: given.c[name] for name in names[1:]}
    changed = update(table).where(table.c["_row_id"] == given.c["_row_id"])
    return changed.values(written | {"_is_current": True, "_last_seen_at": at})


def _checked(key: str) -> str:
    if not is_usable_key(key):
        raise UnusableKey(key, MAX_KEY_LENGTH)
    return key.strip()
