"""Every command that is about one person takes its key, an address in its row or its number."""

import pytest

from tests.cli.conftest import Cli
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")


def numbers(cli: Cli, batch: str) -> dict[str, str]:
    return {one["memberKey"]: str(one["id"]) for one in cli.json("batch", "members", batch, "--all")}


def test_a_member_is_named_by_key_or_number(cli: Cli, stage: Stage) -> None:
    cli.published()
    batch = cli.created("ann@x", "bob@x", "kim@x")
    cli("batch", "remove-member", batch, "BOB@x", "--yes")
    assert f"bob@x left batch {batch}" in cli.err
    cli("batch", "remove-member", batch, numbers(cli, batch)["kim@x"], "--yes")
    assert f"kim@x left batch {batch}" in cli.err
    cli("batch", "remove-member", batch, "zoe@x", "--yes", code=3)
    assert f"batch {batch} has no member 'zoe@x'" in cli.err
    assert "matoolkit member find PART" in cli.err
    assert "CL405" in cli.err


def test_a_name_for_two_people_is_refused_with_both(cli: Cli) -> None:
    cli.published()
    batch = cli.created("ann@x", "bob@x")
    known = numbers(cli, batch)
    cli("batch", "add-members", batch, cli.people(known["ann@x"]))
    for command in (["batch", "remove-member", batch, known["ann@x"], "--yes"], ["member", "history", known["ann@x"]]):
        cli(*command, code=2)
        assert f"ann@x (number {known['ann@x']}, batch {batch})" in cli.err
        assert "CL409" in cli.err


def test_a_history_goes_across_batches_or_stays_in_one(cli: Cli, stage: Stage) -> None:
    cli.published()
    first = cli.created("ann@x")
    cli("batch", "cancel", first, "--yes")
    second = cli.created("ann@x", "joann@x")
    cli("batch", "advance", second)
    stage.run()
    cli("batch", "advance", second)
    stage.run()
    shown = cli("member", "history", "ANN@x")
    assert shown.index(f"batch         {second}") < shown.index(f"batch         {first}")
    assert "one" in shown
    assert [place["batchId"] for place in cli.json("member", "history", "ann@x")] == [int(second), int(first)]
    assert "one" not in cli("member", "history", "ann@x", "--batch", first)
    cli("member", "history", "nobody@x", code=3)
    assert "no batch has or had a member 'nobody@x'" in cli.err
    assert [one["memberKey"] for one in cli.json("member", "find", "nn@")] == ["joann@x", "ann@x", "ann@x"]
    cli("member", "find", "nn@", "--limit", "2")
    assert cli.err == "the first 2; --all lists all\n"


def test_u3_somebody_is_kept_out_by_an_address_in_its_row(cli: Cli) -> None:
    cli.published()
    rows = "Email,Name,Start\r\np-1,ann@contoso.com,\r\np-2,twin@contoso.com,\r\np-3,twin@contoso.com,\r\n"
    cli("batch", "create", "wave", cli.file("people.csv", rows))
    cli("member", "exclude", "WAVE", "Ann@contoso.com", "--yes", "--reason", "stays")
    assert [one["memberKey"] for one in cli.json("member", "excluded", "wave")] == ["p-1"]
    cli("member", "exclude", "wave", "twin@contoso.com", "--yes", "--reason", "stays", code=2)
    assert "p-3 (number" in cli.err
    cli("member", "exclude", "wave", "1", "--yes", "--unknown", "--reason", "not in any batch yet")
    assert {one["memberKey"] for one in cli.json("member", "excluded", "wave")} == {"p-1", "1"}
    cli("member", "include", "wave", "ann@contoso.com")
    assert "p-1 is no longer excluded" in cli.err


def test_somebody_is_found_by_an_address_in_its_row(cli: Cli) -> None:
    cli.published()
    rows = "Email,Name,Start\r\n000104,Ann@contoso.com,\r\n000105,joann@contoso.com,\r\n"
    cli("batch", "create", "wave", cli.file("people.csv", rows))
    assert [one["memberKey"] for one in cli.json("member", "find", "ann@contoso.com")] == ["000104"]
    cli("member", "find", "nobody@contoso.com")
    assert cli.err == "no batch has or had such a member\n"
