"""The driver's own cursor: one statement at a time, and its errors as SQLAlchemy tells them.

Running a statement through SQLAlchemy takes about ten times as long as SQLite takes for it. SQLAlchemy still opens,
keeps and ends connections and their transactions, and is told here when one of them is broken.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

TakenT = TypeVar("TakenT")


def run(
    connection: Connection,
    text: str,
    parameters: Any,
    take: Callable[[Any], TakenT],
    types: Sequence[Any] | None = None,
) -> tuple[TakenT, int]:
    """Run a statement, take what is wanted from the cursor, and say how many rows the driver counted.

    `types` are those of the parameters, for a driver that would ask the server for them.
    """

    def executed(cursor: Any) -> tuple[TakenT, int]:
        if types:
            cursor.setinputsizes(types)
        cursor.execute(text, parameters)
        # SQLite counts the rows that a statement returns only once they were fetched.
        return take(cursor), cursor.rowcount

    return _with_cursor(connection, text, executed)


def run_many(connection: Connection, text: str, rows: Sequence[Any]) -> None:
    """Run a statement that returns nothing once for each row."""
    _with_cursor(connection, text, lambda cursor: cursor.executemany(text, rows))


def run_only(connection: Connection, text: str) -> None:
    """Run a statement that has no values and returns nothing."""
    _with_cursor(connection, text, lambda cursor: cursor.execute(text))


def _with_cursor(connection: Connection, text: str, do: Callable[[Any], TakenT]) -> TakenT:
    """Do something with a cursor, which is closed after that."""
    # SQLAlchemy refuses to hand the connection out if it broke earlier in this transaction. A new one would begin a new
    # transaction without a word, and the first half of the work would be lost.
    bare = connection.connection
    cursor = None
    try:
        cursor = bare.cursor()
        taken = do(cursor)
        cursor.close()
    except BaseException as fault:
        is_lost = _is_lost(connection, cursor, fault)
        if is_lost:
            # Otherwise the pool would give the broken connection to the next transaction.
            connection.invalidate(fault)
        elif cursor is not None:
            with suppress(Exception):  # the first fault is the one to tell
                cursor.close()
        if isinstance(fault, connection.dialect.loaded_dbapi.Error):
            raise _told(connection.dialect, text, fault, is_lost=is_lost) from fault
        raise
    return taken


def _is_lost(connection: Connection, cursor: Any, fault: BaseException) -> bool:
    if isinstance(fault, connection.dialect.loaded_dbapi.Error):
        return connection.dialect.is_disconnect(fault, connection.connection, cursor)
    # If the program ends in the middle of a statement, the state of the connection is unknown.
    return not isinstance(fault, Exception)


def _told(dialect: Dialect, text: str, fault: Exception, *, is_lost: bool) -> BaseException:
    # SQLAlchemy picks its own class for the driver's, so that `faults` tells both apart by one set of classes.
    error = dialect.loaded_dbapi.Error
    return DBAPIError.instance(
        text, None, fault, error, hide_parameters=True, connection_invalidated=is_lost, dialect=dialect
    )
