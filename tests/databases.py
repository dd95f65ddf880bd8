"""Databases that tests make, open and drop."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, Protocol

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from matoolkit.clock import Clock
from matoolkit.store import Store, open_store
from matoolkit.store.datanames import DataTableName
from matoolkit.store.sql.engine import Execution
from matoolkit.store.sql.execution import COMPILED, Compiled
from matoolkit.store.sql.prepared import Plan
from matoolkit.store.sql.recent import Recent
from matoolkit.store.upgrade import upgrade
from tests.sqlserver import SHELF

KINDS = ("sqlite", "postgresql")
SQL_SERVER = "mssql"
# SQLite, with statements that SQLAlchemy runs instead of the store's kernel.
REFERENCE = "sqlalchemy"
# SQLite for the state, and Azure Service Bus for the messages.
SERVICE_BUS = "servicebus"
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
_numbers = count(1)
# A statement is compiled once for all databases of a kind: half of the time of a small test went into that.
_compiled: dict[str, Recent[Plan, Compiled]] = {
    kind: Recent("compiled statements", 1_000_000) for kind in (*KINDS, SQL_SERVER)
}


def place_of(store: Store, table: str) -> DataTableName:
    """Say where a data table of a version is that was published in this release."""
    return DataTableName(table, store.dialect.data_schema)


def full_name(store: Store, table: str) -> str:
    """Name such a table for a query of a test."""
    return f"{schema}.{table}" if (schema := store.dialect.data_schema) else table


@dataclass
class Database:
    """A database that a test can open as often as it likes."""

    url: str
    kind: str
    execution: Execution = "driver"
    opened: list[Store] = field(default_factory=list)

    def open(self, clock: Clock | None = None, patience_seconds: float = 10) -> Store:
        store = open_store(self.url, clock=clock, patience_seconds=patience_seconds, execution=self.execution)
        for engine in (store.engine, store.reader):
            engine.update_execution_options(**{COMPILED: _compiled[self.kind]})
        if self.kind == SQL_SERVER:
            SHELF.serve(store.engine)
            SHELF.serve(store.reader)
        self.opened.append(store)
        return store

    def close(self) -> None:
        for store in self.opened:
            store.close()


class Server(Protocol):
    """A server on which databases are made and dropped."""

    def make(self) -> str: ...

    def make_migrated(self) -> str: ...

    def url_of(self, name: str, /) -> str: ...

    def drop(self, name: str, /) -> None: ...


class PostgresServer:
    """A server on which databases are made and dropped."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql+psycopg")
        self._admin = create_engine(self._url, isolation_level="AUTOCOMMIT")
        self._migrated: str | None = None

    def run(self, statement: str, **parameters: Any) -> list[Any]:
        with self._admin.connect() as connection:
            result = connection.execute(text(statement), parameters)
            return list(result) if result.returns_rows else []

    def make(self, template: str = "template0") -> str:
        name = f"matoolkit_test_{os.getpid()}_{next(_numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy ENCODING 'UTF8'")
        return name

    def make_migrated(self) -> str:
        if self._migrated is None:
            name = self.make()
            store = open_store(self.url_of(name))
            upgrade(store)
            store.close()
            self._migrated = name
        return self.make(self._migrated)

    def drop(self, name: str) -> None:
        self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def url_of(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)

    def close(self) -> None:
        if self._migrated is not None:
            self.drop(self._migrated)
        self._admin.dispose()
