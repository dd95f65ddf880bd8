"""Rule O14 on the command line: what a retry would do is shown before, with who is left out and why."""

from datetime import timedelta

from matoolkit.store.batches import BatchRow
from matoolkit.store.runbooks import RunbookRow
from tests.cli.conftest import Cli
from tests.conftest import Rows
from tests.stage import Failing, Stage

PHASES = """
phases:
  - name: prepare
    offset: T-5d
    steps:
      - {name: create, worker_id: worker-01, function: Create, params: {Email: '{{Email}}'}}
  - name: cutover
    offset: T-0
    steps:
      - {name: move, worker_id: worker-01, function: Move, params: {To: '{{Name}}'}}
  - name: check
    offset: T+1d
    steps:
      - {name: test, worker_id: worker-01, function: Test}
"""


def failed(stage: Stage, members: int = 3) -> tuple[RunbookRow, BatchRow]:
    runbook = stage.publish(PHASES)
    batch = stage.batch(runbook, members)
    stage.answers["Move"] = Failing("no room")
    stage.due(batch, "prepare", "cutover")
    stage.run()
    stage.answers.clear()
    return runbook, batch


def test_o14_the_preview_says_who_is_left_out_what_changes_and_which_steps_used_it(cli: Cli, stage: Stage) -> None:
    runbook, batch = failed(stage)
    stage.correct(runbook, batch, {"u0": {"Email": "other", "Name": "Better"}}, set_aside=["u1"])
    stage.lose(runbook, "u2")
    cli("batch", "retry", str(batch.id), "--dry-run")
    assert "rows: as the source had them at 2026-03-03 12:00 UTC" in cli.err
    assert "changes: Email for 1 member (u0)" in cli.err
    assert "changes: Name for 1 member (u0)" in cli.err
    assert "left out: 1 member (u1): their rows were set aside" in cli.err
    assert "left out: 1 member (u2): there is no row for them; `--data kept`" in cli.err
    assert "done with the old Email: prepare/create for 1 member (u0); `--from PHASE` or `--keep-done`" in cli.err
    assert "dry run: version 1 runs; from the step that failed: 1 member (u0); nothing was changed" in cli.err
    cli("batch", "retry", str(batch.id), code=5)
    assert "AD422" in cli.err
    cli.clock.meanwhile = [stage.run]
    cli("batch", "retry", str(batch.id), "--from", "prepare", "--yes", "--wait")
    assert f"batch {batch.id}: version 1 runs; again from prepare: 1 member (u0)" in cli.err
    assert [job.parameters for job in stage.jobs[-2:]] == [{"Email": "other"}, {"To": "Better"}]
    cli("batch", "retry", str(batch.id), "--data", "kept", "--yes")
    assert "rows: members keep theirs" in cli.err


def test_o14_the_source_is_read_now_on_request(cli: Cli, stage: Stage, source: Rows) -> None:
    _, batch = failed(stage, 1)
    source.rows = [("u0", "Now", batch.batch_start_time)]
    cli("batch", "retry", str(batch.id), "--refresh", "--yes")
    assert "rows: as the source has them now" in cli.err
    stage.run()
    assert stage.jobs[-1].parameters == {"To": "Now"}


def test_o14_a_newer_version_that_waits_is_told_and_may_be_passed_by(cli: Cli, stage: Stage) -> None:
    _, batch = failed(stage, 1)
    stage.publish(PHASES + "# 2\n")
    cli("batch", "retry", str(batch.id), "--yes", code=5)
    assert "version 2 waits for the next tick" in cli.err
    assert "--version current" in cli.err
    cli("batch", "retry", str(batch.id), "--version", "current", "--yes")
    assert "version 1 runs (the active one is 2)" in cli.err


def test_o14_who_begins_with_a_phase_that_is_not_due_is_not_waited_for(cli: Cli, stage: Stage) -> None:
    _, batch = failed(stage, 1)
    stage.change_version(batch, stage.publish(PHASES + "# 2\n"))
    cli.clock.meanwhile = [stage.run]
    cli("batch", "retry", str(batch.id), "--yes", "--wait")
    assert "nobody failed again" in cli.err
    assert cli.clock.clock.now() < stage.now + timedelta(hours=1)


def test_o14_rows_of_a_manual_batch_come_from_a_file(cli: Cli, stage: Stage) -> None:
    stage.publish(PHASES)
    batch = cli.created("ann@x")
    stage.answers["Move"] = Failing("no room")
    cli.clock.meanwhile = [stage.run] * 2
    cli("batch", "advance", batch, "--auto", code=1)
    stage.answers.clear()
    rows = cli.file("better.csv", "Email,Name,Start\r\nann@x,Better,\r\n")
    cli("batch", "retry", batch, "--rows", rows, "--yes")
    assert "rows: those of the file" in cli.err
    assert "changes: Name for 1 member (ann@x)" in cli.err
    stage.run()
    assert stage.jobs[-1].parameters == {"To": "Better"}
    cli("batch", "retry", batch, "--rows", "missing.csv", "--yes", code=3)
