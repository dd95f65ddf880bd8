"""Clients that keep connections, send half a request, or go away: the server bears them quietly (section 11)."""

import logging
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from httpx import get

from matoolkit.doors.services import Services
from tests.api.test_serve import COMMAND, environment
from tests.servers.api import serving
from tests.waiting import until

pytestmark = pytest.mark.on("sqlite")

HEAD = b"POST /api/runbooks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/yaml\r\nContent-Length: 100\r\n"


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=20) as client:
        yield client


def answer(client: socket.socket) -> bytes:
    """Return all that comes until the connection is closed."""
    return b"".join(iter(lambda: client.recv(65536), b""))


def troubles(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTT", HEAD, HEAD + b"\r\nname: wa"])
def test_s11_a_request_that_stays_half_sent_is_ended(
    services: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    for name in ("HEAD_SECONDS", "BODY_SECONDS"):
        monkeypatch.setattr(f"matoolkit.hosting.serving.{name}", 0.2)
    with serving(services) as address:
        with connected(address) as client:
            client.sendall(sent)
            assert answer(client).startswith(b"HTTP/1.1 408 ")
        assert get(f"{address}/healthz").status_code == 200
    assert troubles(caplog) == []


def test_s11_a_head_that_comes_bit_by_bit_gets_no_more_time(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.hosting.serving.HEAD_SECONDS", 0.5)
    with serving(services) as address, connected(address) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        client.settimeout(0.05)

        def is_ended() -> bool:
            try:
                client.sendall(b"x")
                return client.recv(1000).startswith(b"HTTP/1.1 408 ")
            except TimeoutError:
                return False

        until(is_ended, pause=0)


def test_s11_connections_beyond_the_limit_are_told_to_come_again(
    services: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("matoolkit.hosting.serving.MOST_CONNECTIONS", 5)
    with serving(services) as address:
        with ExitStack() as stack:
            for _ in range(5):
                client = stack.enter_context(connected(address))
                client.sendall(HEAD + b"Expect: 100-continue\r\n\r\n")
                assert client.recv(1000).startswith(b"HTTP/1.1 100 ")
            for _ in range(20):
                with connected(address) as client:
                    refused = answer(client)
                    assert refused.startswith(b"HTTP/1.1 503 ")
                    assert b"Retry-After: 5" in refused
        until(lambda: get(f"{address}/healthz").status_code == 200)
    assert troubles(caplog) == ["taking more connections fails, and is tried again: there are 5 already"]


def test_s11_idle_connections_keep_nobody_out(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matoolkit.hosting.serving.MOST_CONNECTIONS", 5)
    with serving(services) as address, ExitStack() as stack:
        idle = [stack.enter_context(connected(address)) for _ in range(4)]
        for one in idle:
            one.sendall(b"GET /healthz HTT")
        # What the oldest have sent is read before this is answered. A connection that is closed with something to
        # read is reset, and loses its answer.
        assert get(f"{address}/healthz").status_code == 200
        idle.append(stack.enter_context(connected(address)))
        for number in range(3):
            assert get(f"{address}/healthz").status_code == 200
            assert answer(idle[number]).startswith(b"HTTP/1.1 503 ")
            idle.append(stack.enter_context(connected(address)))


@pytest.mark.parametrize("is_reset", [True, False])
def test_s11_a_client_that_goes_away_is_no_error(
    services: Services, caplog: pytest.LogCaptureFixture, is_reset: bool
) -> None:
    with serving(services) as address:
        for head in (HEAD, HEAD.replace(b"application/yaml", b"multipart/form-data; boundary=x")):
            with connected(address) as client:
                client.sendall(head + b"\r\nhalf of it")
                # Connections are accepted in their order, so by then the other one is being read.
                assert get(f"{address}/healthz").status_code == 200
                if is_reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert get(f"{address}/healthz").status_code == 200
    assert troubles(caplog) == []


@pytest.mark.usefixtures("database")
def test_s11_running_out_of_file_handles_is_one_line_and_passes(tmp_path: Path) -> None:
    environ = environment(tmp_path)
    subprocess.run([*COMMAND, "db", "upgrade"], env=environ, check=True, capture_output=True)
    # Half of the handles are kept back for everything else. Without that, connections can use them up.
    unlimited = "import matoolkit.hosting.serving as s; s._most_connections = lambda: 9999"
    program = f"{unlimited}; from matoolkit.cli.main import main; main()"
    command = [
        "sh",
        "-c",
        'ulimit -n 60; exec "$@"',
        "sh",
        sys.executable,
        "-c",
        program,
        "api",
        "serve",
        "--port",
        "0",
    ]
    log = tmp_path / "log"
    with log.open("w") as output, subprocess.Popen(command, env=environ, stderr=output) as process:
        try:
            until(lambda: "serving the admin API" in log.read_text())
            address = "http://127.0.0.1:" + log.read_text().split("port ")[1].split()[0]
            assert get(f"{address}/readyz").status_code == 200
            with ExitStack() as stack:
                for _ in range(100):
                    stack.enter_context(connected(address))
                until(lambda: "no file handles are left" in log.read_text())
            until(lambda: get(f"{address}/healthz").status_code == 200)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
    said = log.read_text().splitlines()
    assert len([line for line in said if "accepting connections fails" in line]) == 1
    assert log.stat().st_size < 1_000, said
