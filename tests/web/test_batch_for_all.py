"""Pages of batches and members for everybody: nothing for axe-core to find, in both themes, wide and narrow."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from matoolkit.store.batches import BatchRow
from tests.orchestrator.runbooks import TWO_PHASES
from tests.stage import Failing, Stage
from tests.web.scenery import HOSTILE

pytestmark = pytest.mark.on("sqlite")


@pytest.fixture
def batch(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(TWO_PHASES), [*HOSTILE, "u0", "u1"])
    stage.answers["Move"] = lambda job: Failing("over quota") if job.parameters["Email"] in ("u0", *HOSTILE) else None
    stage.due(batch, "prepare", "cutover")
    stage.run()
    stage.leave(batch, "u1")
    stage.hold(batch)
    return batch


def looked_at(tab: Page, path: str, *opened: str) -> None:
    tab.goto(path)
    for link in opened:
        tab.get_by_role("link", name=link).first.click()
        expect(tab.locator("form.decide").first).to_be_visible()
    found = Axe().run(tab).response["violations"]
    assert [(tab.url, one["id"], one["nodes"][0]["html"]) for one in found] == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab.url


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_pages_are_for_everybody(
    browser: Browser, address: str, stage: Stage, batch: BatchRow, width: int, theme: Literal["light", "dark"]
) -> None:
    # What axe-core adds to a page is no script of ours.
    context = browser.new_context(
        base_url=address, viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True
    )
    tab, here = context.new_page(), f"/batches/{batch.id}"
    looked_at(tab, here, "Retry ", "Undo members…")
    looked_at(tab, here, "Cancel batch…")
    looked_at(tab, f"{here}/undo?who=everybody")
    looked_at(tab, f"{here}/members")
    for key in ("u0", "u1", *HOSTILE):
        looked_at(tab, f"{here}/members/{stage.member(batch, key).id}", "Exclude…")
    context.close()


def test_a_group_is_retried_with_the_keyboard_alone(tab: Page, batch: BatchRow) -> None:
    tab.goto(f"/batches/{batch.id}")
    tab.get_by_role("link", name="Retry ").first.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("form.decide")).to_be_visible()
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    expect(tab.get_by_label("Reason")).to_be_focused()
    tab.keyboard.type("quota raised")
    tab.keyboard.press("Enter")
    expect(tab.locator(".told")).to_contain_text("retried")
