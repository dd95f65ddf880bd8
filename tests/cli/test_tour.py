"""Everything that the API can do, the command line can ask for."""

import re
from pathlib import Path

import pytest

from matoolkit.admin.approving import approve
from matoolkit.api.app import openapi_document
from matoolkit.store.runbooks import active_runbook
from tests.api.conftest import DOCUMENT
from tests.cli.conftest import Cli
from tests.signing import person
from tests.stage import Failing, Stage

pytestmark = pytest.mark.on("sqlite")

ASKS = """\
safeguards: {approval: {count: 2}}
init_approval: {}
init:
  - {name: prepare, worker_id: worker-01, function: Prepare}
phases:
  - name: cutover
    offset: T-5d
    approval: {}
    steps:
      - {name: move, worker_id: worker-01, function: Move}
"""


def test_a1_every_operation_of_the_api_is_reached_by_a_command(cli: Cli, stage: Stage) -> None:
    look_at_the_system(cli, stage)
    look_at_runbooks(cli)
    lead_a_batch(cli, stage)
    keep_work_back(cli, stage)
    deal_with_trouble(cli, stage)
    sign_off(cli, stage)
    known = [
        (method.upper(), template, re.compile(re.sub(r"\{\w+\}", "[^/]+", template)))
        for template, methods in openapi_document()["paths"].items()
        for method in methods
    ]
    assert [
        f"{method} {template}"
        for method, template, pattern in known
        if not any(method == used and pattern.fullmatch(path) for used, path in cli.routes)
    ] == []


def look_at_the_system(cli: Cli, stage: Stage) -> None:
    assert "database  ok" in cli("api", "status")
    assert "matoolkit_dead_letters_open 0" in cli("api", "metrics")
    assert "New-EntraUser" in cli("worker", "catalogue")
    cli("audit", "list")
    assert "nobody changed anything" in cli.err


def look_at_runbooks(cli: Cli) -> None:
    cli.published()
    assert [row["name"] for row in cli.json("runbook", "list")] == ["wave"]
    assert cli("runbook", "get", "wave") == DOCUMENT
    cli("runbook", "publish", cli.file("wave2.yaml", DOCUMENT.replace("second", "last")), "--enable")
    assert cli("runbook", "get", "wave", "--version", "1", "-o", "yaml") == DOCUMENT
    copy = str(cli.folder / "copy.yaml")
    cli("runbook", "get", "wave", "--to", copy)
    cli("runbook", "get", "wave", "--to", copy, code=2)
    cli("runbook", "get", "wave", "--to", copy, "--force")
    assert "name: last" in Path(copy).read_text(encoding="utf-8")
    assert [row["version"] for row in cli.json("runbook", "versions", "wave")] == [2, 1]
    assert cli.json("runbook", "status", "wave")["automationEnabled"] is True
    cli("automation", "disable", "wave")
    assert "disabled" in cli("automation", "status", "wave")
    assert cli.json("automation", "enable", "wave")["enabledBy"] == "local"
    assert cli("query", "preview", "wave", "--limit", "1") == ""
    assert cli("template", "download", "wave").startswith("Email,Name,Start\r\n")


def lead_a_batch(cli: Cli, stage: Stage) -> None:
    batch = cli.created("ann@x", "bob@x", "eve@x")
    assert batch in cli("batch", "list", "--manual", "--not-held")
    cli("batch", "add-members", batch, cli.people("ann@x", "kim@x"))
    assert "skipped, excluded or already in an unfinished batch: ann@x" in cli.err
    eve = next(row["id"] for row in cli.json("batch", "members", batch, "--all") if row["memberKey"] == "eve@x")
    cli("batch", "remove-member", batch, str(eve), "--yes", "--reason", "stays")
    assert cli.json("batch", "members", batch, "--state", "undoing")[0]["memberKey"] == "eve@x"
    assert cli.json("batch", "members", batch, "--status", "removed")[0]["removeReason"] == "removed by a person: stays"
    stage.answers["Custom-Prepare"] = Failing("no room")
    cli("batch", "advance", batch)
    stage.run()
    stage.answers.clear()
    cli("batch", "retry-init", batch)
    stage.run()
    stage.answers["Custom-One"] = Failing("no licence")
    cli("batch", "advance", batch)
    stage.run()
    cli("batch", "failures", batch)
    cli("batch", "retry", batch, "--step", "one", "--yes")
    assert "first" in cli("batch", "phases", batch)
    assert len(cli.json("batch", "steps", batch, "--phase", "first", "--status", "pending")) == 6
    assert cli("batch", "export", batch).startswith("id,member_key,status")
    steps = str(cli.folder / "steps.csv")
    cli("batch", "export", batch, "steps", "--to", steps)
    assert Path(steps).read_text(encoding="utf-8").startswith("id,member_key,phase_name")
    assert cli("report", batch, "-o", "csv").startswith("key,state,phase")
    assert {person["state"] for person in cli.json("report", batch)} == {"under_way", "left"}
    cli("report", "--runbook", "wave", "--html", str(cli.folder / "report.html"))
    (enrolment,) = cli.json("member", "find", "ANN@X")
    assert "first" in cli("member", "history", str(enrolment["id"]), "--batch", batch)
    assert "first" in cli("member", "history", "ann@x")
    cli("batch", "undo", batch, "--member", "ann@x", "--dry-run")
    cli.clock.meanwhile = [stage.run]
    cli("batch", "undo", batch, "--member", "ann@x", "--yes", "--wait", "--reason", "stays")
    cli("member", "exclude", "wave", "bob@x", "--yes", "--reason", "stays")
    assert cli.json("member", "excluded", "wave")[0]["memberKey"] == "bob@x"
    cli("undo-failure", "list")
    cli("undo-failure", "retry", batch, "--yes", code=5)
    cli("batch", "cancel", batch, "--yes", "--reason", "called off")
    assert f"batch {batch} is cancelled" in cli.err
    cli("batch", "get", batch, "--wait", code=1)


def deal_with_trouble(cli: Cli, stage: Stage) -> None:
    with stage.store.reading() as tx:
        row = active_runbook(tx, "wave")
    assert row
    held = stage.batch(row, ["joe@x"])
    stage.hold(held)
    assert str(held.id) in cli("hold", "list")
    assert str(held.id) in cli("now")
    assert "removals-1" in cli("hold", "show", str(held.id))
    cli("hold", "members", str(held.id))
    cli("hold", "approve", str(held.id), "--key", "removals-0", "--yes", code=5)
    cli("hold", "approve", str(held.id), "--yes", "--reason", "fine")
    assert cli.json("hold", "show", str(held.id))["approvedBy"] == "local"
    for what in ("approve", "cancel"):
        cli("hold", what, str(held.id), "--dry-run", "--yes", code=2)
        cli("hold", what, "--late", "--before", "2026-01-01", "--dry-run")
    cli("member", "include", "wave", "joe@x", code=5)
    cli("member", "include", "wave", "nobody@x", code=3)
    for key in ("jan@x", "kai@x"):
        cli("batch", "advance", cli.created(key))
    for message in stage.bus.receive(stage.events_of_orchestrator, 10):
        stage.bus.dead_letter(message, "poison", "it was in the way")
    one, two, *_ = (str(letter["id"]) for letter in cli.json("dead-letter", "list"))
    assert "poison" in cli("dead-letter", "show", one)
    cli("dead-letter", "discard", one, "--yes")
    cli("dead-letter", "resend", one, "--yes", code=5)
    cli("dead-letter", "resend", two, "--yes")
    assert cli.err.startswith(f"dead letter {two} was sent again as ")
    cli("runbook", "delete", "wave", "2", "--yes", "--reason", "over")
    assert "wave v2 is out of use" in cli.err


def keep_work_back(cli: Cli, stage: Stage) -> None:
    batch = cli.created("lia@x")
    cli("pause", "runbook", "wave", "--reason", "a wrong licence")
    gate = next(one for one in cli.json("gate", "list") if one["kind"] == "pause")
    assert "a wrong licence" in cli("gate", "show", str(gate["id"]))
    cli("resume", "runbook", "wave", "--reason", "it is right")
    cli("pause", "all", "--reason", "legal hold")
    gate = next(one for one in cli.json("gate", "list") if one["kind"] == "pause")
    assert "legal hold" in cli("explain", "batch", batch)
    assert "legal hold" in cli("explain", "member", batch, "lia@x")
    assert "legal hold" in cli("inbox")
    cli("gate", "open", str(gate["id"]), "--reason", "it is over")
    freeze = cli.json(
        "freeze", "add", "--from", "2026-12-24 18:00Z", "--until", "2027-01-02 06:00Z", "--reason", "year end"
    )
    cli("freeze", "remove", str(freeze["id"]), "--reason", "not this year")


def sign_off(cli: Cli, stage: Stage) -> None:
    row = stage.batch_at(stage.publish(ASKS), 2, days=6)
    batch = str(row.id)
    for subject in ("cutover", "--init"):
        assert batch in cli("approval", "list")
        cli("approval", "show", batch, subject)
        cli("approval", "reject", batch, subject, "--yes", "--reason", "payroll")
        cli("approval", "withdraw", batch, subject, "--reason", "it is paid")
        cli("approval", "approve", batch, subject, "--yes", "--reason", "the list is right")
    stage.hold(row)
    hold = cli.json("hold", "show", batch)
    approve(stage.store, stage.bus, row.id, hold["holdKey"], by="ann", signer=person("ann"))
    assert "1 of 2 given (ann" in cli("approval", "show", batch)
    cli("approval", "withdraw", batch, code=5)
