"""A SQL Server, or Babelfish in its multi-db mode, on which tests make databases.

A connection takes half a second and the migrations take several, so the tests of a process take turns on one database.
It is emptied before each, and made anew if a test has changed its tables. Connections are handed on as well.
"""

import os
from collections import defaultdict
from contextlib import suppress
from itertools import count
from typing import Any

from mssql_python.exceptions import Error as DriverError
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError

from matoolkit.store import open_store
from matoolkit.store.dialect.mssql import SqlServer
from matoolkit.store.schema import metadata
from matoolkit.store.upgrade import upgrade
from tests.drivers import choose_driver

_numbers = count(1)
_COLUMNS = (
    "SELECT s.name, t.name, c.name FROM sys.columns c JOIN sys.tables t ON t.object_id = c.object_id"
    " JOIN sys.schemas s ON s.schema_id = t.schema_id"
)
_OTHERS = (
    "SELECT t.name, i.name FROM sys.indexes i JOIN sys.tables t ON t.object_id = i.object_id",
    "SELECT name, definition FROM sys.check_constraints",
    "SELECT version_num FROM alembic_version",
)
_DELETE = "; ".join(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables))
_NUMBERED = [
    (table.name, table.autoincrement_column.name)
    for table in metadata.sorted_tables
    if table.autoincrement_column is not None
]
# Numbers begin with 1 again. A table that never had a row would begin with 0 after RESEED.
_RENUMBER = "; ".join(
    f"IF EXISTS (SELECT * FROM sys.identity_columns WHERE object_id = OBJECT_ID('{table}') AND last_value IS NOT NULL)"
    f" DBCC CHECKIDENT ('{table}', RESEED, 0) WITH NO_INFOMSGS"
    for table, _ in _NUMBERED
)
_RENUMBER_BABELFISH = "SELECT " + ", ".join(
    f"setval(pg_get_serial_sequence('{table}', '{column}'), 1, false)" for table, column in _NUMBERED
)
Rows = frozenset[tuple[Any, ...]]


class _Shelf:
    """Connections that nobody uses at the moment, by process and database."""

    def __init__(self) -> None:
        self._idle: defaultdict[tuple[int, URL], list[Any]] = defaultdict(list)

    def serve(self, engine: Engine) -> None:
        """Let an engine take its connections from here, and put them back instead of closing them."""
        idle, close = self._idle[os.getpid(), engine.url], engine.dialect.do_close

        def take(*_: Any) -> Any:
            return idle.pop() if idle else None

        def put_back(connection: Any) -> None:
            try:
                connection.rollback()
                idle.append(connection)
            except DriverError:
                close(connection)

        event.listen(engine, "do_connect", take)
        engine.dialect.do_close = put_back  # type: ignore[method-assign,assignment]
        engine.dialect.do_terminate = close  # type: ignore[method-assign]

    def clear(self, url: URL) -> None:
        for connection in self._idle.pop((os.getpid(), url), ()):
            connection.close()


SHELF = _Shelf()


class SqlServerUnderTest:
    """A server on which databases are made and dropped."""

    def __init__(self, url: str) -> None:
        choose_driver()
        self._url = make_url(url).set(drivername=SqlServer.driver)
        self._admin = _quick(self._url.set(database="master"))
        self._shared: _Shared | None = None
        self.is_babelfish = bool(self.run("SELECT SERVERPROPERTY('Babelfish')")[0][0])

    def run(self, statement: str) -> list[Any]:
        with self._admin.connect() as connection:
            result = connection.execute(text(statement))
            return list(result) if result.returns_rows else []

    def make(self) -> str:
        name = f"matoolkit_test_{os.getpid()}_{next(_numbers)}"
        if self.is_babelfish:
            self._make_beside_others(name)
        else:
            self.run(f"CREATE DATABASE {name} COLLATE Latin1_General_100_BIN2")
            # As on Azure SQL, where both are the default.
            self.run(f"ALTER DATABASE {name} SET READ_COMMITTED_SNAPSHOT ON")
            self.run(f"ALTER DATABASE {name} SET ALLOW_SNAPSHOT_ISOLATION ON")
        return name

    def _make_beside_others(self, name: str) -> None:
        """Try a few times: of two processes that make a database at the same moment, Babelfish refuses one."""
        for _ in range(4):
            with suppress(DBAPIError):
                self.run(f"CREATE DATABASE {name}")
                return
        self.run(f"CREATE DATABASE {name}")

    def make_migrated(self) -> str:
        if self._shared is not None and not self._shared.emptied():
            self._forget()
        if self._shared is None:
            name = self.make()
            store = open_store(self.url_of(name))
            upgrade(store)
            store.close()
            renumber = _RENUMBER_BABELFISH if self.is_babelfish else _RENUMBER
            self._shared = _Shared(name, self._url.set(database=name), renumber)
        return self._shared.name

    def drop(self, name: str) -> None:
        """Drop a database, unless it is the one that all share or a test has lost a connection to it."""
        if self._shared is None or name != self._shared.name:
            SHELF.clear(self._url.set(database=name))
            with suppress(DBAPIError):
                self.run(f"DROP DATABASE {name}")

    def url_of(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)

    def _forget(self) -> None:
        if self._shared is not None:
            self._shared.close()
            name, self._shared = self._shared.name, None
            self.drop(name)

    def close(self) -> None:
        self._forget()
        self._admin.dispose()


class _Shared:
    """A database with all tables, for one test after the other."""

    def __init__(self, name: str, url: URL, renumber: str) -> None:
        self.name = name
        self._renumber = renumber
        self._engine = _quick(url)
        with self._engine.connect() as connection:
            self._shape = _shape(connection)

    def emptied(self) -> bool:
        """Take everything out; say so if that cannot be done, or if the tables are not as they were."""
        try:
            with self._engine.connect() as connection:
                self._drop_the_others(connection)
                if _shape(connection) != self._shape:
                    return False
                connection.exec_driver_sql(f"SET LOCK_TIMEOUT 5000; {_DELETE}")
                connection.exec_driver_sql(self._renumber)
        except DBAPIError:
            return False
        return True

    def _drop_the_others(self, connection: Connection) -> None:
        ours, there = ({row[:2] for row in rows} for rows in (self._shape[0], _rows(connection, _COLUMNS)))
        for schema, table in there - ours:
            connection.exec_driver_sql(f"DROP TABLE [{schema}].[{table}]")

    def close(self) -> None:
        self._engine.dispose()


def _shape(connection: Connection) -> list[Rows]:
    return [_rows(connection, statement) for statement in (_COLUMNS, *_OTHERS)]


def _rows(connection: Connection, statement: str) -> Rows:
    return frozenset(tuple(row) for row in connection.exec_driver_sql(statement))


def _quick(url: URL) -> Any:
    return create_engine(url, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
