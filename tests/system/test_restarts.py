"""A wave in separate processes, on a database server that is stopped and started while they work.

It runs alone, with `make test-mssql`: a server that restarts is no good to other tests.
"""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from matoolkit.admin.publishing import publish, set_automation
from matoolkit.clock import SystemClock
from matoolkit.store import Store, open_store
from matoolkit.store.upgrade import upgrade
from tests.sqlserver import SqlServerUnderTest
from tests.waiting import until

MEMBERS, STEPS = 1_000, 5
COMMAND = [sys.executable, "-c", "from matoolkit.cli.main import main; main()"]
PROCESSES = [["scheduler", "run"], *[["orchestrator", "run"]] * 2, *[["worker", "run", "--id", "worker-01"]] * 2]

RUNBOOK = """
name: wave
data_source:
  type: sql
  connection: PEOPLE_URL
  query: SELECT email, moves_at FROM people
  primary_key: email
  batch_time_column: moves_at
phases:
  - name: cutover
    offset: T-0
    steps:
"""
STEP = """
      - name: step-{number}
        worker_id: worker-01
        function: Note-Step
        params: {{Person: "{{{{email}}}}", Step: step-{number}}}
"""
FUNCTION = """
import os
from pathlib import Path
from matoolkit.worker import Context, function

@function("Note-Step")
def note_step(context: Context, person: str, step: str) -> bool:
    '''Write down that a step was done.'''
    notes = os.open(Path(__file__).with_name("notes.txt"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(notes, f"{person} {step}\\n".encode())
    os.close(notes)
    return True
"""


class Scene:
    """A source with people, a function that notes who it was called for, and processes."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        self._functions = folder / "functions"
        self._functions.mkdir(0o700)
        (self._functions / "note.py").write_text(FUNCTION, encoding="utf-8")

    def make_people(self) -> None:
        soon = f"{SystemClock().now() + timedelta(seconds=30):%Y-%m-%d %H:%M:%S}"
        rows = [(f"user{number}@contoso.com", soon) for number in range(MEMBERS)]
        with closing(sqlite3.connect(self._folder / "people.db")) as people, people:
            people.execute("CREATE TABLE people (email TEXT PRIMARY KEY, moves_at TEXT)")
            people.executemany("INSERT INTO people VALUES (?, ?)", rows)

    def notes(self) -> list[str]:
        """Return what the function was called for."""
        path = self._functions / "notes.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def logged(self) -> str:
        return "\n".join(path.read_text(encoding="utf-8") for path in sorted(self._folder.glob("*.log")))

    @contextmanager
    def processes(self) -> Iterator[list[subprocess.Popen[bytes]]]:
        """Run every part as a process of its own until this is left."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MATOOLKIT_")} | {
            "MATOOLKIT_DATABASE_URL": self._url,
            "MATOOLKIT_TICK_SECONDS": "2",
            "MATOOLKIT_SWEEP_SECONDS": "5",
            "PEOPLE_URL": f"sqlite:///{self._folder / 'people.db'}",
            "CUSTOM_MODULES_PATH": str(self._functions),
            "SIMULATED_TENANT_URL": "http://127.0.0.1:9",
            "IDLE_TIMEOUT_SECONDS": "0",
            # Babelfish cuts texts of more than 4,000 characters, and the list of functions is longer.
            "WORKER_ANNOUNCE": "false",
        }
        running = []
        try:
            for number, words in enumerate(PROCESSES):
                with (self._folder / f"{number}-{words[0]}.log").open("wb") as log:
                    running.append(subprocess.Popen([*COMMAND, *words], env=environment, stdout=log, stderr=log))
            yield running
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(60)


def counted(store: Store, query: str) -> dict[str, int]:
    with store.reading() as tx:
        return dict(tx.rows(lambda name, count: (str(name), int(count)), text(query)))


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
    now = SystemClock().now()
    publish(store, RUNBOOK + "".join(STEP.format(number=number) for number in range(STEPS)), by="test", now=now)
    set_automation(store, "wave", enabled=True, by="test", now=now)
    scene = Scene(tmp_path, sql_server.url_of(name))
    with scene.processes() as running:
        scene.make_people()
        for share in (0.2, 0.6):
            until(lambda share=share: len(scene.notes()) >= share * MEMBERS * STEPS, 300)  # type: ignore[misc]
            subprocess.run(restart, shell=True, check=True, capture_output=True)
        ended = "SELECT status, COUNT(*) FROM batches GROUP BY status"
        until(lambda: counted(store, ended) == {"completed": 1}, 300, pause=1)
        assert [process.poll() for process in running] == [None] * len(running), scene.logged()
    assert scene.logged().count("the database works again") >= 1, scene.logged()
    noted = Counter(scene.notes())
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
