"""`matoolkit up`: the whole system in one process, stopped by a signal, killed, and started again."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from matoolkit.clock import SystemClock
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PEOPLE = "employee_id, display_name, nickname, target_upn, aliases, group_id, wave, cutover_at"
COMMAND = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "up"]


class Running:
    """A process whose lines are read as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def says(self, words: str, times: int = 1) -> None:
        until(lambda: sum(words in line for line in self.lines) >= times or self.process.poll() is not None)
        assert sum(words in line for line in self.lines) >= times, self.lines

    def stops(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.ends()

    def ends(self) -> int:
        code = self.process.wait(30)
        self._reader.join(30)
        assert self.process.stderr
        self.process.stderr.close()
        return code

    def _read(self) -> None:
        assert self.process.stderr
        self.lines.extend(iter(self.process.stderr.readline, ""))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runbooks").symlink_to(ROOT / "runbooks")
    return tmp_path


@contextmanager
def up(folder: Path, *options: str) -> Iterator[Running]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MATOOLKIT_")}
    environ |= {"MATOOLKIT_TICK_SECONDS": "1", "MATOOLKIT_SWEEP_SECONDS": "1"}
    if (folder / "people.db").exists():
        environ["DEMO_SOURCE_URL"] = f"sqlite:///{folder / 'people.db'}"
    process = subprocess.Popen([*COMMAND, *options], cwd=folder, env=environ, stderr=subprocess.PIPE, text=True)
    running = Running(process)
    try:
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        running.ends()


def ada_moves(folder: Path, seconds: int) -> None:
    """Make a source of one person who moves soon."""
    cutover = SystemClock().now() + timedelta(seconds=seconds)
    ada = ("E1", "Ada", "ada", "ada@fabrikam.com", "a,b", "group", 1, f"{cutover:%Y-%m-%d %H:%M:%S}")
    with closing(sqlite3.connect(folder / "people.db")) as people, people:
        people.execute(f"CREATE TABLE people ({PEOPLE})")
        people.execute(f"INSERT INTO people VALUES ({', '.join('?' * 8)})", ada)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_demo_runs_and_a_signal_stops_it(folder: Path, number: signal.Signals) -> None:
    with up(folder) as running:
        running.says("wave 1 moves at")
        running.says("New-EntraUser", times=2)
        running.says("the phase is completed  batch=1 phase=stage-mail")
        assert running.stops(number) == 0
    assert "the next start goes on from here" in running.lines[-1]
    assert not any("ERROR" in line or "Traceback" in line for line in running.lines)


def test_what_was_killed_goes_on_where_it_was(folder: Path) -> None:
    ada_moves(folder, seconds=10)
    with up(folder) as running:
        running.says("the phase is completed  batch=1 phase=stage-mail")
        running.stops(signal.SIGKILL)
    with up(folder) as running:
        running.says("version 1 is as it was")
        running.says("the phase is completed  batch=1 phase=cutover")
        assert running.stops(signal.SIGTERM) == 0
    assert not any("New-EntraUser" in line for line in running.lines)


def test_a_fresh_start_forgets_what_was(folder: Path) -> None:
    for options in ((), ("--fresh",)):
        with up(folder, *options) as running:
            running.says("New-EntraUser", times=2)
            assert running.stops(signal.SIGTERM) == 0


def test_a_database_of_ones_own_is_not_emptied(folder: Path) -> None:
    with up(folder, "--fresh", "--database-url", f"sqlite:///{folder / 'mine.db'}") as running:
        assert running.ends() == 2
        running.says("is not emptied")
    with up(folder, "--database-url", f"sqlite:///{folder / 'mine.db'}") as running:
        running.says("New-EntraUser", times=2)
        assert running.stops(signal.SIGTERM) == 0
    assert (folder / "mine.db").exists()
    assert not (folder / ".matoolkit" / "matoolkit.db").exists()
