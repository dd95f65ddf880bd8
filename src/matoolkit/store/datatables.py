"""Data tables: the rows of a runbook version's query, kept for people to report from (rules D2 and T4).

A row is written when it is new, when it changed, when it leaves and when it comes back; otherwise nothing is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, cast

import orjson
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    MetaData,
    Table,
    Unicode,
    UnicodeText,
    case,
    literal,
    select,
    true,
    update,
)
from sqlalchemy.schema import CreateTable

from matoolkit.clock import as_utc
from matoolkit.domain.keys import MAX_KEY_LENGTH, folded, is_usable_key
from matoolkit.domain.texts import storable
from matoolkit.errors import TooManyColumns, UnusableKey
from matoolkit.store.datanames import column_names
from matoolkit.store.dialect.questions import insert_from
from matoolkit.store.dialect.types import BigId, FoldedKey, Instant
from matoolkit.store.schema import data_table_columns
from matoolkit.store.statements import insert_each
from matoolkit.store.transaction import Transaction

# Of a query. A database page holds a row of pointers to this many long texts, and our own columns.
MOST_COLUMNS = 300


@dataclass(frozen=True, slots=True)
class DataTable:
    """A data table that is ready to take rows with these source columns."""

    name: str
    columns: Mapping[str, str]
    table: Table


class DataRow(NamedTuple):
    """A row of the source: a text or nothing for each source column, in the order of `DataTable.columns`."""

    member_key: str
    batch_time: datetime | None
    values: Sequence[str | None]


class KnownRow(NamedTuple):
    """What the table knows of a member; the hash is empty when the source no longer returns it."""

    key: str
    row_id: int
    row_hash: str


class KnownRows:
    """What the table knows of all members: enough to see what changed."""

    def __init__(self, rows: Sequence[KnownRow]) -> None:
        self.rows = rows
        self.hashes = {row_hash for _, _, row_hash in rows}

    @cached_property
    def ids(self) -> dict[str, int]:
        """Row of each folded key; made when the first change is seen, and most of the time there is none."""
        return {key: row_id for key, row_id, _ in self.rows}


@dataclass(frozen=True, slots=True)
class Upserted:
    """How many rows were new, changed (or came back), and as they were."""

    inserted: int
    changed: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class _ColumnName:
    source_name: str
    column_name: str


def open_data_table(tx: Transaction, name: str, sources: Sequence[str]) -> DataTable:
    """Create a data table, or add the columns that it does not have yet."""
    known = _known_columns(tx, name)
    missing = column_names(sources, known, _OWN_COLUMNS)
    columns = known | missing
    if len(columns) > MOST_COLUMNS:
        raise TooManyColumns(name, len(columns), MOST_COLUMNS)
    table = _table(name, columns.values())
    if not tx.has_table(name):
        tx.execute(CreateTable(table))
    else:
        for column in missing.values():
            tx.operations().add_column(name, Column(column, UnicodeText))
    _remember_columns(tx, name, missing)
    return DataTable(name, columns, table)


def known_rows(tx: Transaction, data: DataTable) -> KnownRows:
    """Return what the table knows."""
    t = data.table.c
    row_hash = case((t["_is_current"] == true(), t["_row_hash"]), else_="")
    query = select(t["_member_key_fold"], t["_row_id"], row_hash)
    return KnownRows(cast("list[KnownRow]", tx.execute(query).all()))


def upsert_rows(tx: Transaction, data: DataTable, rows: Sequence[DataRow], known: KnownRows, at: datetime) -> Upserted:
    """Write the rows that are new or not as they are known; the rows of a query may come in pieces."""
    new: list[tuple[Any, ...]] = []
    changed: list[tuple[Any, ...]] = []
    for row, row_hash in zip(rows, map(hash_of, rows), strict=True):
        if row_hash in known.hashes:
            continue
        key = folded(row.member_key)
        row_id = known.ids.get(key)
        if row_id is None:
            new.append((_checked(row.member_key), key, row.batch_time, row_hash, *row.values))
        else:
            changed.append((row_id, row.batch_time, row_hash, *row.values))
    _insert(tx, data, new, at)
    _update(tx, data, changed, at)
    return Upserted(len(new), len(changed), len(rows) - len(new) - len(changed))


def mark_gone(tx: Transaction, data: DataTable, known: KnownRows, present: Collection[str], at: datetime) -> int:
    """Mark the rows whose folded keys the source no longer returns; says how many those are."""
    gone = [(row_id,) for key, row_id, row_hash in known.rows if key not in present and row_hash]
    if not gone:
        return 0
    t = data.table
    given = tx.table_of({"id": BigId}, gone)
    chosen = update(t).where(t.c["_row_id"].in_(select(given.c.id)), t.c["_is_current"] == true())
    return tx.changed(chosen.values(_is_current=False, _last_seen_at=at))


def data_rows(tx: Transaction, data: DataTable, *, after: int = 0, limit: int | None = None) -> list[tuple[Any, ...]]:
    """Return rows that the source has now: id, key, batch time, then a value for each source column."""
    t = data.table
    values = [t.c[name] for name in data.columns.values()]
    query = select(t.c["_row_id"], t.c["_member_key"], t.c["_batch_time"], *values).where(
        t.c["_row_id"] > after, t.c["_is_current"] == true()
    )
    return [tuple(row) for row in tx.execute(query.order_by(t.c["_row_id"]).limit(limit))]


def hash_of(row: DataRow) -> str:
    """Return the fingerprint by which a change of a row is seen; it does not change while what is stored does not."""
    batch_time = None if row.batch_time is None else as_utc(row.batch_time)
    content = (row.member_key, batch_time, _without_trailing_nulls(row.values))
    return blake2b(_dumped(content), digest_size=16).hexdigest()


_OWN_COLUMNS = (
    "_row_id",
    "_member_key",
    "_member_key_fold",
    "_batch_time",
    "_first_seen_at",
    "_last_seen_at",
    "_is_current",
    "_row_hash",
)


def _dumped(content: tuple[str, datetime | None, Sequence[str | None]]) -> bytes:
    try:
        return orjson.dumps(content)
    except orjson.JSONEncodeError:  # half a character, which is seldom enough to try first
        key, batch_time, values = content
        return orjson.dumps((storable(key), batch_time, [value and storable(value) for value in values]))


def _without_trailing_nulls(values: Sequence[str | None]) -> Sequence[str | None]:
    # A column that was added at the end, and is empty in a row, does not change the row.
    end = len(values)
    while end and values[end - 1] is None:
        end -= 1
    return values if end == len(values) else values[:end]


def _table(name: str, columns: Collection[str]) -> Table:
    return Table(
        name,
        MetaData(),
        Column("_row_id", BigId, primary_key=True, autoincrement=True),
        Column("_member_key", Unicode(MAX_KEY_LENGTH), nullable=False),
        Column("_member_key_fold", FoldedKey, nullable=False, unique=True),
        Column("_batch_time", Instant),
        Column("_first_seen_at", Instant, nullable=False),
        Column("_last_seen_at", Instant, nullable=False),
        Column("_is_current", Boolean, nullable=False),
        Column("_row_hash", Unicode(32), nullable=False),
        *(Column(column, UnicodeText) for column in columns),
        sqlite_autoincrement=True,
    )


def _known_columns(tx: Transaction, name: str) -> dict[str, str]:
    query = select(data_table_columns.c.source_name, data_table_columns.c.column_name).where(
        data_table_columns.c.table_name == name
    )
    return dict(tx.rows(lambda *names: names, query.order_by(data_table_columns.c.id)))


def _remember_columns(tx: Transaction, name: str, chosen: Mapping[str, str]) -> None:
    rows = [_ColumnName(source, column) for source, column in chosen.items()]
    if rows:
        tx.execute(insert_each(tx, data_table_columns, rows, {"table_name": name}))


def _insert(tx: Transaction, data: DataTable, rows: Sequence[tuple[Any, ...]], at: datetime) -> None:
    if not rows:
        return
    names = ("_member_key", "_member_key_fold", "_batch_time", "_row_hash", *data.columns.values())
    t = data.table.c
    given = tx.table_of({name: t[name].type for name in names}, rows)
    values: dict[str, ColumnElement[Any]] = {name: given.c[name] for name in names}
    values["_first_seen_at"] = values["_last_seen_at"] = literal(at, Instant)
    values["_is_current"] = literal(value=True)
    tx.execute(insert_from(data.table, values, given))


def _update(tx: Transaction, data: DataTable, rows: Sequence[tuple[Any, ...]], at: datetime) -> None:
    if not rows:
        return
    names = ("_row_id", "_batch_time", "_row_hash", *data.columns.values())
    t = data.table
    given = tx.table_of({name: t.c[name].type for name in names}, rows)
    written = {name: given.c[name] for name in names[1:]}
    tx.execute(
        update(t)
        .where(t.c["_row_id"] == given.c["_row_id"])
        .values(written | {"_is_current": True, "_last_seen_at": at})
    )


def _checked(key: str) -> str:
    if not is_usable_key(key):
        raise UnusableKey(key, MAX_KEY_LENGTH)
    return key.strip()
