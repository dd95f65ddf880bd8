"""Rules G2, G4 and G8 at the command line."""

import shlex

import pytest

from tests.admin.test_attention import failed
from tests.cli.conftest import Cli
from tests.orchestrator.runbooks import ONE_STEP
from tests.stage import SOURCE, Failing, Stage

pytestmark = pytest.mark.on("sqlite")


def test_g4_a_pause_says_what_it_keeps_and_how_to_go_on(cli: Cli, stage: Stage) -> None:
    batch = failed(stage, 1)
    shown = cli.json("pause", "batch", str(batch.id), "--reason", "legal hold")
    assert (shown["subject"], shown["kind"], shown["takenBack"]) == (f"batch {batch.id}", "pause", 0)
    assert f"`matoolkit resume batch {batch.id} --reason TEXT` lets it go on" in cli.err
    (listed,) = cli.json("gate", "list")
    assert listed["reason"] == "legal hold"
    cli("pause", "all", "--reason", "an outage")
    cli("resume", "batch", str(batch.id), "--reason", "it is over")
    assert "gate 2 keeps it still (pause): an outage" in cli.err
    cli("gate", "open", "2", "--reason", "it is back")
    assert cli.json("gate", "list") == []
    assert cli.json("gate", "show", "2")["openedReason"] == "it is back"
    assert len(cli.json("gate", "list", "--all")) == 2


@pytest.mark.parametrize(
    "subject",
    [["runbook", "wave"], ["worker", "worker-01"], ["member", "wave", "U0"]],
    ids=lambda subject: subject[0],
)
def test_g2_what_is_paused_is_named_as_what_is_resumed(cli: Cli, stage: Stage, subject: list[str]) -> None:
    failed(stage, 1)
    shown = cli.json("pause", *subject, "--reason", "why", "--until", "2100-01-01")
    assert shown["subject"].split() == [subject[0], *subject[1:]]
    assert shown["shutUntil"].startswith("2100-01-01T00:00")
    cli("resume", *subject, "--reason", "why")
    assert cli.json("gate", "list") == []


def test_g2_a_person_whose_key_has_a_space_is_named_so_that_it_can_be_pasted(cli: Cli, stage: Stage) -> None:
    stage.batch(stage.publish(ONE_STEP), ["ada lovelace"])
    shown = cli.json("pause", "member", "wave", "ada lovelace", "--reason", "why")
    assert shown["subject"] == "member wave 'ada lovelace'"
    cli("resume", *shlex.split(shown["subject"]), "--reason", "why")
    assert cli.json("gate", "list") == []


def test_g2_a_pause_needs_a_reason(cli: Cli, stage: Stage) -> None:
    failed(stage, 1)
    cli("pause", "all", code=2)
    assert "--reason" in cli.err


def test_k1_a_freeze_is_written_ahead_listed_and_taken_back(cli: Cli, stage: Stage) -> None:
    failed(stage, 1)
    times = ("--from", "2026-12-24 18:00", "--until", "2027-01-04 06:00", "--zone", "Europe/Berlin")
    shown = cli.json("freeze", "add", *times, "--reason", "year end")
    assert (shown["kind"], shown["subject"], shown["shutFrom"]) == ("freeze", "all", "2026-12-24T17:00:00Z")
    assert "`matoolkit freeze remove 1 --reason TEXT` takes it back" in cli.err
    cli("pause", "all", "--reason", "an outage")
    assert [gate["id"] for gate in cli.json("freeze", "list")] == [1]
    cli("freeze", "remove", "2", "--reason", "why", code=5)
    assert "gate 2 is no freeze but of kind pause" in cli.err
    cli("freeze", "remove", "1", "--reason", "not needed")
    assert cli.json("freeze", "list") == []
    assert [gate["openedReason"] for gate in cli.json("freeze", "list", "--all")] == ["not needed"]


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (("--from", "2020-01-01 18:00", "--zone", "UTC"), "would begin in the past"),
        (("--from", "2100-01-01 18:00"), "does not say in which zone"),
        (("--from", "2100-01-02", "--until", "2100-01-01", "--zone", "UTC"), "would end before it begins"),
    ],
    ids=["past", "no zone", "turned"],
)
def test_k1_a_freeze_that_makes_no_sense_is_refused_with_a_sentence(
    cli: Cli, stage: Stage, times: tuple[str, ...], told: str
) -> None:
    failed(stage, 1)
    cli("freeze", "add", *times, "--reason", "why", code=2)
    assert told in cli.err
    assert "GT414" in cli.err


def test_c4_a_budget_is_opened_for_some_more_failures(cli: Cli, stage: Stage) -> None:
    limited = ONE_STEP.replace("offset: T-5d", "offset: T-5d\n    rollout: {max_failures: 0, pilot_first: true}")
    batch = stage.batch(stage.publish("pilot: {count: 1}" + limited), 5)
    stage.due(batch, "prepare")
    stage.handle()
    stage.answer(stage.take_jobs()[0], Failing())
    stage.handle()
    (gate,) = cli.json("gate", "list")
    assert gate["reason"] == "1 of 1 pilot has failed in phase 'prepare', and none may"
    cli("gate", "open", str(gate["id"]), "--reason", "known cause", "--allow", "2")
    assert f"`matoolkit explain batch {batch.id}` says whether anything else keeps it" in cli.err
    assert cli.json("gate", "show", str(gate["id"]))["allowed"] == 3
    assert len(stage.take_jobs()) == 0
    stage.handle()
    assert len(stage.take_jobs()) == 4
    assert [(one["memberKey"], one["isPilot"]) for one in cli.json("batch", "members", str(batch.id))][:2] == [
        *(("u0", True), ("u1", False)),
    ]
    assert cli("batch", "members", str(batch.id)).splitlines()[0].endswith("PILOT")


def test_k6_publishing_says_what_a_freeze_keeps_for_ever(cli: Cli, stage: Stage) -> None:
    phases = "".join(
        f"  - {{name: p{number}, offset: T-0, steps: [{{name: s, worker_id: w, function: Custom}}]}}\n"
        for number in range(12)
    )
    batch = stage.batch(stage.publish(f"phases:\n{phases}"), 1)
    cli("freeze", "add", "--reason", "for good")
    file = cli.file("wave.yaml", f"name: wave\ndescription: another\n{SOURCE}phases:\n{phases}")
    cli("runbook", "publish", file, "--dry-run")
    assert f"phase 'p0' of batch {batch.id}, due at" in cli.err
    assert "would never begin: freeze 1: for good" in cli.err
    assert "and 2 phases more that freezes and windows keep too long" in cli.err
    shown = cli.json("runbook", "publish", file, "--dry-run")
    assert (shown["delayCount"], len(shown["delays"]), shown["delays"][0]["beginsAt"]) == (12, 12, None)


def test_g8_resume_takes_the_number_of_a_gate_too(cli: Cli, stage: Stage) -> None:
    failed(stage, 1)
    cli("pause", "all", "--reason", "an outage")
    assert [one["kind"] for one in cli.json("inbox")] == ["paused"]
    cli("resume", "--gate", "1", "--reason", "it is back")
    assert cli.json("gate", "show", "1")["openedReason"] == "it is back"
    cli("resume", "--reason", "again", "--gate=1", code=5)
    assert "GT410" in cli.err
    cli("inbox")
    assert "nothing waits for a decision" in cli.err
