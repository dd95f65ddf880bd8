"""Rule U6: `matoolkit now` says what needs a person."""

import orjson
import pytest

from tests.admin.test_attention import failed
from tests.cli.conftest import Cli
from tests.orchestrator.runbooks import TWO_PHASES
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")


def test_u6_nothing_needs_a_person_and_the_next_phase_is_said(cli: Cli, stage: Stage) -> None:
    assert cli("now") == ""
    assert "Nothing needs a person: no batch is held" in cli.err
    assert "next:" not in cli.err
    batch = stage.batch_at(stage.publish(TWO_PHASES), 1, days=6)
    assert cli.json("now") == []
    cli("now")
    assert f"next: prepare of batch {batch.id}, due 2026-03-04 12:00 UTC" in cli.err


def test_u6_what_needs_a_person_comes_with_the_command_that_shows_more(cli: Cli, stage: Stage) -> None:
    batch = failed(stage, 3)
    stage.hold(batch)
    told = cli("now")
    assert f"Batch {batch.id} of wave is held" in told
    assert f"matoolkit batch failures {batch.id}" in told
    assert "2 things need a person" in cli.err
    assert [item["kind"] for item in cli.json("now")] == ["held", "failed"]
    assert cli("now", "-o", "csv").splitlines()[0] == "kind,needs_a_person,more,since,batch,t,command"


def test_u6_a_watch_prints_what_is_new(cli: Cli, stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 1, days=6)

    def stop() -> None:
        raise KeyboardInterrupt

    cli.clock.meanwhile += [lambda: stage.hold(batch), stop]
    told = cli("now", "--watch", code=130)
    assert [orjson.loads(line)["kind"] for line in told.splitlines()] == ["held"]
