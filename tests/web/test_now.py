"""The first page: what needs a person is first, grows while somebody looks, and is reached by keyboard (rule U6)."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from matoolkit.web.serving import Site
from tests.admin.test_attention import failed
from tests.orchestrator.runbooks import ONE_STEP, TWO_PHASES
from tests.stage import Failing, Stage
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

HOSTILE = '<img src=x onerror="alert(1)">\x1b[31m\u202e' + "x" * 10_000


def test_u6_where_nothing_needs_a_person_the_page_says_what_was_checked(visitor: Visitor, stage: Stage) -> None:
    shown = visitor.get("/").text
    assert "Nothing needs a person: no batch is held or paused, no phase is overdue or late" in shown
    assert "<title>Now · matoolkit</title>" in shown
    assert "No phase is to come." in shown
    stage.batch_at(stage.publish(TWO_PHASES), 1, days=6)
    assert "Next by itself: prepare of" in visitor.get("/").text


def test_u6_the_title_and_the_list_say_what_needs_a_person(visitor: Visitor, stage: Stage) -> None:
    batch = failed(stage, 3)
    stage.hold(batch)
    shown = visitor.get("/").text
    assert "<title>2 need a person · Now · matoolkit</title>" in shown
    assert "2 things need a person" in shown
    assert f"Batch {batch.id} of wave is held" in shown
    assert shown.index("is held") < shown.index(f"3 members of batch {batch.id} failed")
    header, held, *_ = visitor.get("/now.csv").text.splitlines()
    assert header == "kind,needs a person,more,since,batch,T,runbook,things,command"
    assert held.startswith(f"held,Batch {batch.id} of wave is held,")


def test_an_error_of_a_hostile_system_is_text(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.answers["Create"] = Failing(HOSTILE)
    stage.due(batch, "prepare")
    stage.run()
    shown = visitor.get("/").text
    assert "<img" not in shown
    assert "&lt;img src=x" in shown
    assert "\x1b" not in shown
    assert len(shown) < 60_000


def test_the_calendar_has_all_waves_in_words_and_moves_by_its_address(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 3, days=6)
    shown = visitor.get("/").text
    assert f'<a href="/batches/{batch.id}"><b>{batch.id}</b></a> <span class="quiet">· 3</span>' in shown
    assert "pending, Wed 4 Mar 12:00; " in shown
    assert "T Mon 9 Mar 12:00</title>" in shown
    assert 'href="/?weeks=4#calendar"' in shown
    assert 'href="/?weeks=-4#calendar"' in shown
    later = visitor.get("/", params={"weeks": 8}).text
    assert "No batch has its T or a phase in these weeks." in later
    assert 'href="/?weeks=4#calendar"' in later
    assert 'sse-connect="/live/now/8"' in later
    assert visitor.get("/", params={"weeks": 521}).status_code == 422
    assert visitor.get("/live/now/521").status_code == 422


def test_the_last_hour_is_told_in_numbers_and_their_largest(visitor: Visitor, site: Site, stage: Stage) -> None:
    assert "no step ended" in visitor.get("/").text
    batch = stage.batch(stage.publish(ONE_STEP), 90)
    stage.due(batch, "prepare")
    stage.run()
    stage.clock.advance(timedelta(minutes=2))
    site.looks.forget()
    shown = visitor.get("/").text
    assert "<b>1.5</b> steps a minute" in shown
    assert "90 in the hour, at most 90 in a minute" in shown
    assert "<b>0</b> jobs out" in shown
    assert "<b>1 of 1</b> workers ended steps" in shown


def test_of_hundreds_of_waves_some_are_drawn_and_the_page_says_how_many(visitor: Visitor, stage: Stage) -> None:
    runbook = stage.publish(ONE_STEP, "x" * 100)
    for day in range(1, 42):
        stage.batch_at(runbook, 1, days=day)
    shown = visitor.get("/").text
    assert "24 of 41 waves are drawn" in shown
    assert f'<a href="/batches?runbook={"x" * 100}">17 more</a>' in shown
    assert len(shown) < 60_000


def test_the_page_costs_as_many_statements_for_many_members_as_for_few(
    visitor: Visitor, site: Site, stage: Stage, statements: Callable[[], list[str]]
) -> None:
    def cost() -> int:
        site.looks.forget()
        statements()
        visitor.get("/")
        return len(statements())

    failed(stage, 2)
    few = cost()
    failed(stage, 80, "other")
    assert cost() == few


def test_u6_the_list_grows_while_the_page_is_open_and_is_reached_by_keyboard(tab: Page, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 3)
    tab.goto("/")
    expect(tab.locator("h1")).to_have_text("Nothing needs a person")
    stage.answers["Create"] = Failing("the mailbox is over its quota")
    stage.due(batch, "prepare")
    stage.run()
    expect(tab.locator("h1")).to_have_text("1 thing needs a person")
    expect(tab).to_have_title("1 needs a person · Now · matoolkit")
    expect(tab.locator(".need")).to_contain_text(f"3 members of batch {batch.id} failed")
    go_on = tab.get_by_role("link", name="Groups…")
    for _ in range(30):
        if go_on.evaluate("one => one === document.activeElement"):
            break
        tab.keyboard.press("Tab")
    expect(go_on).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(f"/batches/{batch.id}#failures$"))
    expect(tab.locator("h1")).to_have_text(f"Batch {batch.id}")
