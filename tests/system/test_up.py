"""`matoolkit up`: the whole system in one process, stopped by a signal, killed, and started again."""

import os
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from matoolkit.cli.program import run
from matoolkit.clock import SystemClock
from matoolkit.hosting.demo import make_source
from matoolkit.store import open_store
from matoolkit.store.leases import held_leases
from matoolkit.store.upgrade import upgrade
from tests.databases import SQL_SERVER, Database
from tests.interrupting import HEEDING_CTRL_C, interrupted_at
from tests.waiting import until

COMMAND = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "up"]
FIRST, SECOND = "('ada', 'grace', 'alan', 'joan')", "('katherine', 'edsger', 'hedy')"


class Running:
    """A process whose lines are read as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def says(self, *words: str, times: int = 1) -> str:
        """Wait for a line that has all of these words, or all of those, and return it."""

        def found() -> list[str]:
            wanted = [some.split() for some in words]
            return [line for line in list(self.lines) if any(all(one in line for one in some) for some in wanted)]

        until(lambda: len(found()) >= times or self.process.poll() is not None, 120)
        assert len(found()) >= times, (words, self.lines)
        return found()[0]

    def address(self, name: str) -> str:
        """Return the address that a part was said to have."""
        return next(word for word in self.says(f"{name} http://127.0.0.1").split() if word.startswith("http"))

    def approves(self, people: "People", names: str, seconds: int) -> None:
        """Let people move once ticks look for them: a batch that is first seen after its T waits for a person."""
        until(lambda: get(f"{self.address('API')}/api/runbooks/demo/status")["lastTick"] is not None, 60)
        people.approve(names, seconds)

    def stops(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.ends()

    def ends(self) -> int:
        code = self.process.wait(90)
        self._reader.join(30)
        assert self.process.stdout
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout
        self.lines.extend(iter(self.process.stdout.readline, ""))


class People:
    """The demo's source in the hands of a test: nobody is approved until it says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        make_source(path, SystemClock().now())
        self._change("approved_at = '2999-01-01', withdrawn_at = NULL", "1 = 1")

    def approve(self, names: str, seconds: int) -> None:
        """Let people move so many seconds from now; whose time cannot be read keeps it."""
        now = SystemClock().now()
        cutover = f"{now + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"
        known = "CASE nickname WHEN 'joan' THEN cutover_at ELSE ? END"
        self._change(f"approved_at = '2000-01-01', cutover_at = {known}", f"nickname IN {names}", cutover)

    def withdraw(self, name: str) -> None:
        self._change("withdrawn_at = '2000-01-01'", "nickname = ?", name)

    def follow(self, name: str, other: str) -> None:
        """Let somebody join the wave of another."""
        same = "(SELECT cutover_at FROM people WHERE nickname = ?)"
        self._change(f"approved_at = '2000-01-01', cutover_at = {same}", "nickname = ?", other, name)

    def _change(self, values: str, where: str, *given: str) -> None:
        with closing(sqlite3.connect(self.path)) as people, people:
            people.execute(f"UPDATE people SET {values} WHERE {where}", given)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def people(folder: Path) -> People:
    return People(folder / "people.db")


@contextmanager
def up(folder: Path, *options: str, **environment: str) -> Iterator[Running]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MATOOLKIT_")}
    environ |= {"MATOOLKIT_TICK_SECONDS": "1", "MATOOLKIT_SWEEP_SECONDS": "1", **environment}
    if (folder / "people.db").exists():
        environ["DEMO_SOURCE_URL"] = f"sqlite:///{folder / 'people.db'}"
    ports = () if "--port" in options else ("--port", "0")
    process = subprocess.Popen(
        [*COMMAND, *ports, *options],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    running = Running(process)
    try:
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        running.ends()


def get(url: str) -> Any:
    return httpx.get(url, trust_env=False, timeout=30).raise_for_status().json()


def arrived(running: Running) -> dict[str, dict[str, Any]]:
    """Return who is in the tenant, by nickname."""
    return {user["mailNickname"]: user for user in get(f"{running.address('tenant')}/_tenant/users")}


def check_first_wave(running: Running) -> None:
    """Make sure that two have moved, one was rolled back, and one was set aside."""
    api, there = f"{running.address('API')}/api", arrived(running)
    assert get(f"{api}/batches/1")["status"] == "completed"
    members = {member["memberKey"]: member for member in get(f"{api}/batches/1/members")["items"]}
    assert {key: member["status"] for key, member in members.items()} == {
        "ada@contoso.com": "active",
        "grace@contoso.com": "active",
        "alan@contoso.com": "failed",
    }
    for name in ("ada", "grace"):
        assert there[name]["accountEnabled"]
        assert there[name]["groups"]
        assert f"smtp:{name}.contoso@fabrikam.com" in there[name]["emailAddresses"]
    # Who is killed between making an account and saying so cannot know later whose it is, and lets it be.
    alan = get(f"{api}/batches/1/members/{members['alan@contoso.com']['id']}")
    assert ("alan" in there) is not alan["outputs"]["AccountCreated"]
    assert get(f"{api}/runbooks/demo/status")["lastTick"]["rowsSetAside"] == 1


def check_hints(running: Running, folder: Path) -> None:
    """Make sure that what is said to be tried can be tried."""
    hints = [shlex.split(line, comments=True) for line in running.lines if line.startswith("  matoolkit ")]
    assert [hint[1] for hint in hints] == ["batch", "batch", "batch", "runbook", "runbook"]
    for _, *words in hints:
        given = [str(folder / word) if word.endswith(".yaml") else "1" if word == "2" else word for word in words]
        assert run([*given, "--api-url", running.address("API")]) == 0, words


@pytest.mark.waits
@pytest.mark.on("postgresql", "mssql")
def test_a_wave_on_a_server_is_told_as_it_happens(folder: Path, people: People, empty_database: Database) -> None:
    # The lease lasts three sweeps; connections and first statements are slow on a SQL Server.
    is_slow = empty_database.kind == SQL_SERVER
    pace = {"MATOOLKIT_SWEEP_SECONDS": "4"} if is_slow else {}
    with up(folder, "--database-url", empty_database.url, **pace) as running:
        running.approves(people, FIRST, seconds=30 if is_slow else 5)
        running.says("#1 ● found 3 members of demo, ada@contoso.com, grace@contoso.com, alan@contoso.com")
        running.says("! set aside joan@contoso.com: ambiguous")
        running.says("#1 ▶ due phase prepare, planned for T-2m")
        running.says("✔ done ada@contoso.com create-account")
        running.says("↻ again alan@contoso.com join-group in 5s: there is no group")
        running.says("… waits grace@contoso.com check-addresses, every 5s")
        running.says("✖ failed alan@contoso.com join-group: there is no group")
        running.says("↶ undone alan@contoso.com remove-account (undo-account)")
        running.says("★ migrated ada@contoso.com")
        running.says("★ migrated grace@contoso.com")
        running.says("■ ended the batch is completed: 2 migrated, 1 failed")
        running.says("Try next")
        check_first_wave(running)
        check_hints(running, folder)
        assert "alan" not in arrived(running)
        assert running.stops(signal.SIGTERM) == 0
    with up(folder, "--database-url", empty_database.url, **pace) as running:
        running.says("#1 ● found completed: 2 migrated, 1 failed")
        check_first_wave(running)
        assert running.stops(signal.SIGTERM) == 0
    assert not (folder / ".matoolkit" / "matoolkit.db").exists()
    assert not any("\x1b" in line or "Traceback" in line for line in running.lines)


@pytest.mark.waits
def test_what_is_killed_again_and_again_goes_on_where_it_was(folder: Path, people: People) -> None:
    with up(folder) as running:
        running.says("M&A Toolkit")
        running.stops(signal.SIGKILL)
    for moment in ("#1 ● found", "✔ done create-account", "↻ again alan", "✔ done check-addresses"):
        with up(folder) as running:
            if moment == "#1 ● found":
                running.approves(people, FIRST, seconds=5)
            # What happened just before the last kill is not told again, so the end has to do.
            running.says(moment, "#1 completed: migrated")
            running.stops(signal.SIGKILL)
    with up(folder) as running:
        running.says("It goes on where it was")
        running.approves(people, SECOND, seconds=20)
        running.says("✔ done hedy@contoso.com join-group")
        people.withdraw("hedy")
        people.follow("emmy", "katherine")
        running.says("- left hedy@contoso.com: the source no longer returns it")
        running.stops(signal.SIGKILL)
    with up(folder) as running:
        running.says("#2 ★ migrated", times=3)
        running.says("#2 ■ ended the batch is completed: 3 migrated, 1 left")
        check_first_wave(running)
        there = arrived(running)
        assert {"katherine", "edsger", "emmy"} <= there.keys()
        assert "hedy" not in there
        assert running.stops(signal.SIGINT) == 0


@pytest.mark.waits
def test_the_demo_finds_its_waves_and_only_one_process_runs_it(folder: Path) -> None:
    with up(folder) as first:
        for batch, who in (("#1", "ada@contoso.com"), ("#2", "katherine@contoso.com"), ("#3", "claude@contoso.com")):
            first.says(f"{batch} ● found T is {who}")
        first.says("! set aside joan@contoso.com")
        with up(folder, "--fresh") as second:
            assert second.ends() == 5
            second.says("HO409")
        assert first.stops(signal.SIGTERM) == 0
    assert "the next start goes on from here" in first.lines[-1]
    assert not any("warning" in line or "Traceback" in line for line in first.lines)
    with up(folder, "--fresh", MATOOLKIT_LOG_FORMAT="json") as fresh:
        # A person who asks for a log gets a log.
        fresh.says('"event":"3 joined: "batch":1')
        fresh.stops(signal.SIGTERM)
    assert all(line.startswith("{") for line in fresh.lines)


WAVE = """\
name: wave
data_source:
  type: sql
  connection: WAVE_URL
  query: SELECT id, nick, team, moves_at FROM people
  primary_key: id
  batch_time_column: moves_at
phases:
  - name: prepare
    offset: T-5d
    steps:
      - name: make
        worker_id: worker-new
        function: New-EntraUser
        params: {DisplayName: "{{nick}}", UserPrincipalName: "{{nick}}@fabrikam.example", MailNickname: "{{nick}}"}
        output_params: {UserId: Id}
  - name: cutover
    offset: T-0
    steps:
      - name: join
        worker_id: worker-01
        function: Add-EntraGroupMember
        params: {GroupId: "{{team}}", UserId: "{{UserId}}"}
"""
TEAM = "22222222-aaaa-4bbb-8ccc-00000000000a"
SIX_DAYS_IN_A_QUARTER_OF_A_MINUTE = "34560"


def wave(folder: Path) -> dict[str, str]:
    """Write a runbook and its source, with somebody who moves in six days."""
    (folder / "wave.yaml").write_text(WAVE, encoding="utf-8")
    moves_at = f"{SystemClock().now() + timedelta(days=6):%Y-%m-%d %H:%M:%S}"
    with closing(sqlite3.connect(folder / "wave.db")) as source, source:
        source.execute("CREATE TABLE people (id, nick, team, moves_at)")
        source.execute("INSERT INTO people VALUES (?, ?, ?, ?)", ("p1", "ada", TEAM, moves_at))
    return {"WAVE_URL": f"sqlite:///{folder / 'wave.db'}"}


@pytest.mark.waits
def test_u5_a_runbook_of_your_own_runs_at_its_speed_and_goes_on_with_its_calendar_after_a_kill(folder: Path) -> None:
    environment, fast = wave(folder), ("--speed", SIX_DAYS_IN_A_QUARTER_OF_A_MINUTE)
    with up(folder, "wave.yaml", *fast, **environment) as running:
        running.says("the whole system in one process, on wave")
        running.says("time runs 34,560 times as fast as the clock: a day takes 2s")
        running.says("x34560 ✔ done p1 make")
        headers = httpx.get(f"{running.address('API')}/api/batches", trust_env=False, timeout=30).headers
        assert headers["Matoolkit-Speed"] == SIX_DAYS_IN_A_QUARTER_OF_A_MINUTE
        before = datetime.fromisoformat(headers["Matoolkit-Now"])
        running.stops(signal.SIGKILL)
    with up(folder, "--speed", "60", **environment) as refused:
        assert refused.ends() == 5
        refused.says("HO411")
    with up(folder, **environment) as running:
        running.says("#1 ★ migrated p1", "#1 completed: 1 migrated")
        after = httpx.get(f"{running.address('API')}/api/batches", trust_env=False, timeout=30).headers
        assert datetime.fromisoformat(after["Matoolkit-Now"]) > before
        assert arrived(running)["ada"]["groups"] == [TEAM]
        assert running.stops(signal.SIGTERM) == 0
    assert not any("Traceback" in line for line in running.lines)


def test_a_runbook_with_errors_is_shown_with_its_lines_and_starts_nothing(folder: Path) -> None:
    (folder / "bad.yaml").write_text("name: x\nphasez: []\n", encoding="utf-8")
    with up(folder, "bad.yaml") as running:
        assert running.ends() == 1
        running.says("bad.yaml:2:1: error: unknown key 'phasez' [RB101]")
    assert not (folder / ".matoolkit").exists()


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(folder: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        with up(folder, "--port", port) as running:
            assert running.ends() == 5
            running.says(f"error: another program listens on 127.0.0.1, port {port}")
            running.says("HO410")
    assert not (folder / ".matoolkit" / "matoolkit.db").exists()


def test_a_database_of_ones_own_is_not_emptied(folder: Path) -> None:
    with up(folder, "--fresh", "--database-url", f"sqlite:///{folder / 'mine.db'}") as running:
        assert running.ends() == 2
        running.says("is not emptied")
    assert not (folder / ".matoolkit").exists()


def interrupted(folder: Path, module: str, *command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MATOOLKIT_")}
    return subprocess.run(
        [sys.executable, "-c", HEEDING_CTRL_C + interrupted_at(module), *command],
        cwd=folder,
        env=environ | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.mark.parametrize("module", ["matoolkit.hosting.all_in_one", "uvicorn"])
def test_ctrl_c_before_everything_runs_is_not_forgotten(folder: Path, module: str) -> None:
    done = interrupted(folder, module, "up", "--port", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "the next start goes on from here" in done.stdout


def test_t10_a_tick_that_is_interrupted_before_it_begins_lets_go_and_says_so(folder: Path) -> None:
    url = f"sqlite:///{folder / 'state.db'}"
    store = open_store(url)
    upgrade(store)
    done = interrupted(
        folder, "matoolkit.scheduler.tick", "scheduler", "tick", MATOOLKIT_DATABASE_URL=url, MATOOLKIT_LOG_FORMAT="text"
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    with closing(store), store.reading() as tx:
        assert held_leases(tx) == []
