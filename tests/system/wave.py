"""A wave of people in separate processes: a source, a runbook, and a function that notes who it was called for."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import text

from matoolkit.admin.publishing import publish, set_automation
from matoolkit.clock import SystemClock
from matoolkit.store import Store

COMMAND = [sys.executable, "-c", "from matoolkit.cli.main import main; main()"]

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
        worker_id: {worker}
        function: Note-Step
        params: {{Person: "{{{{email}}}}", Step: step-{number}}}
"""
FUNCTION = """
import os, time
from pathlib import Path
from matoolkit.worker import Context, function

@function("Note-Step")
def note_step(context: Context, person: str, step: str) -> bool:
    '''Write down that a step was done.'''
    notes = os.open(Path(__file__).with_name("notes.txt"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(notes, f"{person} {step}\\n".encode())
    os.close(notes)
    time.sleep(float(os.environ.get("STEP_SECONDS", "0")))
    return True
"""


class Wave:
    """People who all move at one time, in as many steps as there are workers named."""

    def __init__(self, folder: Path, members: int, workers: Sequence[str]) -> None:
        self.members, self.workers = members, workers
        self._folder = folder
        self._functions = folder / "functions"
        self._functions.mkdir(0o700)
        (self._functions / "note.py").write_text(FUNCTION, encoding="utf-8")
        self._started = 0

    def publish(self, store: Store) -> None:
        steps = "".join(STEP.format(number=number, worker=worker) for number, worker in enumerate(self.workers))
        now = SystemClock().now()
        publish(store, RUNBOOK + steps, by="test", now=now)
        set_automation(store, "wave", enabled=True, by="test", now=now)

    def make_people(self, moves_in: timedelta) -> None:
        soon = f"{SystemClock().now() + moves_in:%Y-%m-%d %H:%M:%S}"
        rows = [(f"user{number}@contoso.com", soon) for number in range(self.members)]
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
    def process(self, words: Sequence[str], settings: Mapping[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a command of ours until this is left, on these settings and nobody else's."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MATOOLKIT_")} | {
            "MATOOLKIT_TICK_SECONDS": "2",
            "MATOOLKIT_SWEEP_SECONDS": "5",
            "PEOPLE_URL": f"sqlite:///{self._folder / 'people.db'}",
            "CUSTOM_MODULES_PATH": str(self._functions),
            "SIMULATED_TENANT_URL": "http://127.0.0.1:9",
            "IDLE_TIMEOUT_SECONDS": "0",
        }
        self._started += 1
        with (self._folder / f"{self._started}-{words[0]}.log").open("wb") as log:
            process = subprocess.Popen([*COMMAND, *words], env={**environment, **settings}, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def counted(store: Store, query: str) -> dict[str, int]:
    with store.reading() as tx:
        return dict(tx.rows(lambda name, count: (str(name), int(count)), text(query)))
