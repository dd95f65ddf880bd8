"""Both lifecycles, from publishing to the end, through the command line."""

from datetime import timedelta

import pytest

from matoolkit.cli.program import run
from matoolkit.clock import VirtualClock
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from tests.api.conftest import DOCUMENT, PHASES
from tests.cli.conftest import Cli
from tests.conftest import Rows
from tests.stage import Failing, Silent, Stage

pytestmark = pytest.mark.on("sqlite")


def test_a3_a_manual_batch_goes_from_a_template_to_its_end(cli: Cli, stage: Stage) -> None:
    cli("runbook", "publish", cli.file("wave.yaml", DOCUMENT))
    assert "published wave v1, 0 batches in flight" in cli.err
    template = str(cli.folder / "template.csv")
    cli("template", "download", "wave", "--to", template)
    made = cli.json("batch", "create", "wave", template)
    batch = str(made["batchId"])
    assert (made["memberCount"], made["availablePhases"]) == (1, ["first", "second"])
    cli("batch", "add-members", batch, cli.people("ann@x", "bob@x"), "--reason", "they are ready")
    assert "2 members joined" in cli.err
    cli("batch", "advance", batch)
    assert "init has begun, 1 step; next: first" in cli.err
    cli("batch", "advance", batch, code=5)
    assert "AD411" in cli.err
    stage.run()
    cli.clock.meanwhile = [lambda: None, stage.run]
    cli("batch", "advance", batch, "--wait")
    assert "phase 'first' has begun, 3 members, 6 steps; next: second" in cli.err
    assert "phase 'first' is completed" in cli.err
    cli.clock.meanwhile = [stage.run]
    cli("batch", "advance", batch, "--auto")
    cli("batch", "get", batch, "--wait")
    assert f"batch {batch} · wave v1 · manual · completed" in cli.out.replace("✔ ", "")
    cli("batch", "advance", batch, "--wait")
    assert (
        cli.err
        == f"batch {batch}: nothing is left to do\nwaiting: batch {batch}: completed\nbatch {batch} is completed\n"
    )
    assert [entry["action"] for entry in cli.json("audit", "list", "--batch", batch)] == [
        *["batch.advance"] * 3,
        "batch.add_members",
        "batch.create",
    ]


def test_a3_a_manual_batch_runs_to_its_end_by_itself(cli: Cli, stage: Stage) -> None:
    cli.published()
    batch = cli.created("ann@x")
    cli.clock.meanwhile = [stage.run] * 3
    steps = cli.json("batch", "advance", batch, "--auto")
    assert [step["action"] for step in steps] == ["init_dispatched", "phase_dispatched", "phase_dispatched"]
    assert cli.json("batch", "get", batch)["status"] == "completed"


def test_a3_an_automated_batch_goes_from_the_source_to_its_end(
    cli: Cli, stage: Stage, source: Rows, clock: VirtualClock
) -> None:
    start = clock.now() + timedelta(days=2)
    source.rows = [("ann@x", "Ann", start), ("bob@x", "Bob", start), ("", "Nobody", start)]
    lease = SchedulerLease(stage.store, "test", timedelta(days=30))
    scheduler = Scheduler(stage.store, stage.bus, lambda _: source, clock, lease, timedelta(minutes=5))
    cli("runbook", "publish", "--dry-run", cli.file("wave.yaml", DOCUMENT))
    assert "would publish wave v1" in cli.err
    cli("runbook", "list")
    assert "no runbook is active" in cli.err
    cli("runbook", "publish", cli.file("wave.yaml", DOCUMENT))
    assert "ann@x" in cli("query", "preview", "wave")
    assert "3 rows, 1 set aside; nothing was changed" in cli.err
    cli("automation", "enable", "wave")
    assert cli.json("automation", "status", "wave")["automationEnabled"] is True
    scheduler.tick()
    stage.run()
    (batch,) = cli.json("batch", "list", "--runbook", "wave", "--automated", "--status", "active")
    assert "3 read, 1 set aside" in cli("runbook", "status", "wave")
    days = iter([1, 1])

    def a_day_passes() -> None:
        clock.advance(timedelta(days=next(days), minutes=1))
        scheduler.tick()
        stage.run()

    cli.clock.meanwhile = [a_day_passes] * 2
    cli("batch", "get", str(batch["id"]), "--wait")
    assert f"batch {batch['id']} is completed" in cli.err
    assert "T-1d" in cli.out
    cli("automation", "disable", "wave")


def test_v1_a_version_that_would_repeat_phases_is_asked_about(
    cli: Cli, stage: Stage, source: Rows, clock: VirtualClock
) -> None:
    source.rows = [("ann@x", "Ann", clock.now() + timedelta(hours=1))]
    lease = SchedulerLease(stage.store, "test", timedelta(days=30))
    scheduler = Scheduler(stage.store, stage.bus, lambda _: source, clock, lease, timedelta(minutes=5))
    cli("runbook", "publish", cli.file("wave.yaml", DOCUMENT), "--enable")
    for _ in range(3):
        scheduler.tick()
        stage.run()
    changed = cli.file("changed.yaml", DOCUMENT + "\n# changed\n")
    cli("runbook", "publish", changed, code=2)
    assert "first would run again in batch 1; publish?" in cli.err
    assert [version["version"] for version in cli.json("runbook", "versions", "wave")] == [1]
    cli("runbook", "publish", changed, "--overdue", "ignore", "--dry-run")
    cli("runbook", "publish", changed, "--yes")
    assert [version["version"] for version in cli.json("runbook", "versions", "wave")] == [2, 1]


def test_a3_a_batch_that_fails_is_told_by_the_exit_code_and_retried_by_error(cli: Cli, stage: Stage) -> None:
    cli.published()
    batch = cli.created("ann@x", "bob@x", "eve@x")
    cli.clock.meanwhile = [stage.run] * 2
    stage.answers["Custom-One"] = Failing("no licence")
    cli("batch", "advance", batch, "--auto", code=1)
    (group,) = cli.json("batch", "failures", batch)
    assert (group["error"], group["members"]) == ("no licence", 3)
    shown = cli("batch", "get", batch)
    assert f"matoolkit batch retry {batch} --like {group['exampleStepId']}" in shown
    assert "3 members in first/one: no licence" in shown
    like = ("--like", str(group["exampleStepId"]))
    cli("batch", "retry", batch, *like, "--dry-run")
    assert "from the step that failed: 3 members (ann@x, bob@x, eve@x); nothing was changed" in cli.err
    assert cli.json("batch", "get", batch)["members"] == {"failed": 3}
    cli("batch", "retry", batch, "--like", "9999", "--yes", code=3)
    cli("batch", "retry", batch, *like, code=2)
    assert "--yes" in cli.err
    cli.clock.meanwhile = [stage.run]
    cli("batch", "retry", batch, *like, "--yes", "--wait", "--reason", "not yet bought", code=1)
    assert "3 members of 3 failed again" in cli.err
    stage.answers.clear()
    cli.clock.meanwhile = [stage.run]
    cli("batch", "retry", batch, *like, "--yes", "--wait")
    assert "nobody failed again" in cli.err


def test_a3_an_init_that_failed_is_run_again(cli: Cli, stage: Stage) -> None:
    cli.published()
    batch = cli.created("ann@x")
    stage.answers["Custom-Prepare"] = Failing("no room")
    cli.clock.meanwhile = [stage.run]
    cli("batch", "advance", batch, "--wait", code=1)
    stage.answers.clear()
    cli.clock.meanwhile = [stage.run]
    cli("batch", "retry-init", batch, "--wait")
    assert cli.json("batch", "get", batch)["status"] == "active"


def test_a3_an_init_of_a_newer_version_that_fails_again_ends_the_wait(cli: Cli, stage: Stage) -> None:
    batch = stage.batch(stage.publish(PHASES))
    stage.run()
    stage.change_version(batch, stage.publish(PHASES + "# 2\n"), rerun_init=True)
    stage.answers["Custom-Prepare"] = Failing("no room")
    stage.run()
    cli.clock.meanwhile = [stage.run]
    cli("batch", "retry-init", str(batch.id), "--wait", code=1)
    assert f"batch {batch.id} is held in its init: init of version 2 failed" in cli.err
    stage.answers.clear()
    cli.clock.meanwhile = [stage.run]
    cli("batch", "retry-init", str(batch.id), "--wait")


def test_a3_what_is_undone_after_the_last_phase_is_waited_for(cli: Cli, stage: Stage) -> None:
    undone = DOCUMENT.replace("function: Custom-Three}", "function: Custom-Three, on_failure: undo}")
    undo = "rollbacks:\n  undo:\n    - {name: back, worker_id: worker-01, function: Custom-Back}\n"
    cli("runbook", "publish", cli.file("wave.yaml", undone + undo))
    batch = cli.created("ann@x", "bob@x")
    outcomes = iter([None, Failing("no room")])
    stage.answers["Custom-Three"] = lambda _: next(outcomes)
    stage.answers["Custom-Back"] = Silent()

    def it_is_undone() -> None:
        stage.answer(stage.jobs[-1])
        stage.run()

    cli.clock.meanwhile = [stage.run, stage.run, stage.run, it_is_undone]
    cli("batch", "advance", batch, "--auto")
    assert stage.functions()[-1] == "Custom-Back"
    assert f"batch {batch} is completed, 1 member failed" in cli.err


def test_a3_whoever_begins_again_is_waited_for_although_it_has_not_begun_yet(cli: Cli, stage: Stage) -> None:
    undone = DOCUMENT.replace("function: Custom-Two}", "function: Custom-Two, on_failure: undo}")
    undo = "rollbacks:\n  undo:\n    - {name: back, worker_id: worker-01, function: Custom-Back}\n"
    cli("runbook", "publish", cli.file("wave.yaml", undone + undo))
    batch = cli.created("ann@x", "bob@x")
    stage.answers["Custom-Two"] = Failing("no room")
    cli.clock.meanwhile = [stage.run] * 2
    cli("batch", "advance", batch, "--auto", code=1)
    cli.clock.meanwhile = [lambda: None, lambda: None, stage.run]
    cli("batch", "retry", batch, "--yes", "--wait", code=1)
    assert "again from first: 2 members (ann@x, bob@x)" in cli.err
    assert "2 members of 2 failed again" in cli.err


def test_a3_a_batch_that_is_cancelled_meanwhile_did_not_go_well(cli: Cli) -> None:
    cli.published()
    batch = cli.created("ann@x")
    cli.clock.meanwhile = [lambda: run(["batch", "cancel", batch, "--yes"])]
    cli("batch", "advance", batch, "--wait", code=1)
    assert "cancelled" in cli.err
