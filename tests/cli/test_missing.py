"""The command line says what is missing: automation, functions, rows set aside, members left alone."""

from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.gates import GateKind
from matoolkit.domain.messages import AnnouncedFunction, AnnouncedParameter, WorkerHello
from matoolkit.ports import Outgoing
from matoolkit.store.holds import Hold, hold_batches
from tests.cli.conftest import Cli
from tests.scheduler.calendar import Calendar
from tests.stage import WORKER, Stage

pytestmark = pytest.mark.on("sqlite")

MOVER = '''
from matoolkit.worker import Context, function


@function("Move-Desk")
def move_desk(context: Context, room: str) -> None:
    """Move a desk."""
'''
RUNBOOK = """\
name: desks
data_source: {type: sql, connection: SOURCE, query: SELECT id FROM people, primary_key: id, batch_time: immediate}
phases:
  - {name: now, offset: T-0, steps: [{name: move, worker_id: worker-01, function: Move-Desk, params: {PARAMETER: "1"}}]}
"""


def test_t1_a_publication_without_automation_says_so_and_how_to_enable_it(cli: Cli) -> None:
    cli.published()
    assert "automation of wave is off" in cli.err
    assert "`matoolkit automation enable wave`" in cli.err
    path = str(cli.folder / "wave.yaml")
    assert cli.json("runbook", "publish", path, "--again")["automationEnabled"] is False
    cli("runbook", "publish", path, "--again", "--dry-run", "--enable")
    assert "is off" not in cli.err
    cli("runbook", "publish", path, "--again", "--enable")
    assert "automation is on" in cli.err
    cli("runbook", "publish", path, "--again")
    assert "is off" not in cli.err
    assert cli.json("runbook", "publish", path)["automationEnabled"] is True


@pytest.mark.parametrize("given", ["option", "variable"])
def test_r11_lint_knows_functions_of_your_own(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, given: str, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    (folder / "desks.py").write_text(MOVER, encoding="utf-8")
    (folder / "desks.py").chmod(0o600)
    good = cli.file("good.yaml", RUNBOOK.replace("PARAMETER", "Room"))
    bad = cli.file("bad.yaml", RUNBOOK.replace("PARAMETER", "Rom"))
    cli("runbook", "lint", good, "--strict", code=1)
    assert "Move-Desk" in cli.out
    if given == "variable":
        monkeypatch.setenv("CUSTOM_MODULES_PATH", str(folder))
    option = ["--functions", str(folder)] if given == "option" else []
    cli("runbook", "lint", good, "--strict", *option)
    cli("runbook", "lint", bad, "--strict", *option, code=1)
    assert "Rom" in cli.out
    (folder / "broken.py").write_text("import nothing_like_this", encoding="utf-8")
    (folder / "broken.py").chmod(0o600)
    cli("runbook", "lint", good, "--strict", *option)
    assert "broken.py: ModuleNotFoundError" in cli.err


def test_r11_lint_knows_what_workers_announced_if_it_may_ask(cli: Cli, stage: Stage) -> None:
    room = AnnouncedParameter("Room", "string", is_mandatory=True)
    stage.bus.send([Outgoing("hello", WorkerHello(WORKER, (AnnouncedFunction("Move-Desk", (room,)),)))])
    stage.handle()
    good = cli.file("good.yaml", RUNBOOK.replace("PARAMETER", "Room"))
    cli("runbook", "lint", good, "--strict", code=1)
    cli("runbook", "lint", good, "--strict", "--announced")
    cli("runbook", "lint", cli.file("bad.yaml", RUNBOOK.replace("PARAMETER", "Rom")), "--announced", "--strict", code=1)


def test_t3_t5_t6_the_status_of_a_runbook_says_whom_it_left_alone_and_why(
    cli: Cli, stage: Stage, clock: VirtualClock
) -> None:
    calendar = Calendar(stage.store, clock)
    calendar.publish()
    people = [f"u{number}" for number in range(20)]
    calendar.in_source(*people)
    calendar.tick()
    calendar.gone(*people[:10])
    calendar.in_source("new")
    calendar.in_source("odd", at="03/04/2026")
    calendar.tick()
    calendar.tick()
    shown = cli("runbook", "status", "wave")
    batch = calendar.batch().id
    assert "12 read, 1 set aside" in shown
    assert "odd  " in shown
    assert "the order of day and month is ambiguous" in shown
    assert "wait to join, because the batch is held" in shown
    assert "new" in shown
    assert f"{batch:>5}  {calendar.start:%Y-%m-%d %H:%M} UTC" in shown
    assert "the source no longer returns 10 of its 20 members" in shown
    seen = cli.json("runbook", "status", "wave")
    assert (seen["heldCount"], [one["batchId"] for one in seen["held"]]) == (1, [batch])
    assert seen["lastTick"]["batchesHeld"] == 0


def test_t7_a_hold_of_a_reschedule_names_the_phases_that_would_be_overdue(
    cli: Cli, stage: Stage, clock: VirtualClock
) -> None:
    calendar = Calendar(stage.store, clock)
    calendar.publish()
    calendar.in_source("ann")
    calendar.tick()
    batch = calendar.batch()
    start = (clock.now() + timedelta(minutes=30)).isoformat()
    held = orjson.dumps({"kind": "reschedule", "start": start}).decode()
    with stage.store.transaction() as tx:
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "it would start too soon", "k", held)], clock.now())
    shown = cli("hold", "show", str(batch.id))
    assert "with that start these phases would be overdue and begin at once: prepare, warn\n" in cli.err
    assert "cutover 2026-" in shown
    assert [due["phaseName"] for due in cli.json("hold", "show", str(batch.id))["newDues"]] == [
        "prepare",
        "warn",
        "cutover",
    ]
    cli("hold", "approve", str(batch.id), code=2)
    assert "overdue then: prepare, warn. Approve?" in cli.err


def test_counts_of_a_tick_are_what_the_reference_says(stage: Stage, clock: VirtualClock) -> None:
    calendar = Calendar(stage.store, clock)
    calendar.publish()
    later = calendar.start + timedelta(days=3)
    calendar.in_source(*(f"u{number}" for number in range(20)))
    calendar.in_source("x", at=later)
    first = calendar.tick()
    assert (first.rows_read, first.batches_created, first.members_added) == (21, 2, 21)
    calendar.in_source("u0", at=later)
    calendar.gone("u1")
    calendar.in_source("u2", city="Basel")
    second = calendar.tick()
    assert (second.members_moved, second.members_added, second.members_removed) == (1, 1, 1)
    assert (second.members_refreshed, second.batches_held, second.rows_ignored) == (1, 0, 0)
    calendar.gone(*(f"u{number}" for number in range(3, 20)))
    assert (calendar.tick().batches_held, calendar.tick().batches_held) == (1, 0)
