"""Holds through the command line: all members of them, and how many they are."""

import orjson
import pytest

from matoolkit.domain.gates import GateKind
from matoolkit.store.holds import Hold, hold_batches
from matoolkit.store.runbooks import active_runbook
from tests.admin.test_attention import failed
from tests.cli.conftest import Cli
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")


def test_a3_of_a_hold_about_many_all_are_shown_and_counted(cli: Cli, stage: Stage) -> None:
    cli.published()
    with stage.store.reading() as tx:
        row = active_runbook(tx, "wave")
    assert row
    batch = stage.batch(row, 150)
    held = orjson.dumps({"kind": "removals", "memberIds": [member.id for member in stage.members(batch)]}).decode()
    with stage.store.transaction() as tx:
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "too many are gone", "k", held)], stage.now)
    keys = [f"u{number}" for number in range(150)]
    shown = cli.json("hold", "show", str(batch.id))
    assert (shown["members"], shown["memberCount"]) == (keys[:100], 150)
    assert f"the first 100 of 150; `matoolkit hold members {batch.id} --all` lists all" in cli.err
    listed = cli.json("hold", "members", str(batch.id), "--all")
    assert [member["memberKey"] for member in listed] == keys
    cli("hold", "approve", str(batch.id), "--yes")
    assert "150 members would leave (u0, u1, u2, u3, u4 and 145 more): approved" in cli.err


def test_t6_an_approval_while_automation_is_off_says_that_it_waits_for_it(cli: Cli, stage: Stage) -> None:
    cli.published()
    with stage.store.reading() as tx:
        row = active_runbook(tx, "wave")
    assert row
    batch = stage.batch(row, 1)
    with stage.store.transaction() as tx:
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "too many are gone", "k", "{}")], stage.now)
    cli("automation", "disable", "wave")
    assert cli.json("hold", "show", str(batch.id))["waitsFor"] == "automation of wave is off: enable it"
    cli("hold", "approve", str(batch.id), "--yes")
    assert "approved; it waits, automation of wave is off: enable it" in cli.err


def test_t6_an_empty_key_approves_nothing(cli: Cli, stage: Stage) -> None:
    batch = failed(stage, 1)
    stage.hold(batch)
    cli("hold", "approve", str(batch.id), "--key", "", "--yes", code=2)
    assert "AP422" in cli.err
    assert stage.reload(batch).approved_hold_at is None
