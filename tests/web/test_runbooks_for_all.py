"""Pages of runbooks and manual batches for everybody: nothing for axe-core to find, in both themes, wide and narrow."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from matoolkit.admin.publishing import publish
from matoolkit.clock import VirtualClock
from matoolkit.store import Store
from tests.conftest import Rows
from tests.documents import document

pytestmark = pytest.mark.on("sqlite")


@pytest.fixture(autouse=True)
def _wave(store: Store, clock: VirtualClock, source: Rows) -> None:
    source.rows = [["ada@x", "Ada", "2030-01-31T18:00:00Z"], ["", "nobody", "some evening"]]
    for remark in ("first", "second"):
        text = document(remark=remark, key="Email").replace("cutover", "Start")
        publish(store, text.replace("SELECT Email, Start", "SELECT Email, Name, Start"), by="anna", now=clock.now())


def checked(tab: Page) -> None:
    tab.goto("/publications/new?runbook=wave")
    tab.locator("textarea").fill(document({"prepare": "T-2d"}, remark="third").replace("{{email}}", "{{emial}}"))
    tab.get_by_role("button", name="Check").click()
    expect(tab.get_by_role("button", name="Publish v3")).to_be_visible()


def refused(tab: Page) -> None:
    tab.goto("/publications/new?runbook=wave")
    tab.locator("textarea").fill("name: wave\nphases: []\n")
    tab.get_by_role("button", name="Check").click()
    expect(tab.get_by_text("It cannot be published")).to_be_visible()


def queried(tab: Page) -> None:
    tab.goto("/runbooks/wave/query")
    tab.get_by_role("button", name="Run the query").click()
    expect(tab.get_by_text("nothing was changed")).to_be_visible()


def uploaded(tab: Page) -> None:
    tab.goto("/manual-batches/new?runbook=wave")
    tab.locator("input[type=file]").set_input_files(
        {"name": "people.csv", "mimeType": "text/csv", "buffer": b"Email\nada@x\n"}
    )
    tab.get_by_role("button", name="Check the rows").click()
    expect(tab.get_by_role("button", name="Make a batch of 1 member")).to_be_visible()


def switched(tab: Page) -> None:
    tab.goto("/runbooks/wave")
    tab.get_by_role("link", name="Turn automation on…").click()
    expect(tab.get_by_role("button", name="Turn automation on")).to_be_visible()


def at(path: str) -> Callable[[Page], Any]:
    return lambda tab: tab.goto(path)


LOOKS = (
    at("/runbooks"),
    at("/runbooks/wave/versions/1"),
    at("/runbooks/wave/versions/2/changes?since=1"),
    at("/runbooks/wave/versions/2/deactivate"),
    switched,
    checked,
    refused,
    queried,
    uploaded,
)


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_pages_are_for_everybody(browser: Browser, address: str, width: int, theme: Literal["light", "dark"]) -> None:
    # What axe-core adds to a page is no script of ours.
    context = browser.new_context(
        base_url=address, viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True
    )
    tab = context.new_page()
    for look in LOOKS:
        look(tab)
        found = Axe().run(tab).response["violations"]
        assert [(tab.url, one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab.url
    context.close()
