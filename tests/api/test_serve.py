"""`matoolkit api serve`: a process that answers, refuses what it must not do, and stops when told to."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from httpx import get

from matoolkit.doors.services import Services
from matoolkit.hosting.api import serving
from matoolkit.hosting.entrance import way_to_pages
from matoolkit.hosting.sockets import listening, port_of
from matoolkit.settings import Settings

COMMAND = [sys.executable, "-c", "from matoolkit.cli.main import main; main()"]


def environment(folder: Path) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MATOOLKIT_")}
    return {**kept, "MATOOLKIT_DATABASE_URL": f"sqlite:///{folder}/state.db", "MATOOLKIT_LOG_FORMAT": "text"}


def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    environ = environment(tmp_path)
    subprocess.run([*COMMAND, "db", "upgrade"], env=environ, check=True, capture_output=True)
    command = [*COMMAND, "api", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            said = next(line for line in process.stderr if "serving the admin API" in line)
            address = "http://127.0.0.1:" + said.split("port ")[1].strip()
            assert get(f"{address}/readyz").json() == {"status": "ok"}
            assert get(f"{address}/api/runbooks").json()["items"] == []
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_a_request_that_never_ends_does_not_keep_it_from_stopping(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.hosting.serving.GRACE_SECONDS", 0)
    stop, way = threading.Event(), way_to_pages(Settings(), services.sign_in, services.clock, {})
    with listening("127.0.0.1", 0) as place:
        server = threading.Thread(target=serving(services, way, Settings(), place), args=(stop,), daemon=True)
        server.start()
        address = ("127.0.0.1", port_of(place))
        with socket.create_connection(address) as client:
            client.sendall(b"POST /api/runbooks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
            # Connections are accepted in their order.
            assert get(f"http://127.0.0.1:{address[1]}/healthz").status_code == 200
            stop.set()
            server.join(30)
            assert not server.is_alive()


def test_it_does_not_serve_others_without_sign_in(tmp_path: Path) -> None:
    command = [*COMMAND, "api", "serve", "--host", "0.0.0.0"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 2
    assert "AP411" in done.stderr
    assert "loopback" in done.stderr
    assert "MATOOLKIT_ENTRA_TENANT_ID" in done.stderr


def test_it_says_that_the_tables_are_missing(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "api", "serve"], env=environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 5
    assert "DB511" in done.stderr
