"""Databases in memory that are made once for a process and emptied for every seed."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import Connection, text

from matoolkit.clock import Clock
from matoolkit.simulate.triggers import TRIGGERS
from matoolkit.store import Store, Transaction, open_store
from matoolkit.store.dialect.questions import Filling
from matoolkit.store.sql.execution import GUARDED, Runner, Watcher
from matoolkit.store.upgrade import upgrade


class _CountingRunner(Runner):
    """Knows how many of the connection's changes were to no table of ours."""

    def __init__(self, connection: Connection, watchers: Iterable[Watcher], bare: sqlite3.Connection) -> None:
        super().__init__(connection, watchers)
        self._bare = bare
        self._before = bare.total_changes
        self._filled = 0

    @property
    def changes(self) -> int:
        """How many rows were changed since it was made."""
        return self._bare.total_changes - self._before - self._filled

    def fill(self, filling: Filling) -> None:
        """Put rows where their statement looks for them, which changes nothing yet."""
        before = self._bare.total_changes
        super().fill(filling)
        self._filled += self._bare.total_changes - before


class WatchedStore(Store):
    """A store of one process in the simulation: between two transactions others may move."""

    between: Callable[[], None] | None = None
    # Looks at a transaction that is about to be committed; is told how many rows it changes.
    inspect: Callable[[int], None] | None = None
    connection: sqlite3.Connection

    @contextmanager
    def transaction(self, *, patience_seconds: float | None = None) -> Iterator[Transaction]:
        """Do a block's work all or not at all; then another process may have its turn."""
        with super().transaction(patience_seconds=patience_seconds) as tx:
            yield tx
            if self.inspect is not None:
                self.inspect(self._runner.changes)
        if self.between is not None:
            self.between()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Let a block read; then another process may have its turn."""
        with super().reading() as tx:
            yield tx
        if self.between is not None:
            self.between()

    def _transaction(self, connection: Connection) -> Transaction:
        self._runner = _CountingRunner(connection, self.watchers, self.connection)
        return Transaction(self._runner, self.dialect, self._clock)


class MemoryDatabase:
    """One database in memory; statements that were compiled for one seed serve the next."""

    def __init__(self) -> None:
        self._store = open_store("sqlite://")
        upgrade(self._store)
        with self._store.transaction() as tx:
            for statement in TRIGGERS:
                tx.execute(text(statement))
        self._connection = self._borrowed()
        self._empty = sqlite3.connect(":memory:")
        self._connection.backup(self._empty)

    def emptied(self) -> None:
        """Forget everything that is in it."""
        self._empty.backup(self._connection)

    def open(self, clock: Clock) -> WatchedStore:
        """Open it as one process does."""
        engine = self._store.engine
        store = WatchedStore(engine, self._store.dialect, clock)
        store.connection = self._connection
        # There is one connection for all. SQLite parses every statement anew after it was told that a connection only
        # reads, or reads no longer, so we refuse what writes instead.
        store.reader = engine.execution_options(**{GUARDED: True})
        return store

    def look(self, query: str) -> list[tuple[Any, ...]]:
        """Read something behind the system's back, between two transactions or in the open one."""
        return self._connection.execute(query).fetchall()

    def meddle(self, statement: str) -> int:
        """Change something behind the system's back, and return the number of rows."""
        return self._connection.execute(statement).rowcount

    def note(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        """Record something in the open transaction; a rollback removes it."""
        self._connection.executemany(statement, rows)

    def _borrowed(self) -> sqlite3.Connection:
        borrowed = self._store.engine.raw_connection()
        try:
            connection = borrowed.driver_connection
        finally:
            borrowed.close()
        if not isinstance(connection, sqlite3.Connection):
            raise TypeError("the simulation runs on SQLite in memory")
        return connection


@cache
def memory_database(name: str) -> MemoryDatabase:  # noqa: ARG001 - the cache goes by it
    """Return the database of this process that has a name."""
    return MemoryDatabase()
