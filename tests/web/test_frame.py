"""What all pages have in common: the frame, how times are said, and what is said when something cannot be done."""

import re

import pytest
from playwright.sync_api import Page, expect

from matoolkit.errors import StoreUnavailable
from matoolkit.web.looking import Looks
from tests.stage import Stage
from tests.web.conftest import Visitor
from tests.web.test_live import TWO_PHASES

pytestmark = pytest.mark.on("sqlite")


@pytest.mark.parametrize(
    "path", ["/nothing", "/batches/77", "/batches/x", "/batches?status=odd", "/batches/99999999999999999999"]
)
def test_what_cannot_be_shown_is_a_page_that_says_why(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code in (404, 422)
    assert "text/html" in answer.headers["content-type"]
    assert re.search(r"<code>[A-Z]{2}\d{3}</code>", answer.text)
    assert "<nav" in answer.text


@pytest.mark.parametrize("path", ["/api/nothing", "/api/batches/77", "/api"])
def test_programs_get_problems_at_the_same_address(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json"])
def test_programs_find_what_they_found_before(visitor: Visitor, path: str) -> None:
    assert visitor.get(path).status_code == 200
    assert "text/html" not in visitor.get(path).headers["content-type"]


def test_a_part_of_a_page_gets_a_part_as_its_refusal(visitor: Visitor) -> None:
    answer = visitor.get("/batches/77", headers={"HX-Request": "true"})
    assert answer.status_code == 404
    assert "AD404" in answer.text
    assert "<html" not in answer.text


def test_a_database_that_is_away_is_said_without_a_frame(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: Looks) -> None:
        raise StoreUnavailable("could not connect to secret-host")

    monkeypatch.setattr(Looks, "open_matters", away)
    answer = visitor.get("/batches")
    assert answer.status_code == 503
    assert "DB503" in answer.text
    assert "secret-host" not in answer.text


def test_times_are_in_the_zone_that_a_person_chose_with_utc_at_hand(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    at = f"{batch.batch_start_time:%Y-%m-%d %H:%M:%S} UTC"
    assert f'title="{at}">Sun 8 Mar 12:00<' in visitor.get("/batches").text
    chosen = visitor.send_form("/preferences", zone="Asia/Kolkata", theme="dark", back="/batches")
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/batches")
    shown = visitor.get("/batches").text
    assert f'title="{at}">Sun 8 Mar 17:30<' in shown
    assert "Asia/Kolkata" in shown
    assert 'data-theme="dark"' in shown


@pytest.mark.parametrize(
    "back", ["//evil.example", "/\\evil.example", "https://evil.example", "/x\r\nSet-Cookie: a=b", ""]
)
def test_the_way_back_never_leads_elsewhere(visitor: Visitor, back: str) -> None:
    assert visitor.send_form("/preferences", zone="UTC", theme="auto", back=back).headers["location"] == "/"


@pytest.mark.parametrize("wrong", [{"zone": "../../etc/passwd"}, {"zone": "Nowhere/Land"}, {"theme": "pink"}])
def test_a_zone_or_theme_that_is_none_is_refused(visitor: Visitor, wrong: dict[str, str]) -> None:
    assert visitor.send_form("/preferences", **{"zone": "UTC", "theme": "auto", **wrong}).status_code == 422


def test_cookies_are_for_the_server_alone(visitor: Visitor) -> None:
    for cookie in visitor.get("/preferences").headers.get_list("set-cookie"):
        assert "HttpOnly" in cookie
        assert "samesite=lax" in cookie.lower()


def test_filters_are_in_the_address_and_the_command_is_the_same(visitor: Visitor, stage: Stage) -> None:
    held = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.hold(held)
    stage.batch(stage.publish(TWO_PHASES.replace("one", "uno"), name="other"), 2)
    shown = visitor.get("/batches?runbook=wave&held=true&status=").text
    assert "1 of 2" in shown
    assert "matoolkit batch list --runbook wave --held" in shown
    assert 'href="/batches.csv?runbook=wave&amp;held=True"' in shown
    assert (
        visitor.get("/batches.csv?runbook=wave&held=True")
        .text.splitlines()[1]
        .startswith("1,wave,2026-03-08 12:00:00,")
    )


def test_the_keyboard_reaches_everything_in_order(tab: Page, stage: Stage) -> None:
    stage.batch(stage.publish(TWO_PHASES), 1)
    tab.goto("/batches")
    tab.keyboard.press("Tab")
    expect(tab.get_by_text("Skip to the content")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.locator("#main")).to_be_focused()
    tab.keyboard.press("/")
    expect(tab.get_by_placeholder("Find batch or member")).to_be_focused()


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_has_to_be_scrolled_sideways(tab: Page, stage: Stage, width: int) -> None:
    stage.batch(stage.publish(TWO_PHASES), ["x" * 400])
    tab.set_viewport_size({"width": width, "height": 900})
    for path in ("/batches", "/batches/1", "/preferences", "/batches/77"):
        tab.goto(path)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
