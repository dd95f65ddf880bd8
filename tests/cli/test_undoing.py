"""Rules U2 and U3 on the command line: what an undo or an exclusion would do is shown before it is done."""

from matoolkit.domain.states import MemberStatus
from tests.cli.conftest import Cli
from tests.orchestrator.runbooks import WITH_FAREWELL, WITH_ROLLBACK
from tests.stage import Failing, Stage


def test_u2_an_undo_is_shown_asked_for_done_and_waited_for(cli: Cli, stage: Stage) -> None:
    stage.answers["Create"] = lambda job: Failing("no room") if job.parameters["Email"] == "u1" else {}
    batch = stage.batch(stage.publish(WITH_FAREWELL), 3)
    stage.due(batch, "prepare")
    stage.run()
    number = str(batch.id)
    cli("batch", "undo", number, "--dry-run")
    assert "undone by version 1: 3 members (u0, u1, u2)" in cli.err
    assert "  runs: forget (Forget)" in cli.err
    assert "dry run: 3 members to undo; for 3 version 1 runs forget; nothing was changed" in cli.err
    assert all(member.undone_at is None for member in stage.members(batch))
    cli("batch", "undo", number, "--yes", code=2)
    assert "say why" in cli.err
    cli("batch", "undo", number, "--reason", "wrong wave", code=2)
    assert "CL428" in cli.err
    cli("batch", "failures", number)
    like = cli.out.splitlines()[1].split()[0]
    cli("batch", "undo", number, "--like", like, "--dry-run")
    assert "1 member (u1)" in cli.err
    cli.clock.meanwhile = [stage.run]
    cli("batch", "undo", number, "--state", "failed", "--yes", "--wait", "--reason", "wrong wave")
    assert f"batch {number}: 1 member undone" in cli.err
    cli.clock.meanwhile = [stage.run]
    done = cli.json("batch", "undo", number, "--member", "u0", "--member", "U2", "--yes", "--reason", "wrong wave")
    assert done["running"] == ["u0", "u2"]
    stage.run()
    assert sorted(str(job.parameters["Email"]) for job in stage.jobs if job.function_name == "Forget") == [
        "u0",
        "u1",
        "u2",
    ]
    cli("batch", "undo", number, "--member", "u0", "--yes", "--reason", "again", code=5)
    assert "u0 was undone before" in cli.err


def test_u2_a_failed_step_of_an_undo_is_told_by_the_exit_code(cli: Cli, stage: Stage) -> None:
    stage.answers |= {"Create": {"Id": "1"}, "Tell": Failing()}
    batch = stage.batch(stage.publish(WITH_ROLLBACK), 3)
    stage.due(batch, "prepare")
    stage.run()
    cli.clock.meanwhile = [stage.run]
    cli("batch", "undo", str(batch.id), "--member", "u0", "--member", "u1", "--yes", "--wait", "--reason", "x", code=1)
    assert "2 members undone, 2 steps failed" in cli.err
    stage.answers.clear()
    cli.clock.meanwhile = [stage.run]
    cli("batch", "undo", str(batch.id), "--yes", "--wait", "--reason", "x")
    assert "3 members undone\n" in cli.err, "what failed before is not told again"


def test_u2_it_is_said_for_whom_nothing_runs_and_who_is_left_out(cli: Cli, stage: Stage) -> None:
    stage.answers |= {"Create": {"Id": "1"}, "License": Failing()}
    batch = stage.batch(stage.publish(WITH_ROLLBACK), 1)
    stage.due(batch, "prepare")
    stage.run()
    stage.add_row(batch, "idle")
    cli("batch", "undo", str(batch.id), "--dry-run")
    assert "nothing to run: 1 member (idle): nothing was done for them yet" in cli.err
    assert "rolled back already: 1 member (u0)" in cli.err
    stage.leave(batch, "idle")
    cli("batch", "undo", str(batch.id), "--member", "u0", "--member", "idle", "--dry-run")
    assert "left out: 1 member (idle): they have left the batch" in cli.err


def test_o12_cancel_says_that_nothing_is_undone_and_which_command_would(cli: Cli, stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_FAREWELL), 1)
    cli("batch", "cancel", str(batch.id), code=2)
    asked = f"nothing is undone, `matoolkit batch undo {batch.id}` would do that. Cancel it?"
    assert asked in " ".join(cli.err.split())


def test_u3_exclude_list_and_include(cli: Cli, stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_FAREWELL), 2)
    stage.due(batch, "prepare")
    stage.run()
    cli("member", "exclude", "wave", "u0", "--dry-run")
    assert f"leaves batch {batch.id}: its open steps are cancelled, and what was done stays" in cli.err
    assert stage.member(batch, "u0").status is MemberStatus.ACTIVE
    cli("member", "exclude", "wave", "u0", "--yes", code=2)
    cli("member", "exclude", "wave", "u0", "--yes", "--reason", "on leave")
    assert "u0 is excluded until `matoolkit member include`" in cli.err
    cli("member", "excluded", "wave")
    assert "u0" in cli.out
    assert "on leave" in cli.out
    cli("member", "exclude", "wave", "u0", "--yes", "--reason", "again", code=5)
    assert "AD431" in cli.err
    cli("member", "include", "wave", "U0")
    assert "u0 is no longer excluded: its row of" in cli.err
    cli("member", "excluded", "wave")
    assert "nobody is excluded" in cli.err


def test_u3_a_key_that_nobody_has_is_excluded_only_on_purpose(cli: Cli, stage: Stage) -> None:
    stage.publish(WITH_FAREWELL)
    cli("member", "exclude", "wave", "u0o", "--yes", "--reason", "on leave", code=3)
    assert "say `--unknown` to exclude somebody who is yet to come" in cli.err
    cli("member", "excluded", "wave")
    assert "nobody is excluded" in cli.err
    cli("member", "exclude", "wave", "u0o", "--yes", "--unknown", "--reason", "on leave")
    assert "u0o is excluded" in cli.err


def test_u3_exclude_with_undo(cli: Cli, stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_FAREWELL), 1)
    stage.due(batch, "prepare")
    stage.run()
    done = cli.json("member", "exclude", "wave", "u0", "--undo", "--yes", "--reason", "left the company")
    assert done["undo"]["running"] == ["u0"]
    cli("member", "exclude", "wave", "nobody", "--dry-run")
    assert "neither the last reading of the source nor any batch has this key" in cli.err
    cli("member", "history", "u0")
    assert "undone by a person: left the company" in cli.out
