"""The field of the frame: one hit is gone to, several are listed, nothing is said so."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.orchestrator.runbooks import ONE_STEP
from tests.stage import Stage
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")


def gone_to(visitor: Visitor, text: str) -> str:
    answer = visitor.get("/find", params={"q": text})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def test_a_whole_key_and_a_part_that_one_member_has_are_gone_to(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP), ["ada@x", "ada@xyz", "grace@x"])
    ada, _, grace = stage.members(batch)
    assert gone_to(visitor, " ADA@X ") == f"/batches/{batch.id}/members/{ada.id}"
    assert gone_to(visitor, "grac") == f"/batches/{batch.id}/members/{grace.id}"
    wider = visitor.get("/find", params={"q": "ada@x", "parts": "true"}).text
    assert f'<a href="/batches/{batch.id}/members/{ada.id}"><bdi>ada@x</bdi></a>' in wider
    assert "<bdi>ada@xyz</bdi>" in wider


def test_a_number_may_be_a_batch_and_a_member(visitor: Visitor, stage: Stage) -> None:
    runbook = stage.publish(ONE_STEP)
    batches = [stage.batch_at(runbook, ["ada", "grace"], days=day) for day in (5, 6)]
    assert gone_to(visitor, "3") == f"/batches/{batches[1].id}/members/3"
    both = visitor.get("/find", params={"q": "2"})
    assert both.status_code == 200
    assert f'<a href="/batches/{batches[1].id}"><b>2</b></a>' in both.text
    assert f'<a href="/batches/{batches[0].id}/members/2"><bdi>grace</bdi></a>' in both.text
    assert "2 found for <bdi>2</bdi>" in both.text
    header, batch, member = visitor.get("/find.csv", params={"q": "2"}).text.splitlines()
    assert header == "batch,member,key,state,runbook,batch status,T"
    assert batch.startswith("2,,,,wave,active,")
    assert member.startswith("1,2,grace,waiting,wave,active,")


def test_an_address_in_a_row_is_found_when_no_key_has_it(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP), ["ada", "grace"])
    stage.refresh(batch, "ada", {"Email": "ada", "Mail": "ada.lovelace@analytical.example"})
    (ada, _) = stage.members(batch)
    assert gone_to(visitor, "ada.lovelace@ANALYTICAL.example") == f"/batches/{batch.id}/members/{ada.id}"


def test_many_are_cut_and_nobody_is_said_so(visitor: Visitor, stage: Stage) -> None:
    stage.batch(stage.publish(ONE_STEP), 70)
    many = visitor.get("/find", params={"q": "u"}).text
    assert "50 and more found for" in many
    assert "Only the first 50 members are listed." in many
    assert len(many) < 60_000
    nobody = visitor.get("/find", params={"q": "<img src=x>\x1b"}).text
    assert "No batch has this number" in nobody
    assert "<img" not in nobody
    assert visitor.get("/find", params={"q": "9" * 30}).status_code == 200
    assert visitor.get("/find", params={"q": "x" * 401}).status_code == 422
    assert "Find a batch or a member" in visitor.get("/find").text


def test_by_keyboard_a_member_is_found_from_every_page(tab: Page, stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP), ["ada@x"])
    tab.goto("/")
    tab.keyboard.press("/")
    tab.keyboard.type("ada")
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(f"/batches/{batch.id}/members/{stage.member(batch, 'ada@x').id}$"))
