"""A wave in separate processes, on a database server that is stopped and started while they work.

It runs alone, with `make test-mssql`: a server that restarts is no good to other tests.
"""

import os
import subprocess
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from matoolkit.store import open_store
from matoolkit.store.upgrade import upgrade
from tests.sqlserver import SqlServerUnderTest
from tests.system.wave import Wave, counted
from tests.waiting import until

MEMBERS, STEPS = 1_000, 5
PROCESSES = [["scheduler", "run"], *[["orchestrator", "run"]] * 2, *[["worker", "run", "--id", "worker-01"]] * 2]


@pytest.mark.on("mssql")
def test_a_wave_of_a_thousand_loses_nothing_while_the_server_restarts_twice(
    sql_server: SqlServerUnderTest, tmp_path: Path
) -> None:
    restart = os.environ.get("MATOOLKIT_TEST_MSSQL_RESTART")
    if not restart:
        pytest.skip("set MATOOLKIT_TEST_MSSQL_RESTART to a command that stops the server and starts it again")
    name = sql_server.make()
    store = open_store(sql_server.url_of(name))
    upgrade(store)
    wave = Wave(tmp_path, MEMBERS, ["worker-01"] * STEPS)
    wave.publish(store)
    settings = {
        "MATOOLKIT_DATABASE_URL": sql_server.url_of(name),
        # Babelfish cuts texts of more than 4,000 characters, and the list of functions is longer.
        "WORKER_ANNOUNCE": "false",
    }
    with ExitStack() as stack:
        running = [stack.enter_context(wave.process(words, settings)) for words in PROCESSES]
        wave.make_people(timedelta(seconds=30))
        for share in (0.2, 0.6):
            until(lambda share=share: len(wave.notes()) >= share * MEMBERS * STEPS, 300)  # type: ignore[misc]
            subprocess.run(restart, shell=True, check=True, capture_output=True)
        ended = "SELECT status, COUNT(*) FROM batches GROUP BY status"
        until(lambda: counted(store, ended) == {"completed": 1}, 300, pause=1)
        assert [process.poll() for process in running] == [None] * len(running), wave.logged()
    assert wave.logged().count("the database works again") >= 1, wave.logged()
    noted = Counter(wave.notes())
    assert len(noted) == MEMBERS * STEPS, "no step of anybody was forgotten"
    steps = "SELECT status, COUNT(*) FROM step_executions GROUP BY status"
    assert counted(store, steps) == {"succeeded": MEMBERS * STEPS}, "and each counted once"
    assert counted(store, "SELECT status, COUNT(*) FROM batch_members GROUP BY status") == {"active": MEMBERS}
    assert counted(store, "SELECT 'dead', COUNT(*) FROM dead_letters") == {"dead": 0}
    assert counted(store, "SELECT 'waits', COUNT(*) FROM bus_messages") == {"waits": 0}
    # A worker that cannot tell what it did keeps the answer; only a lock that ran out lets another do it again.
    assert sum(noted.values()) - len(noted) <= MEMBERS * STEPS / 50
    store.close()
    sql_server.drop(name)
