"""The pages over a real store, asked by a program or looked at in a real browser."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from httpx import Client, Response
from playwright.sync_api import Browser, BrowserContext, Page

from matoolkit.clock import SystemClock
from matoolkit.doors.services import Services
from matoolkit.web.sealing import Seal
from matoolkit.web.serving import Site
from tests.servers.browser import browsing
from tests.servers.pages import serving_pages

_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


@pytest.fixture
def site(services: Services) -> Site:
    """What pages work with; they are fresh at once, so that no test waits for a second."""
    site = Site(services, services.sign_in, Seal.of_this_process(SystemClock()), fresh_seconds=0.05)
    # A test that changes something in the store and asks again may be faster than that.
    object.__setattr__(site.looks, "_seconds", 0.0)
    return site


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    with serving_pages(site) as address:
        yield address


class Visitor(Client):
    """A browser as far as HTTP goes: it keeps cookies and sends forms with the mark of a page that it was sent."""

    def send_form(self, path: str, seen_at: str = "/preferences", **fields: Any) -> Response:
        """Send a form of the page at an address."""
        (mark, *_) = _CSRF.findall(self.get(seen_at).text)
        return self.post(path, data={"csrf": mark, **fields})


@pytest.fixture
def visitor(address: str) -> Iterator[Visitor]:
    with Visitor(base_url=address, timeout=60) as visitor:
        yield visitor


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.fixture
def context(browser: Browser, address: str) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=address, viewport={"width": 1440, "height": 900}, timezone_id="UTC")
    context.set_default_timeout(15_000)
    yield context
    context.close()


@pytest.fixture
def tab(context: BrowserContext) -> Iterator[Page]:
    """A page in a browser; whatever it complains about, a breach of the content policy above all, fails the test."""
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda fault: complaints.append(str(fault)))
    page.on(
        "request", lambda sent: complaints.append(f"asked elsewhere: {sent.url}") if _is_foreign(sent.url) else None
    )
    yield page
    # Refusals are answers too, and the browser and htmx log them.
    refusals = ("the server responded with a status of 4", "Response Status Error Code 4")
    assert [said for said in complaints if not any(known in said for known in refusals)] == []


def _is_foreign(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:"))
