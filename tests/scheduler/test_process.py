"""`matoolkit scheduler run` and `tick`: processes of their own, on real databases and a real source."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from matoolkit.admin.publishing import publish
from matoolkit.clock import SystemClock
from matoolkit.store import Store
from matoolkit.store.automation import last_tick
from matoolkit.store.batches import unfinished_batches
from matoolkit.store.leases import acquire_lease, held_leases
from tests.databases import SQL_SERVER, Database
from tests.scheduler.calendar import runbook
from tests.waiting import until

NOW = SystemClock().now()
COMMAND = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "scheduler"]


@pytest.fixture
def store(database: Database) -> Store:
    """A store on the real clock, as the other process has it."""
    return database.open()


@pytest.fixture
def environ(store: Store, database: Database, tmp_path: Path) -> dict[str, str]:
    """A source with three people (the row of one cannot be used), and a runbook that reads it."""
    source = tmp_path / "people.db"
    with sqlite3.connect(source) as people:
        people.execute("CREATE TABLE people (id, start, city)")
        start = (NOW + timedelta(days=20)).isoformat()
        people.executemany("INSERT INTO people VALUES (?, ?, 'Bern')", [("ada", start), ("bob", start), ("cy", "soon")])
    people.close()
    publish(store, runbook(), by="ann", now=NOW, enable=True)
    return {
        **os.environ,
        "MATOOLKIT_DATABASE_URL": database.url,
        "MATOOLKIT_TICK_SECONDS": "1",
        # The lease lasts three times as long, and a connection to a SQL Server is slow.
        "MATOOLKIT_SWEEP_SECONDS": "4" if database.kind == SQL_SERVER else "1",
        "SOURCE": f"sqlite:///{source}",
    }


@pytest.fixture
def started(environ: dict[str, str]) -> Iterator[Callable[[], "subprocess.Popen[bytes]"]]:
    processes: list[subprocess.Popen[bytes]] = []

    def start() -> "subprocess.Popen[bytes]":
        processes.append(subprocess.Popen([*COMMAND, "run"], env=environ, stderr=subprocess.PIPE))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def tick(environ: dict[str, str], *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, "tick", *options], env=environ, capture_output=True, text=True, timeout=60)


def ticked(store: Store) -> bool:
    with store.reading() as tx:
        return last_tick(tx, "wave") is not None


@pytest.mark.parametrize("times", [1, 2])
def test_t10_a_signal_ends_the_process_and_lets_the_lease_go(
    store: Store, started: Callable[[], "subprocess.Popen[bytes]"], times: int
) -> None:
    process = started()
    until(lambda: ticked(store))
    for _ in range(times):
        process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    with store.reading() as tx:
        assert held_leases(tx) == []
        (batch,) = unfinished_batches(tx, "wave")
    assert batch.batch_start_time == NOW + timedelta(days=20)


def test_t10_another_scheduler_works_when_the_first_was_killed(
    store: Store, started: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    first = started()
    until(lambda: ticked(store))
    second = started()
    first.kill()
    first.wait()
    with store.reading() as tx:
        (dead,) = held_leases(tx)

    def is_taken_over() -> bool:
        with store.reading() as tx:
            return any(lease.token > dead.token for lease in held_leases(tx))

    until(is_taken_over)
    assert second.poll() is None


def test_one_tick_prints_what_it_did(environ: dict[str, str]) -> None:
    first = tick(environ)
    assert first.returncode == 0, first.stderr
    assert [line.strip() for line in first.stdout.splitlines()[1:]] == [
        "rows     3 read, 1 set aside, 0 ignored",
        "batches  1 created, 0 rescheduled, 0 held",
        "members  2 added, 0 removed, 0 moved, 0 returned, 0 refreshed",
        "phases   0 dispatched",
    ]


def test_one_tick_prints_json_and_nothing_else(environ: dict[str, str]) -> None:
    (tally,) = orjson.loads(tick(environ, "--json").stdout)
    assert tally["rows_set_aside"] == 1
    assert tally["set_aside"]["counts"] == {"bad_batch_time": 1}
    assert tally["set_aside"]["samples"][0]["key"] == "cy"


def test_t2_a_source_that_cannot_be_read_is_exit_code_1(environ: dict[str, str]) -> None:
    failed = tick({name: value for name, value in environ.items() if name != "SOURCE"})
    assert failed.returncode == 1
    assert "SC404" in failed.stderr


def test_t10_a_tick_is_refused_while_another_scheduler_works(store: Store, environ: dict[str, str]) -> None:
    with store.transaction() as tx:
        assert acquire_lease(tx, "scheduler", "somebody", timedelta(minutes=5))
    refused = tick(environ)
    assert (refused.returncode, "SH409" in refused.stderr) == (5, True)
