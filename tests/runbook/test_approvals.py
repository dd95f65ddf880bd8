"""Rule S1: approvals in a runbook, and those that nobody could give."""

from datetime import timedelta
from typing import Any

import pytest
import yaml

from matoolkit.runbook.differences import differences
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import parse_runbook

from .documents import codes, findings, good, step

FULL = {
    "by": ["role:Approver", "jmarin@contoso.com"],
    "count": 2,
    "not_publisher": True,
    "from": "T-2d",
    "until": "T+4h",
    "valid": "3d",
}


def with_approval(approval: Any, **more: Any) -> dict[str, Any]:
    document = {**good(), **more}
    document["phases"][0]["approval"] = approval
    return document


def read(document: dict[str, Any]) -> Runbook:
    return parse_runbook(yaml.safe_dump(document, sort_keys=False))


def test_s1_an_approval_says_who_how_many_and_when() -> None:
    approval = read(with_approval(FULL)).phases[0].approval
    assert approval is not None
    assert (approval.by, approval.count, approval.not_publisher) == (("role:Approver", "jmarin@contoso.com"), 2, True)
    assert (str(approval.not_before), str(approval.until), approval.valid) == ("T-2d", "T+4h", timedelta(days=3))


def test_s1_an_empty_approval_wants_one_sign_off_of_any_approver() -> None:
    approval = read(with_approval({})).phases[0].approval
    assert approval is not None
    assert (approval.by, approval.count, approval.not_publisher, approval.valid) == (None, 1, False, None)


def test_s1_init_and_holds_can_need_approval_too() -> None:
    runbook = read({**good(), "init": [init_step()], "init_approval": {"count": 2}, "safeguards": {"approval": {}}})
    assert runbook.init_approval is not None
    assert runbook.safeguards is not None
    assert (runbook.init_approval.count, runbook.safeguards.approval is not None) == (2, True)


def init_step() -> dict[str, Any]:
    return step(params={"UserId": "{{_batch_id}}", "NewUserPrincipalName": "{{_batch_id}}"})


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        (FULL, []),
        ({"count": 3, "by": ["role:Approver"]}, []),
        ({"count": 2, "by": ["ann@contoso.com"]}, ["RB223"]),
        ({"count": 2, "by": ["ann@contoso.com", "ANN@contoso.com"]}, ["RB223"]),
        ({"by": []}, ["RB108"]),
        ({"by": ["role:"]}, ["RB108"]),
        ({"from": "T-1d", "until": "T-1d"}, ["RB223"]),
        ({"until": "T-1h"}, ["RB223"]),
        ({"until": "T-0"}, []),
        ({"by": ["ann@contoso.com"], "not_publisher": True}, ["RB320"]),
        ({"by": ["ann@contoso.com", "bob@contoso.com"], "not_publisher": True}, []),
        ({"count": 0}, ["RB109"]),
        ({"valid": "0d"}, ["RB107"]),
        ({"form": "T-1d"}, ["RB101"]),
        (None, ["RB108"]),
    ],
    ids=str,
)
def test_s1_an_approval_that_nobody_can_give_is_found(approval: Any, expected: list[str]) -> None:
    assert codes(with_approval(approval)) == expected


@pytest.mark.parametrize(
    ("begins", "delay", "expected"),
    [("T+7h", "6h", ["RB223"]), ("T+6h", "6h", []), ("T-1d", "6h", []), ("T+7h", None, [])],
)
def test_k5_an_approval_that_can_be_given_only_when_the_phase_is_late_is_found(
    begins: str, delay: str | None, expected: list[str]
) -> None:
    document = with_approval({"from": begins})
    document["phases"][0]["offset"] = "T-0"
    assert codes(document | ({"safeguards": {"max_delay": delay}} if delay else {})) == expected


def test_s1_a_wrong_key_gets_the_name_that_is_written_in_the_runbook() -> None:
    (found,) = findings(with_approval({"form": "T-1d"}))
    assert found.hint == "did you mean 'from'?"


def test_s1_what_has_no_effect_is_told() -> None:
    assert codes({**good(), "init_approval": {}}) == ["RB310"]
    assert codes({**good(), "safeguards": {"approval": {"from": "T-1d", "until": "T-2d"}}}) == ["RB310", "RB310"]


def test_s1_a_changed_approval_is_among_the_differences() -> None:
    found = differences(read(with_approval({"count": 1})), read(with_approval(FULL))).found
    (told,) = [str(one.told) for one in found]
    assert told.startswith("from 1 of role:Approver to 2 of role:Approver, jmarin@contoso.com")
