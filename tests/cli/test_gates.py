"""Rules G2, G4 and G8 at the command line."""

import pytest

from tests.admin.test_attention import failed
from tests.cli.conftest import Cli
from tests.stage import Stage

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


def test_g2_a_pause_needs_a_reason(cli: Cli, stage: Stage) -> None:
    failed(stage, 1)
    cli("pause", "all", code=2)
    assert "--reason" in cli.err
