"""Rules X1 to X5 at the command line."""

import shlex

import pytest

from matoolkit.admin.gating import Subject, pause
from matoolkit.domain.why import WhyKind
from tests.admin.test_kinds_of_waiting import SCENES
from tests.cli.conftest import Cli
from tests.orchestrator.runbooks import TWO_PHASES
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")


def test_x3_a_batch_is_explained_in_sentences_with_their_commands(cli: Cli, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 12)
    pause(stage.store, stage.bus, Subject(runbook_name="wave", member_key="u3"), by="kwu", reason="legal hold")
    stage.due(batch, "prepare")
    stage.handle()
    told = cli("explain", "batch", str(batch.id)).splitlines()
    assert told[0].startswith(f"batch {batch.id} · wave · active · T ")
    assert told[1].startswith("  prepare · dispatched · due ")
    assert "      11 the job of prepare/create is out at worker-01, the first lost at " in told[2]
    assert "       1 paused by kwu at " in told[3]
    assert told[3].split("legal hold: u3")[1].strip() == "matoolkit resume --gate 1 --reason TEXT"
    assert told[5].startswith("next: check is due, 2026-03-08 12:00 UTC (T-0, in 5d")
    answer = cli.json("explain", "batch", str(batch.id), "--phase", "prepare")
    assert [(line["kind"], line["members"]) for line in answer["lines"]] == [("job_out", 11), ("pause", 1)]
    assert answer["unexplained"] == []
    assert cli("explain", "batch", str(batch.id), "-o", "csv").startswith("phase,members,kind,why,")
    cli("explain", "batch", str(batch.id), "--phase", "nothing", code=3)
    assert "AD418" in cli.err


def test_x3_what_keeps_the_whole_batch_is_not_told_again_for_each_phase_to_come(cli: Cli, stage: Stage) -> None:
    signed = TWO_PHASES.replace("offset: T-0", "offset: T-0\n    approval: {count: 2}", 1)
    batch = stage.batch_at(stage.publish(signed), 2, days=6)
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
    told = cli("explain", "batch", str(batch.id))
    assert told.count("legal hold") == 2, "of the batch, and of its members"
    assert "cutover · pending" in told, "it waits for approval besides"
    assert "check · pending" not in told
    assert cli("explain", "batch", str(batch.id), "--phase", "check").count("legal hold") == 2


def test_x1_a_member_is_explained(cli: Cli, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.due(batch, "prepare")
    stage.handle()
    told = cli("explain", "member", str(batch.id), "U1")
    assert told.startswith(f"u1 · batch {batch.id} · wave · prepare · active")
    assert "the job of prepare/create is out at worker-01, lost at" in told
    (why,) = cli.json("explain", "member", str(batch.id), "u1")["whys"]
    assert (why["kind"], why["endedBy"]) == ("job_out", "fact")


@pytest.mark.parametrize("kind", [kind for kind, (_, told) in SCENES.items() if told[2] is not None])
def test_x2_a_command_can_be_pasted(cli: Cli, stage: Stage, kind: WhyKind) -> None:
    batch = SCENES[kind][0](stage)
    found = [line for line in cli.json("explain", "batch", str(batch.id))["lines"] if line["kind"] == kind]
    if not found:
        found = cli.json("explain", "batch", str(batch.id))["whys"]
    if not any(one["kind"] == kind for one in found):
        found = cli.json("explain", "member", str(batch.id), "u0")["whys"]
    (command,) = {one["command"] for one in found if one["kind"] == kind and one["command"]}
    # What changes members asks first; here is no terminal to ask on.
    cli(*shlex.split(command)[1:], *(["--yes"] if kind is WhyKind.ENDED else []))


def test_x6_a_command_of_the_inbox_can_be_pasted(cli: Cli, stage: Stage) -> None:
    signed = TWO_PHASES.replace("offset: T-0", "offset: T-0\n    approval: {count: 2}", 1)
    batch = stage.batch(stage.publish(signed, "other"), 2)
    stage.hold(batch)
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
    SCENES[WhyKind.LATE][0](stage)
    cli("freeze", "add", "--until", "2027-01-04 06:00Z", "--reason", "year end")
    matters = cli.json("inbox")
    assert {matter["kind"] for matter in matters} == {"held", "late", "approval", "paused", "frozen"}
    for matter in matters:
        cli(*shlex.split(matter["command"])[1:])
    assert {matter["kind"] for matter in cli.json("inbox")} == {"held", "approval"}, "these two were only shown"


def test_a_code_is_explained_as_before(cli: Cli) -> None:
    assert cli("explain", "AD404").startswith("AD404 (exit code 3, HTTP status 404)")
    assert "AD404  " in cli("explain")
    cli("explain", "AD4O4", code=3)
