"""`matoolkit orchestrator run`: a process of its own, stopped by a signal."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from matoolkit.clock import SystemClock
from matoolkit.domain.states import BatchStatus
from matoolkit.store import Store
from tests.databases import Database
from tests.stage import Stage
from tests.waiting import until

from .runbooks import TWO_PHASES


@contextmanager
def orchestrating(database: Database) -> Iterator[subprocess.Popen[bytes]]:
    environ = {**os.environ, "MATOOLKIT_DATABASE_URL": database.url, "MATOOLKIT_SWEEP_SECONDS": "1"}
    command = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "orchestrator", "run"]
    process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def store(database: Database) -> Store:
    """A store on the real clock, as the other process has it."""
    return database.open()


@pytest.fixture
def stage(store: Store) -> Stage:
    return Stage(store, SystemClock())  # type: ignore[arg-type]


def test_a_batch_goes_through_and_a_signal_ends_the_process(stage: Stage, database: Database) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 20)
    stage.due(batch, "prepare", "cutover", "check")
    with orchestrating(database) as process:
        until(lambda: stage.work() * 0 or stage.reload(batch).status is BatchStatus.COMPLETED)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert len(stage.jobs) == 80
