"""Any database that SQLAlchemy can reach, read as a stream and, where the database can, read-only (rule R4)."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, NullPool, create_engine, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from matoolkit.errors import SourceFailed
from matoolkit.ports import Piece

# Few enough that wide rows fit into memory: the driver holds as many again.
ROWS_IN_A_PIECE = 500

# What makes a transaction read-only, by database. Elsewhere the account's permissions must see to it.
_READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET TRANSACTION READ ONLY",
    "mysql": "SET TRANSACTION READ ONLY",
    "mariadb": "SET TRANSACTION READ ONLY",
}


class SqlSource:
    """A database behind a SQLAlchemy URL. Each query has a connection of its own, which is closed after it."""

    def __init__(self, address: str, *, rows_in_a_piece: int = ROWS_IN_A_PIECE) -> None:
        self._rows = rows_in_a_piece
        self._engine = _engine(address)

    def pieces(self, query: str) -> Iterator[Piece]:
        """Run a query and return its result in pieces, at least one."""
        with _told_in_our_words(self._engine.url), self._engine.connect() as connection:
            _make_read_only(connection)
            streaming = connection.execution_options(stream_results=True, max_row_buffer=self._rows)
            result = streaming.exec_driver_sql(_as_driver_text(self._engine, query))
            columns = tuple(result.keys())
            partitions = result.partitions(self._rows)
            yield Piece(columns, next(partitions, []))
            for rows in partitions:
                yield Piece(columns, rows)


def _engine(address: str) -> Engine:
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        # The original message repeats the address, and with it a password.
        raise SourceFailed("the source's address does not have the form of a database URL") from None
    try:
        return create_engine(url, poolclass=NullPool, hide_parameters=True)
    except (NoSuchModuleError, ImportError):
        message = f"no driver for '{url.drivername}' is installed"
        raise SourceFailed(message, hint="install the database's driver beside matoolkit") from None


def _make_read_only(connection: Connection) -> None:
    if statement := _READ_ONLY.get(connection.dialect.name):
        connection.exec_driver_sql(statement)


def _as_driver_text(engine: Engine, query: str) -> str:
    """Escape percent signs for drivers that write parameters as %s."""
    return query.replace("%", "%%") if engine.dialect.paramstyle in {"format", "pyformat"} else query


@contextmanager
def _told_in_our_words(url: URL) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as fault:
        cause = getattr(fault, "orig", None) or fault
        message = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        if url.password:
            message = message.replace(str(url.password), "***")
        raise SourceFailed(f"the source could not be queried: {message}") from fault
