"""W1: `matoolkit worker` as a process: stopped by a signal, killed in mid-job, or out of work."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from matoolkit.clock import SystemClock
from matoolkit.domain.messages import ResultStatus, WorkerHello
from matoolkit.store import Store
from matoolkit.store.schema import bus_messages
from tests.databases import Database
from tests.waiting import until
from tests.workshop import WORKER, Workshop, job_id_of

FUNCTIONS = '''
import os, threading, time, warnings
from pathlib import Path
from matoolkit.worker import Context, Secret, function

PLACE = Path(os.environ["PLACE"])

@function("Wait-ForFile")
def wait_for_file(context: Context, user_id: str, password: Secret = "") -> str:
    """Say that it began, wait for a file, and fail if told to."""
    with (PLACE / f"{user_id}.begun").open("a") as file:
        file.write("x")
    while not (PLACE / f"{user_id}.go").exists():
        time.sleep(0.01)
    if password:
        print("printed", password, flush=True)
        thread = threading.Thread(target=warnings.warn, args=(f"warned of {password}",))
        thread.start()
        thread.join()
        raise ValueError(f"wrong password {password}")
    return user_id
'''

SECRET = "correct-horse-battery"

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def store(database: Database) -> Store:
    """A store on the real clock, as the other process has it."""
    return database.open()


@pytest.fixture
def workshop(store: Store) -> Workshop:
    return Workshop(store, SystemClock())


@pytest.fixture
def start(database: Database, tmp_path: Path) -> Iterator[Start]:
    processes: list[subprocess.Popen[bytes]] = []
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "waiting.py").write_text(FUNCTIONS, encoding="utf-8")
    (functions / "broken.py").write_text("1 +", encoding="utf-8")

    def started(*arguments: str, **environ: str) -> "subprocess.Popen[bytes]":
        known = {
            **os.environ,
            "MATOOLKIT_DATABASE_URL": database.url,
            "CUSTOM_MODULES_PATH": str(functions),
            "PLACE": str(tmp_path),
            "MATOOLKIT_SECRET_THE_SECRET": SECRET,
            "IDLE_TIMEOUT_SECONDS": "0",
            **environ,
        }
        command = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "worker", "--id", WORKER]
        processes.append(
            subprocess.Popen([*command, *arguments], env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
        return processes[-1]

    yield started
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def begun(tmp_path: Path) -> Callable[[str], int]:
    def times(user: str) -> int:
        path = tmp_path / f"{user}.begun"
        return len(path.read_text(encoding="utf-8")) if path.exists() else 0

    return times


def is_takeable(store: Store, job_id: str) -> bool:
    """Look whether a job is locked by nobody, without taking it."""
    with store.reading() as tx:
        locked = select(bus_messages.c.id).where(
            bus_messages.c.message_id == job_id, bus_messages.c.visible_at > tx.now()
        )
        return not tx.values(locked)


def test_w1_a_worker_killed_in_mid_job_is_followed_by_one_that_does_it(
    workshop: Workshop, start: Start, begun: Callable[[str], int], tmp_path: Path
) -> None:
    workshop.send("Wait-ForFile", 1, 2)
    (tmp_path / "u2.go").touch()
    killed = start()
    until(lambda: begun("u1") and workshop.waiting() == 1)
    killed.kill()
    killed.wait(20)
    # Its lock runs out, which takes a minute, or at once if the database is told so.
    with workshop.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE bus_messages SET visible_at = enqueued_at WHERE topic = 'worker-jobs'")
    (tmp_path / "u1.go").touch()
    follower = start()
    workshop.until_settled()
    follower.send_signal(signal.SIGTERM)
    assert follower.wait(20) == 0
    results = workshop.results()
    assert sorted(results) == [job_id_of(1), job_id_of(2)]
    assert {one.status for one in results.values()} == {ResultStatus.SUCCESS}
    assert (begun("u1"), begun("u2")) == (2, 1)


def test_w1_a_signal_lets_running_jobs_end_and_gives_the_rest_back(
    workshop: Workshop, start: Start, begun: Callable[[str], int], tmp_path: Path
) -> None:
    workshop.send("Wait-ForFile", 1, 2, 3)
    process = start(MAX_PARALLELISM="2", SHUTDOWN_GRACE_SECONDS="3")
    until(lambda: begun("u1") and begun("u2"))
    process.send_signal(signal.SIGTERM)
    # Until it has seen the signal and given the third job back, a thread that becomes free may begin it.
    assert process.stderr is not None
    assert any(b"finishing what is at hand" in line for line in process.stderr)
    until(lambda: is_takeable(workshop.store, job_id_of(3)))
    (tmp_path / "u1.go").touch()
    assert process.wait(20) == 0
    assert sorted(workshop.results()) == [job_id_of(1)]
    assert sorted(one.message_id for one in workshop.takeable()) == [job_id_of(2), job_id_of(3)]
    assert begun("u3") == 0


def test_w1_w6_an_idle_worker_says_hello_and_exits_with_0(workshop: Workshop, start: Start) -> None:
    process = start(IDLE_TIMEOUT_SECONDS="1")
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"no job for 1 seconds" in log
    # W5: a broken file is reported and stops nothing.
    assert b"broken.py cannot be used: SyntaxError" in log
    (hello,) = workshop.answers()
    assert isinstance(hello, WorkerHello)
    assert hello.worker_id == WORKER
    assert {"Wait-ForFile", "New-EntraUser"} <= {one.name for one in hello.functions}


def test_w1_health_can_be_asked_for(workshop: Workshop, start: Start) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start("--health-port", str(port), WORKER_ANNOUNCE="false")
    until(lambda: _status(port, "readyz") == 200)
    assert _status(port, "healthz") == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert workshop.answers() == []


def test_w8_a_secret_is_in_no_log_and_no_result(workshop: Workshop, start: Start, tmp_path: Path) -> None:
    (tmp_path / "u.go").touch()
    workshop.send("Wait-ForFile", 1, UserId="u", Password="secret:the-secret")
    workshop.send("Wait-ForFile", 2, UserId="u", Password=SECRET)
    process = start(MATOOLKIT_LOG_LEVEL="DEBUG")
    workshop.until_settled()
    process.send_signal(signal.SIGTERM)
    printed, log = process.communicate(timeout=20)
    results = workshop.results()
    assert {one.error.message for one in results.values() if one.error} == {"wrong password ***"}
    assert b"ValueError" in log
    assert b"printed ***" in printed
    assert b"warned of ***" in log
    assert SECRET.encode() not in printed + log


def _status(port: int, path: str) -> int:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/{path}", timeout=5).status_code
    except httpx.TransportError:
        return 0
