"""Opening a database."""

from functools import partial
from typing import Any, Literal

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError

from matoolkit.clock import Clock, SystemClock
from matoolkit.clouds import PUBLIC, Cloud
from matoolkit.errors import DriverMissing, InvalidDatabaseUrl
from matoolkit.store.dialect import Dialect, dialect_for
from matoolkit.store.dialect.questions import SignIn
from matoolkit.store.sql.driver import run_only
from matoolkit.store.sql.execution import COMPILED, READING, RUNNER, TYPING, Runner, no_statements
from matoolkit.store.sql.reference import SqlAlchemyRunner
from matoolkit.store.sql.transaction import PATIENCE_SECONDS, Store

# Who runs statements: we do, on the driver's cursor, or SQLAlchemy, which is slow and helps to look for faults of ours.
Execution = Literal["driver", "sqlalchemy"]
_RUNNERS: dict[Execution, type[Runner]] = {"driver": Runner, "sqlalchemy": SqlAlchemyRunner}


def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
    execution: Execution = "driver",
    cloud: Cloud = PUBLIC,
) -> Store:
    """Open the database that a URL names; nothing is read or written yet.

    A clock stands in for the database's own, in simulation. `patience_seconds` is how long a statement waits
    for a lock before it gives up. `execution` says who runs statements, and `cloud` where tokens come from.
    """
    parsed = _parsed(url)
    dialect = dialect_for(parsed)
    address = parsed.set(drivername=dialect.driver)
    sign_in = dialect.sign_in(address, clock or SystemClock(), cloud)
    if sign_in is not None:
        address = sign_in.url
    kept = {COMPILED: no_statements(), RUNNER: _RUNNERS[execution], TYPING: dialect.typing()}

    def connected(*, reading: bool) -> Engine:
        engine = _engine(address, dialect, kept)
        _prepare_connections(engine, dialect, patience_seconds, reading=reading)
        if sign_in is not None:
            _sign_in_with(engine, sign_in)
        return engine

    reader = connected(reading=True) if dialect.reads_apart else None
    return Store(connected(reading=False), dialect, clock, patience_seconds, reader)


def _engine(address: URL, dialect: Dialect, kept: dict[str, Any]) -> Engine:
    options: dict[str, Any] = {"hide_parameters": True, "execution_options": kept}
    try:
        return create_engine(address, **options, **dialect.engine_options(address))
    except ImportError as missing:
        raise DriverMissing(dialect.title, dialect.extra) from missing
    except (ArgumentError, TypeError, ValueError):
        raise InvalidDatabaseUrl(f"a part of it makes no sense to {dialect.title}") from None


def _prepare_connections(engine: Engine, dialect: Dialect, patience_seconds: float, *, reading: bool) -> None:
    # Unlike "connect", this comes before SQLAlchemy's own questions to the server.
    @event.listens_for(engine, "first_connect")
    def _recognise(connection: Any, _record: Any) -> None:
        dialect.recognise(connection)

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        dialect.prepare(connection, patience_seconds=patience_seconds, reading=reading)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        _begin_in(connection, dialect)


def _sign_in_with(engine: Engine, sign_in: SignIn) -> None:
    @event.listens_for(engine, "do_connect")
    def _connect(dialect: Any, record: Any, given: Any, options: Any) -> Any:
        return sign_in.connect(partial(dialect.connect, *given, **options), record.info)

    @event.listens_for(engine, "checkout")
    def _renew(_connection: Any, record: Any, _proxy: Any) -> None:
        if sign_in.has_ended(record.info):
            # The pool opens another one in its place.
            raise DisconnectionError


def _begin_in(connection: Connection, dialect: Dialect) -> None:
    reading = bool(connection.get_execution_options().get(READING))
    for statement in dialect.beginning(connection.info, reading=reading):
        run_only(connection, statement)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The original message repeats the URL, and with it a password.
        raise InvalidDatabaseUrl("it does not have the form of a database URL") from None
    if parsed.host and "@" in f"{parsed.host}/{parsed.database}".rpartition("/")[0]:
        # The end of the password was taken for the host, which later messages would repeat.
        hint = "percent-encode the password: write %40 for @ and %2F for /"
        raise InvalidDatabaseUrl("there is an @ too many in front of the database's name", hint=hint)
    return parsed
