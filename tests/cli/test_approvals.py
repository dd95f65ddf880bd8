"""Rules S1 to S7 at the command line: what is asked is shown, and exactly that is signed off."""

import pytest

from matoolkit.store.batches import BatchRow
from tests.cli.conftest import Cli
from tests.signing import Signers
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")

CUTOVER = """\
phases:
  - name: cutover
    offset: T-5d
    approval: {count: 2}
    steps:
      - {name: move, worker_id: worker-01, function: Move}
  - name: clean-up
    offset: T+1d
    approval: {from: T-0}
    steps:
      - {name: tidy, worker_id: worker-01, function: Tidy}
"""


def detected(stage: Stage, members: int = 2) -> BatchRow:
    return stage.batch(stage.publish(CUTOVER), members)


def test_s2_show_says_what_is_asked_and_approve_signs_exactly_that(cli: Cli, stage: Stage) -> None:
    batch = detected(stage, 12)
    (listed,) = cli.json("approval", "list")
    assert (listed["phaseName"], listed["state"]) == ("cutover", "waiting")
    assert len(cli.json("approval", "list", "--all")) == 2
    shown = cli("approval", "show", str(batch.id), "cutover")
    for told in ("wave", "move (Move)", "u0", "waits for approval: 0 of 2 given", "role:Approver", "v1-"):
        assert told in shown, told
    assert f"the first 10 of 12; `matoolkit batch members {batch.id} --all` lists all" in cli.err
    cli("approval", "approve", str(batch.id), "CUTOVER", "--yes", "--reason", "the list is right")
    assert f"cutover of batch {batch.id}: approved" in cli.err
    assert cli.json("approval", "list") == []
    given = cli.json("approval", "show", str(batch.id), "cutover")
    assert (given["state"], given["signed"][0]["isSignedIn"]) == ("given", False)
    assert "local approved" in cli("approval", "show", str(batch.id), "cutover")
    assert "nobody signed in" in cli.out


def test_s2_a_digest_that_was_noted_is_refused_when_the_list_has_changed(cli: Cli, stage: Stage) -> None:
    batch = detected(stage)
    digest = cli.json("approval", "show", str(batch.id), "cutover")["digest"]
    stage.join(batch, "late")
    cli("approval", "approve", str(batch.id), "cutover", "--digest", digest, "--yes", code=5)
    assert "1 member joined (late)" in cli.err
    assert "SO409" in cli.err


def test_s2_without_a_terminal_nothing_is_signed_without_yes(cli: Cli, stage: Stage) -> None:
    batch = detected(stage)
    cli("approval", "approve", str(batch.id), "cutover", code=2)
    assert f"batch {batch.id}, cutover: 2 members, version 1" in cli.err
    assert Signers(stage).shown(batch).asking.asked.given == []


def test_s6_a_rejection_needs_a_reason_and_is_taken_back(cli: Cli, stage: Stage) -> None:
    batch = detected(stage)
    cli("approval", "reject", str(batch.id), "cutover", "--yes", code=2)
    assert "--reason" in cli.err
    cli("approval", "reject", str(batch.id), "cutover", "--yes", "--reason", "payroll")
    assert "rejected; local rejected it" in cli.err
    cli("approval", "withdraw", str(batch.id), "cutover")
    assert f"cutover of batch {batch.id}: withdrawn; waits for approval: 0 of 2 given" in cli.err
    cli("approval", "withdraw", str(batch.id), "cutover", code=5)
    assert "SO415" in cli.err


def test_s7_the_one_that_waits_needs_no_name_and_too_early_is_said(cli: Cli, stage: Stage) -> None:
    batch = detected(stage)
    cli("approval", "show", str(batch.id), code=2)
    assert "name one of: cutover, clean-up" in cli.err
    cli("approval", "show", str(batch.id), "cutovr", code=3)
    assert f"nothing called 'cutovr' in batch {batch.id} asks for a sign-off" in cli.err
    assert "did you mean 'cutover'?" in cli.err
    cli("approval", "show", str(batch.id), "--init", code=3)
    assert "in this batch: cutover, clean-up" in cli.err
    cli("approval", "approve", str(batch.id), "clean-up", "--yes", code=5)
    assert "can be signed off from" in cli.err
    cli("approval", "approve", str(batch.id), "cutover", "--yes")
    assert cli.json("approval", "show", str(batch.id))["phaseName"] == "clean-up"


def test_s1_init_is_chosen_by_an_option(cli: Cli, stage: Stage) -> None:
    init = "init:\n  - {name: announce, worker_id: worker-01, function: Announce}\ninit_approval: {}\n"
    batch = stage.batch(stage.publish(init + CUTOVER), 1)
    assert cli.json("approval", "show", str(batch.id), "--init")["subject"] == "init"
    cli("approval", "approve", str(batch.id), "--init", "--yes")
    assert f"init of batch {batch.id}: approved" in cli.err


def test_s1_a_batch_without_approvals_says_so(cli: Cli, stage: Stage) -> None:
    text = CUTOVER.replace("    approval: {count: 2}\n", "").replace("    approval: {from: T-0}\n", "")
    batch = stage.batch(stage.publish(text), 1)
    cli("approval", "show", str(batch.id), code=5)
    assert f"batch {batch.id} needs no sign-off: nothing in it asks for one" in cli.err
    assert "SO412" in cli.err
    cli("approval", "list")
    assert "nothing waits for sign-off" in cli.err


def test_s2_a_digest_that_is_empty_signs_nothing(cli: Cli, stage: Stage) -> None:
    batch = detected(stage)
    cli("approval", "approve", str(batch.id), "cutover", "--digest", "", "--yes", code=2)
    assert "AP422" in cli.err
    assert Signers(stage).shown(batch).asking.asked.given == []
