"""Steps that were to undo something and failed, on the command line."""

import pytest

from tests.cli.conftest import Cli
from tests.orchestrator.runbooks import WITH_ROLLBACK
from tests.stage import Failing, Stage

pytestmark = pytest.mark.on("sqlite")


def test_o9_failed_undo_steps_are_seen_where_people_look_and_tried_again(cli: Cli, stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK), 2)
    number = str(batch.id)
    stage.answers.update(Create={"Id": "1"}, License=Failing(), Unlicense=Failing("cannot"))
    stage.due(batch, "prepare")
    stage.run()
    shown = cli("batch", "get", number)
    assert "undo     2 steps failed" in shown
    assert f"matoolkit undo-failure list --batch {number}" in shown
    cli("batch", "failures", number)
    assert f"2 steps that were to undo something failed too: `matoolkit undo-failure list --batch {number}`" in cli.err
    assert 'matoolkit_undo_steps_failed{runbook="wave"} 2' in cli("api", "metrics")
    listed = cli.json("undo-failure", "list", "--batch", number)
    assert [(row["memberKey"], row["stepName"], row["errorMessage"]) for row in listed] == [
        ("u1", "unlicense", "cannot"),
        ("u0", "unlicense", "cannot"),
    ]
    first = str(listed[1]["id"])
    assert cli.json("undo-failure", "retry", number, "--step", first, "--dry-run")["stepIds"] == [listed[1]["id"]]
    assert f"dry run: 1 failed undo step of batch {number} would run again; nothing was changed" in cli.err
    assert len(cli.json("undo-failure", "list")) == 2
    stage.answers.clear()
    cli("undo-failure", "retry", number, "--yes", "--reason", "it is back")
    assert f"batch {number}: 2 failed undo steps run again" in cli.err
    stage.run()
    assert cli("undo-failure", "list") == ""
    assert "no step that was to undo something has failed" in cli.err
    cli("undo-failure", "retry", number, "--yes", code=5)
    assert "undo" not in cli("batch", "get", number)
