"""Every page can be used by everybody: axe-core finds nothing in either theme, wide or narrow (WCAG 2.2 AA)."""

from importlib.resources import files
from itertools import cycle
from typing import Any, Literal

import pytest
from playwright.sync_api import Page

from matoolkit.web.serving import Site
from matoolkit.web.site import create_site
from tests.stage import Stage
from tests.web.conftest import Visitor
from tests.web.everywhere import Everywhere
from tests.web.furnished import furnish

pytestmark = pytest.mark.on("sqlite")

Theme = Literal["light", "dark"]
WIDE, NARROW = 1440, 390
# Every page is seen in both themes and in both widths, and what all pages share in each of the four looks: a theme
# changes colours and nothing else, and a width changes no colour (test_palette.py).
LOOKS: tuple[tuple[tuple[int, Theme], tuple[int, Theme]], ...] = (
    ((WIDE, "light"), (NARROW, "dark")),
    ((WIDE, "dark"), (NARROW, "light")),
)
# What the theme and the width can change; all else is the same in the first look.
SEEN = {"runOnly": {"type": "rule", "values": ["color-contrast", "target-size", "scrollable-region-focusable"]}}
ALL = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}}


@pytest.fixture
def addresses(visitor: Visitor, site: Site, stage: Stage) -> list[str]:
    """The pages of a site with some of everything, and one that says what is wrong."""
    found = Everywhere(stage, furnish(stage)).pages(create_site(site))
    pages = [path for path in found if "text/html" in visitor.get(path).headers["content-type"]]
    return [*pages, "/batches/999"]


def test_axe_finds_nothing_on_any_page(tab: Page, addresses: list[str]) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text()
    seen = zip(addresses, cycle(LOOKS), strict=False)
    wrong = [f"{path}: {one}" for path, looks in seen for one in sorted(_found(tab, axe, path, *looks))]
    assert not wrong, "\n".join(wrong)


def _found(tab: Page, axe: str, path: str, wide: tuple[int, Theme], narrow: tuple[int, Theme]) -> set[str]:
    _look(tab, *wide)
    tab.goto(path, wait_until="domcontentloaded")
    tab.evaluate(axe)
    found = _violations(tab, ALL)
    _look(tab, *narrow)
    found |= _violations(tab, SEEN)
    if not tab.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        found.add(f"has to be scrolled sideways at {NARROW}")
    return found


def _look(tab: Page, width: int, theme: Theme) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=theme, reduced_motion="reduce")


def _violations(tab: Page, options: dict[str, Any]) -> set[str]:
    told = "options => axe.run(document, options).then(({violations}) => violations.flatMap(one => "
    told += "one.nodes.map(node => `${one.id}: ${node.html.slice(0, 200)}`)))"
    return set(tab.evaluate(told, {**options, "resultTypes": ["violations"]}))
