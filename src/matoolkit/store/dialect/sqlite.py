"""SQLite: one file, one writer at a time."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Insert,
    Select,
    StaticPool,
    String,
    Table,
    func,
    literal_column,
    select,
    table,
    true,
    type_coerce,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL

from matoolkit.errors import (
    RowConflict,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from matoolkit.store.dialect.questions import Columns, Dialect, Filling, Property, Rows, parameter
from matoolkit.store.dialect.types import Instant, stored_text

_ERRORS: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: StoreBusy,
    sqlite3.SQLITE_LOCKED: StoreBusy,
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_IOERR: StoreUnavailable,
    sqlite3.SQLITE_CANTOPEN: StoreUnavailable,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_NOTADB: StoreDamaged,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_CONSTRAINT: RowConflict,
}


_OLDEST = (3, 38)  # the first that always knows JSON; UPDATE … FROM and RETURNING are older
_TRIES = 10
_READS_ONLY = "reads only"  # what a connection was told last
# More than there are: the driver keeps 128, and parses what it has dropped once more.
_CACHED_STATEMENTS = 2_000
# Twice the default: a pile then writes half as many pages, which costs less than their being larger.
_PAGE_BYTES = 8192
# What the piles of a large batch touch again and again; the default holds less than one of them.
_CACHE_KIBIBYTES = 32 * 1024
# The log is copied into the file when it has so many pages, which are as many kibibytes as the cache has. Many piles
# touch the same pages, and each is copied once.
_LOG_PAGES = _CACHE_KIBIBYTES * 1024 // _PAGE_BYTES
# Columns of the temporary tables: the rows of a wider one take longer. No record of ours has more than the last.
_WIDTHS = (4, 12, 40)


class SQLite(Dialect):
    """SQLite's answers."""

    name = "sqlite"
    title = "SQLite"
    driver = "sqlite+pysqlite"
    extra = ""
    is_file = True
    data_schema = None

    def engine_options(self, url: URL) -> dict[str, Any]:
        """Keep a database in memory on its only connection."""
        if sqlite3.sqlite_version_info < _OLDEST:
            needed, found = ".".join(map(str, _OLDEST)), sqlite3.sqlite_version
            hint = "use a Python that was built with a newer one, or PostgreSQL"
            raise StoreError(f"SQLite {needed} or newer is needed; this Python has {found}", hint=hint)
        options: dict[str, Any] = {"connect_args": {"cached_statements": _CACHED_STATEMENTS}}
        return options | {"poolclass": StaticPool} if url.database in (None, "", ":memory:") else options

    def prepare(self, connection: Any, *, patience_seconds: float, reading: bool) -> None:  # noqa: ARG002
        """Leave transactions to us, readers beside the writer, every commit on the disk, keys enforced."""
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(patience_seconds * 1000)}")
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        connection.execute("PRAGMA temp_store = MEMORY")
        # Some builds overwrite what is deleted or replaced, which others do not, nor other databases. Most of it is the
        # text of messages, which the rows of their steps keep anyway.
        for schema in ("main", "temp"):
            connection.execute(f"PRAGMA {schema}.secure_delete = OFF")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        _make_tables_to_fill(connection)

    def beginning(self, info: dict[Any, Any], *, reading: bool) -> Iterator[str]:
        """Take the write lock at once: a transaction that reads first could not be sure to get it later."""
        if info.get(_READS_ONLY, False) != reading:
            yield f"PRAGMA query_only = {int(reading)}"
            info[_READS_ONLY] = reading  # only once it was run
        yield "BEGIN" if reading else "BEGIN IMMEDIATE"

    def now(self) -> ColumnElement[datetime]:
        """Ask for the time, written as stored times are."""
        return type_coerce(func.strftime("%Y-%m-%d %H:%M:%f000", "now"), Instant)

    def table_of(self, columns: Columns, name: str, given: Mapping[str, Any] | None = None) -> FromClause:
        """Hand the rows over as JSON; a single column as a plain array, which is quicker to read."""
        rows = func.json_each(parameter(name, String(), given))
        value = rows.table_valued("value", joins_implicitly=True).c.value
        cells = [
            value if len(columns) == 1 else func.json_extract(value, literal_column(f"'$[{position}]'"))
            for position in range(len(columns))
        ]
        typed = zip(cells, columns.items(), strict=True)
        return select(*(type_coerce(cell, kind).label(name) for cell, (name, kind) in typed)).subquery()

    def handed_over(self, columns: Columns, rows: Rows, name: str) -> dict[str, Any]:
        """Write the rows as JSON."""
        rows = _with_stored_times(columns, rows)
        values = [row[0] for row in rows] if len(columns) == 1 else rows
        return {name: orjson.dumps(values).decode()}

    def table_to_fill(self, columns: Columns) -> FromClause | None:
        """Fill a temporary table, which is quicker than reading JSON, except for a single column."""
        if len(columns) == 1:
            return None
        cells: list[ColumnElement[Any]] = [literal_column(_cell(place)) for place in range(len(columns))]
        typed = zip(cells, columns.items(), strict=True)
        given = select(*(type_coerce(cell, kind).label(name) for cell, (name, kind) in typed))
        return given.select_from(table(_given(len(columns)), schema="temp")).subquery()

    def filling(self, columns: Columns, rows: Rows) -> Filling:
        """Put the rows into the temporary table."""
        cells = ", ".join(map(_cell, range(len(columns))))
        places = ", ".join("?" * len(columns))
        name = _given(len(columns))
        fill = f"INSERT INTO temp.{name} ({cells}) VALUES ({places})"  # noqa: S608 - names of our own
        return Filling(f"DELETE FROM temp.{name}", fill, _with_stored_times(columns, rows))  # noqa: S608

    def locking(self, statement: Select[Any], table: Table, *, skip_locked: bool = False) -> Select[Any]:  # noqa: ARG002
        """Change nothing: the transaction holds the only write lock there is."""
        return statement

    def insert_missing(
        self,
        table: Table,
        values: Mapping[str, ColumnElement[Any]],
        source: FromClause,
        key: Iterable[str],
        order_by: ColumnElement[Any] | None = None,
    ) -> Insert:
        """Pass by what is there; the condition keeps the parser from taking ON for the ON of a join."""
        cells = (value.label(name) for name, value in values.items())
        query = select(*cells).select_from(source).where(true()).order_by(order_by)
        return (
            insert(table)
            .from_select(list(values), query, include_defaults=False)
            .on_conflict_do_nothing(index_elements=list(key))
        )

    @contextmanager
    def free_to_rebuild(self, connection: Connection) -> Iterator[None]:
        """Leave foreign keys unchecked; the switch has an effect only outside a transaction."""
        bare = connection.connection
        bare.execute("PRAGMA foreign_keys = OFF")
        try:
            yield
        finally:
            bare.execute("PRAGMA foreign_keys = ON")

    def properties(self, connection: Connection) -> Iterator[Property]:
        """Say the version, and whether readers and the writer stay out of each other's way."""
        yield Property("version", f"SQLite {sqlite3.sqlite_version}")
        mode = str(connection.exec_driver_sql("PRAGMA journal_mode").scalar())
        todo = (
            "" if mode in {"wal", "memory"} else "put the file on a disk of this machine: readers wait for the writer"
        )
        yield Property("journal", mode, todo)

    def lock_schema(self, connection: Connection) -> None:
        """Do nothing: the transaction already holds the write lock."""

    def error_for(self, fault: BaseException) -> type[StoreError]:
        """Go by the primary result code, which is the low byte of the extended one."""
        return _ERRORS.get(getattr(fault, "sqlite_errorcode", 0) & 0xFF, StoreError)


def _write_ahead(connection: sqlite3.Connection) -> None:
    # This change does not wait for a lock as everything else does; taking a lock does, so we wait that way.
    for _ in range(_TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as fault:
            if fault.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CANTOPEN and (path := _only_readable(connection)):
                raise StoreReadOnly(f"SQLite: {path} is in a folder that may only be read") from fault
            if fault.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def _only_readable(connection: sqlite3.Connection) -> Path | None:
    # Even a reader writes: to the files beside a database with a write-ahead log. SQLite only says that it cannot.
    path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    return path if path.exists() and not os.access(path.parent, os.W_OK) else None


def _make_tables_to_fill(connection: sqlite3.Connection) -> None:
    for width in _WIDTHS:
        name = f"temp.{_given(width)}"
        connection.execute(f"CREATE TEMP TABLE {_given(width)} ({', '.join(map(_cell, range(width)))})")
        # Whatever is known about our tables, one that nothing is known about counts as large: SQLite would read all of
        # ours once, to save looking rows up in it.
        connection.execute(f"INSERT INTO {name} DEFAULT VALUES")
        connection.execute(f"ANALYZE {name}")
        connection.execute(f"DELETE FROM {name}")  # noqa: S608 - names of our own


def _given(columns: int) -> str:
    """Name the narrowest temporary table that has room for so many columns."""
    for width in _WIDTHS:
        if columns <= width:
            return f"given{width}"
    raise ValueError(f"{columns} columns are more than any temporary table has")


def _cell(place: int) -> str:
    return f"c{place}"


def _with_stored_times(columns: Columns, rows: Rows) -> Rows:
    places = [place for place, kind in enumerate(columns.values()) if isinstance(kind, Instant)]
    if not places:
        return rows
    stored = cache(stored_text)  # most rows of a statement share their times
    written = [list(row) for row in rows]
    for row in written:
        for place in places:
            if row[place] is not None:
                row[place] = stored(row[place])
    return written
