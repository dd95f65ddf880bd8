"""The store and its transactions: all or nothing, and errors in our own words."""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Executable,
    FromClause,
    Select,
    inspect,
    literal,
    select,
)
from sqlalchemy.engine import URL
from sqlalchemy.types import TypeEngine

from matoolkit.clock import Clock, Pace, SystemClock
from matoolkit.crashpoints import crash_point
from matoolkit.errors import MatoolkitError, SignInRefused, StoreBusy, StoreError, StoreUnavailable
from matoolkit.outages import Outage
from matoolkit.store.dialect import Dialect
from matoolkit.store.dialect.questions import Columns, Rows
from matoolkit.store.dialect.types import Instant
from matoolkit.store.sql.execution import GUARDED, READING, RUNNER, Runner, Watcher
from matoolkit.store.sql.faults import ToldApart
from matoolkit.store.sql.prepared import Drafting, Ready, prepared
from matoolkit.store.sql.storable import storable_rows

BEFORE_COMMIT = crash_point("store.before_commit")
AFTER_COMMIT = crash_point("store.after_commit")

PATIENCE_SECONDS = 30.0
_OUR_CLOCK = SystemClock()

RowT = TypeVar("RowT")

log = logging.getLogger(__name__)


class Transaction(Drafting):
    """What the functions of this room work with; services only pass it on.

    What is in `on_commit` is done once the transaction has committed, and not at all if it does not.
    """

    def __init__(self, runner: Runner, dialect: Dialect, clock: Clock | None = None, pace: Pace | None = None) -> None:
        super().__init__(dialect, clock)
        self._runner = runner
        self._pace = pace
        self._connection = runner.connection
        self._told_apart = ToldApart(dialect, self._connection.engine.url)
        self.on_commit: list[Callable[[], object]] = []
        self._noted: dict[WriteNotes, list[Any]] = {}

    @property
    def has_written(self) -> bool:
        """Whether a statement of it has changed a row."""
        return self._runner.has_written

    @contextmanager
    def part(self) -> Iterator[None]:
        """Do a block's work so that it can be undone without the rest of the transaction."""
        reason: StoreError | None = None
        noted, is_undone = {write: list(notes) for write, notes in self._noted.items()}, True
        try:
            with self._told_apart, self._connection.begin_nested():
                try:
                    yield
                except StoreError as error:
                    reason = error
                    raise
            is_undone = False
        except StoreError as error:
            # SQL Server undoes the whole transaction after a deadlock, so the part could not be undone by itself.
            if reason is not None and reason.transient and error is not reason:
                raise reason from None
            raise
        finally:
            if is_undone:
                self._noted = noted

    def note(self, write: "WriteNotes", what: Any) -> None:
        """Keep something for `write`, which is called with all of it when the transaction is about to commit."""
        self._noted.setdefault(write, []).append(what)

    def write_notes(self) -> None:
        """Write what was noted so far: the transaction is about to commit, or somebody wants to see it now."""
        while self._noted:
            write, notes = self._noted.popitem()
            write(self, notes)

    def execute(self, statement: Executable | Ready) -> None:
        """Run a statement."""
        self.changed(statement)

    def changed(self, statement: Executable | Ready) -> int:
        """Run a statement and say how many rows it changed."""
        with self._told_apart:
            return self._runner.changed(statement)

    def rows(self, make: Callable[..., RowT], statement: Executable | Ready, **given: Any) -> list[RowT]:
        """Run a statement and make a record of each row it returns.

        The fields of a record are the columns of their names, and what is given for all rows. Anything else than a
        record takes the columns in their order.
        """
        with self._told_apart:
            return self._runner.rows(make, statement, given)

    def values(self, statement: Executable | Ready) -> list[Any]:
        """Run a statement and return the first column of what it returns."""
        with self._told_apart:
            return self._runner.values(statement)

    def operations(self) -> Operations:
        """Return what changes tables, in the transaction like everything else."""
        return Operations(MigrationContext.configure(self._connection))

    def has_table(self, name: str, schema: str | None = None) -> bool:
        """Tell whether the database has a table."""
        with self._told_apart:
            return inspect(self._connection).has_table(name, schema)

    def has_column(self, table: str, name: str, schema: str | None = None) -> bool:
        """Tell whether a table of the database has a column."""
        with self._told_apart:
            return any(column["name"] == name for column in inspect(self._connection).get_columns(table, schema))

    def now(self) -> ColumnElement[datetime]:
        """Return the database's clock as an expression, or the virtual clock that stands in for it."""
        return self.dialect.now() if self.clock is None else literal(self.clock.now(), Instant)

    def time(self) -> datetime:
        """Say what time it is: the database's, or that of a calendar that runs faster (rule U5)."""
        return self.calendar_time(self.lock_time())

    def calendar_time(self, real: datetime) -> datetime:
        """Return the time of the calendar at a time by which locks count."""
        return real if self._pace is None else self._pace.at(real)

    def real_time(self, instant: datetime) -> datetime:
        """Return when the calendar comes to an instant, by the clock of locks."""
        return instant if self._pace is None else self._pace.real(instant)

    def lasting(self, real: timedelta) -> timedelta:
        """Return how much time of the calendar passes while something real is waited for."""
        return real if self._pace is None else self._pace.lasting(real)

    def lock_time(self) -> datetime:
        """Ask the time by which leases, locks and limits of requests count: the database's, or the virtual clock's."""
        if self.clock is not None:
            return self.clock.now()
        if self.dialect.is_file:
            return _OUR_CLOCK.now()  # a file has no other
        return cast("datetime", self.values(_time(self))[0])

    def table_of(self, columns: Columns, rows: Rows) -> FromClause:
        """Make rows of values a table of a statement."""
        given = self.dialect.handed_over(columns, storable_rows(columns, rows), "rows")
        return self.dialect.table_of(columns, "rows", given)

    def values_of(self, kind: TypeEngine[Any], values: Collection[Any]) -> FromClause:
        """Make values a table of a statement, with `value` for its only column."""
        return self.table_of({"value": kind}, [(value,) for value in values])


# Writes what was noted in a transaction.
WriteNotes = Callable[[Transaction, Sequence[Any]], None]


@prepared
def _time(draft: Drafting) -> Select[Any]:
    return select(draft.now())


class Store:
    """A database with the state in it."""

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        clock: Clock | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
        reader: Engine | None = None,
    ) -> None:
        self.engine = engine
        self._engines = [engine] if reader is None else [engine, reader]
        # A reader with connections of its own has them because its database does not know transactions that only read.
        reading = {READING: True} if reader is None else {READING: True, GUARDED: True}
        self.reader = (reader or engine).execution_options(**reading)
        self.dialect = dialect
        self._clock = clock
        # Set before the first transaction, where a calendar runs faster than the clock.
        self.pace: Pace | None = None
        self._patience_seconds = patience_seconds
        self._pen = threading.Lock()
        # They are told of every statement before it runs.
        self.watchers: list[Watcher] = []
        # The store logs its outages, whichever part meets them. A database that can be read can still be full or
        # read-only.
        self._away = Outage("the database", log, clock, is_owner=True)
        self._unwritable = Outage("writing to the database", log, clock, is_owner=True)

    @property
    def url(self) -> URL:
        """Where the database is."""
        return self.engine.url

    @contextmanager
    def transaction(self, *, patience_seconds: float | None = None) -> Iterator[Transaction]:
        """Do a block's work all or not at all; the patience is for other threads that write to the same file."""
        patience = self._patience_seconds if patience_seconds is None else patience_seconds
        with (
            self._watched(),
            ToldApart(self.dialect, self.url),
            self._only_writer(patience),
            self.engine.connect() as connection,
        ):
            tx = self._transaction(connection)
            with connection.begin():
                yield tx
                tx.write_notes()
                BEFORE_COMMIT.reached()
            AFTER_COMMIT.reached()
        if tx.has_written:
            self._unwritable.worked()
        # After the connection and the writer's lock are released: the relay begins transactions of its own here.
        for action in tx.on_commit:
            _follow_up(action)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Let a block read without waiting for writers, from one picture of the data."""
        with self._watched(), ToldApart(self.dialect, self.url), self.reader.begin() as connection:
            yield self._transaction(connection)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Tell when the database goes away and when it is back."""
        begun = self._away.beginning()
        try:
            yield
        except StoreError as error:
            if error.is_outage:
                outage = self._away if isinstance(error, StoreUnavailable | SignInRefused) else self._unwritable
                outage.failed(error, begun)
            raise
        self._away.worked()
        self._unwritable.opened()

    def _transaction(self, connection: Connection) -> Transaction:
        runner: type[Runner] = connection.get_execution_options()[RUNNER]
        return Transaction(runner(connection, self.watchers), self.dialect, self._clock, self.pace)

    @contextmanager
    def _only_writer(self, patience_seconds: float) -> Iterator[None]:
        """Let the threads of this process write to a file in turn.

        Otherwise SQLite makes all but one of them sleep, longer each time, and mostly longer than the lock lasts.
        """
        if not self.dialect.is_file:
            yield
            return
        if not self._pen.acquire(timeout=patience_seconds):
            raise StoreBusy("another thread has been writing for too long")
        try:
            yield
        finally:
            self._pen.release()

    def own(self, tx: object) -> Transaction | None:
        """Return what was passed on as a transaction if it is one of this store."""
        return tx if isinstance(tx, Transaction) and tx._connection.engine is self.engine else None  # noqa: SLF001

    def within(self, tx: Transaction) -> "Store":
        """Return this store with every transaction a part of a larger one, undone with it or by itself."""
        inner = _Within(self.engine, self.dialect, self._clock, tx)
        inner.pace = self.pace
        return inner

    def close(self) -> None:
        """Let all connections go."""
        for engine in self._engines:
            engine.dispose()


def _follow_up(action: Callable[[], object]) -> None:
    """Do the work after a commit; if it fails, the commit stands, and a sweep does the rest."""
    try:
        action()
    except MatoolkitError as error:
        if not error.is_outage:
            log.exception("what was to follow a commit failed")
    except Exception:
        log.exception("what was to follow a commit failed")


class _Within(Store):
    def __init__(self, engine: Engine, dialect: Dialect, clock: Clock | None, tx: Transaction) -> None:
        super().__init__(engine, dialect, clock)
        self._outer = tx

    @contextmanager
    def transaction(self, *, patience_seconds: float | None = None) -> Iterator[Transaction]:  # noqa: ARG002
        with self._outer.part():
            yield self._outer

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        yield self._outer
