"""Signing in with a real browser: what only a browser refuses, such as a cookie or the way of a form."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.doors.services import Services
from matoolkit.hosting.sockets import listening, port_of
from matoolkit.store.batches import BatchRow
from tests.servers.certificates import make_certificate
from tests.servers.entra import ANN
from tests.servers.tls_front import tls_front
from tests.stage import Stage
from tests.web.signing import HOURS, Place, place

pytestmark = pytest.mark.on("sqlite")

# A browser waits for some seconds before it begins a stream again, and longer after each refusal.
LONG = 60_000
ONE_PHASE = """\
phases:
  - name: first
    offset: T-0
    steps:
      - {name: one, worker_id: worker-01, function: Custom-One}
"""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(SystemClock().now())


@pytest.fixture
def pages(services: Services, clock: VirtualClock, tmp_path: Path) -> Iterator[Place]:
    with place(services, clock, tmp_path) as served:
        yield served


@pytest.fixture
def batch(stage: Stage) -> BatchRow:
    return stage.batch(stage.publish(ONE_PHASE), ["ada", "grace"])


@contextmanager
def tab_of(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """Open a page in a browser of its own; what the content policy forbids fails the test."""
    context = browser.new_context(base_url=address, timezone_id="UTC", **options)
    context.set_default_timeout(15_000)
    page, forbidden = context.new_page(), list[str]()
    page.on("console", lambda said: forbidden.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    context.close()
    assert forbidden == []


@pytest.fixture
def tab(browser: Browser, pages: Place) -> Iterator[Page]:
    with tab_of(browser, pages.address) as tab:
        yield tab


def test_a_person_signs_in_looks_and_signs_out(tab: Page, pages: Place) -> None:
    tab.goto("/batches?status=active")
    expect(tab.locator("footer")).to_contain_text(ANN)
    assert tab.url == f"{pages.address}/batches?status=active"
    tab.get_by_role("button", name="sign out").click()
    expect(tab.get_by_role("heading", name="Signed out")).to_be_visible()
    assert tab.url == f"{pages.address}/signed-out"
    assert len(pages.entra.asked("/logout")) == 1
    tab.get_by_role("link", name="Sign in again").click()
    expect(tab.locator("footer")).to_contain_text(ANN)
    assert pages.entra.asked("/authorize")[-1]["prompt"] == "select_account"


def test_no_script_sees_a_session(tab: Page) -> None:
    tab.goto("/batches")
    expect(tab.locator("footer")).to_contain_text(ANN)
    assert "session" not in str(tab.evaluate("document.cookie"))


def test_behind_a_proxy_with_tls_the_browser_keeps_what_is_of_this_host(
    browser: Browser, services: Services, clock: VirtualClock, tmp_path: Path
) -> None:
    (tmp_path / "tls").mkdir()
    certificate, _ = make_certificate(tmp_path / "tls")
    with listening("127.0.0.1", 0) as front:
        home = f"https://localhost:{port_of(front)}"
        with (
            place(services, clock, tmp_path, MATOOLKIT_WEB_ADDRESS=home) as pages,
            tls_front(certificate, front, int(pages.address.rpartition(":")[2])),
            tab_of(browser, home, ignore_https_errors=True) as tab,
        ):
            tab.goto("/batches")
            expect(tab.locator("footer")).to_contain_text(ANN)
            kept = {one["name"]: one for one in tab.context.cookies()}
            session = kept["__Host-matoolkit-session"]
            assert (session["secure"], session["httpOnly"], session["sameSite"]) == (True, True, "Lax")
            assert not [name for name in kept if "entry" in name], "what was begun is forgotten"
            tab.get_by_role("button", name="sign out").click()
            expect(tab.get_by_role("heading", name="Signed out")).to_be_visible()
            assert "__Host-matoolkit-session" not in {one["name"] for one in tab.context.cookies()}


def test_a_filter_that_is_chosen_after_the_session_has_ended_leads_to_signing_in_and_back(
    tab: Page, pages: Place, clock: VirtualClock
) -> None:
    """Chromium lets no form lead to another site, not even by way of redirects."""
    tab.goto("/batches")
    expect(tab.locator("footer")).to_contain_text(ANN)
    clock.advance(HOURS)
    tab.get_by_label("status").select_option("active")
    tab.get_by_role("button", name="Show").click()
    expect(tab).to_have_url(re.compile("status=active"))
    expect(tab.locator("footer")).to_contain_text(ANN)
    assert len(pages.entra.asked("/authorize")) == 2


def test_a_form_that_meets_the_end_of_a_session_keeps_what_was_typed(
    tab: Page, pages: Place, clock: VirtualClock
) -> None:
    tab.goto("/preferences")
    expect(tab.locator("footer")).to_contain_text(ANN)
    tab.get_by_label("Zone of all times").select_option("Europe/Madrid")
    clock.advance(HOURS)
    tab.get_by_role("button", name="Keep").click()
    expect(tab.locator("body")).to_contain_text("your session has ended; nothing was changed")
    with tab.context.expect_page() as opened:
        tab.get_by_role("link", name="Sign in on a second page").click()
    expect(opened.value.locator("footer")).to_contain_text(ANN)
    tab.go_back()
    expect(tab.get_by_label("Zone of all times")).to_have_value("Europe/Madrid")
    tab.get_by_role("button", name="Keep").click()
    expect(tab.locator(".zone").first).to_contain_text("Europe/Madrid")


def test_a_live_page_says_that_the_session_has_ended(
    tab: Page, pages: Place, clock: VirtualClock, batch: BatchRow
) -> None:
    tab.goto("/batches")
    expect(tab.locator("footer")).to_contain_text(ANN)
    clock.advance(HOURS - timedelta(seconds=2))
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("#live")).to_contain_text("live")
    clock.advance(timedelta(seconds=2))
    expect(tab.locator("#refused")).to_contain_text("your session has ended", timeout=LONG)
    with tab.context.expect_page() as opened:
        tab.get_by_role("link", name="Sign in on a second page").click()
    expect(opened.value.locator("footer")).to_contain_text(ANN)
    opened.value.close()
    expect(tab.locator("#refused")).to_be_empty(timeout=LONG)
    expect(tab.locator("#live")).to_contain_text("live")


def test_a_page_that_asks_by_itself_says_it_too_and_takes_nobodys_place_away(
    browser: Browser, services: Services, clock: VirtualClock, tmp_path: Path, batch: BatchRow
) -> None:
    """Where answers cannot be streamed, every part asks every five seconds, and each of them is refused."""
    with place(services, clock, tmp_path, streams=False) as pages, tab_of(browser, pages.address) as tab:
        tab.goto("/batches")
        expect(tab.locator("footer")).to_contain_text(ANN)
        tab.clock.install()
        tab.goto(f"/batches/{batch.id}")
        expect(tab.locator("#live")).to_contain_text("asks every 5 s")
        find = tab.get_by_role("searchbox").first
        find.fill("a")
        clock.advance(HOURS)
        for _ in range(2):
            tab.clock.run_for(5_000)
            expect(tab.locator("#refused")).to_contain_text("your session has ended")
            expect(find).to_be_focused()
        with tab.context.expect_page() as opened:
            tab.get_by_role("link", name="Sign in on a second page").click()
        expect(opened.value.locator("footer")).to_contain_text(ANN)
        opened.value.close()
        tab.clock.run_for(5_000)
        expect(tab.locator("#refused")).to_be_empty()
