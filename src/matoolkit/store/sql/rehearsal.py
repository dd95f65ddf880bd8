"""Statements that are run to see whether the database understands them, and undone at once.

The functions of the store ask for the next thing only when the last one was found. So each statement is answered with
a made-up row, whatever the database said.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Boolean, Connection, Executable, Integer
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from matoolkit.errors import RowConflict, StoreError
from matoolkit.store.dialect.types import Instant, OneOf
from matoolkit.store.sql.execution import Compiled, Runner
from matoolkit.store.sql.faults import ToldApart
from matoolkit.store.sql.prepared import Ready
from matoolkit.store.sql.transaction import Store, Transaction

TakenT = TypeVar("TakenT")

# Long before anything of ours happened: what is due, old or over by then is nothing.
LONG_AGO = datetime(2001, 1, 1, 12, tzinfo=UTC)
# A text that is a word, a fingerprint and the name of a column.
MADE_UP = "ffff"


class Answer:
    """A cursor with one made-up row, if the statement returns any."""

    rowcount = 1

    def __init__(self, statement: Executable | Ready, dialect: Dialect) -> None:
        built: Any = statement.plan.statement if isinstance(statement, Ready) else statement
        row = tuple(_made_up(column.type, dialect) for column in getattr(built, "exported_columns", ()))
        self._rows = [row] if row else []
        self.description = [(None, None)] * len(row)

    def fetchmany(self, _size: int) -> list[tuple[Any, ...]]:
        """Return the row once."""
        found, self._rows = self._rows, []
        return found

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the row."""
        return self._rows


def _made_up(kind: TypeEngine[Any], dialect: Dialect) -> Any:
    if isinstance(kind, Instant):
        return kind.process_bind_param(LONG_AGO, dialect)
    if isinstance(kind, OneOf):
        return next(iter(kind.choices))
    return False if isinstance(kind, Boolean) else 0 if isinstance(kind, Integer) else MADE_UP


class RehearsingRunner(Runner):
    """Runs each statement, undoes it, and notes which ones the database refuses."""

    def __init__(self, connection: Connection, told_apart: ToldApart) -> None:
        super().__init__(connection, ())
        self._told_apart = told_apart
        self.count = 0
        self.refused: list[StoreError] = []

    def run(self, statement: Executable | Ready, compiled: Compiled, take: Callable[[Any], TakenT]) -> TakenT:
        """Run a statement, undo it, and answer with a made-up row."""
        self.count += 1
        try:
            with self._told_apart:
                savepoint = self.connection.begin_nested()
                try:
                    super().run(statement, compiled, _everything)
                finally:
                    savepoint.rollback()
        except RowConflict:
            pass  # a sample that breaks a rule of its table was understood
        except StoreError as error:
            self.refused.append(error)
        return take(Answer(statement, self.connection.dialect))


def _everything(cursor: Any) -> None:
    if cursor.description:
        cursor.fetchall()


class Rehearsal(NamedTuple):
    """A transaction in which each statement is undone at once, and one in which it lasts as long as both."""

    played: Transaction
    real: Transaction
    runner: RehearsingRunner


@contextmanager
def rehearsing(store: Store) -> Iterator[Rehearsal]:
    """Begin a transaction that is undone in the end."""
    told_apart = ToldApart(store.dialect, store.url)
    with told_apart, store.engine.connect() as connection:
        transaction = connection.begin()
        try:
            runner = RehearsingRunner(connection, told_apart)
            real = Transaction(Runner(connection, ()), store.dialect)
            yield Rehearsal(Transaction(runner, store.dialect), real, runner)
        finally:
            transaction.rollback()
