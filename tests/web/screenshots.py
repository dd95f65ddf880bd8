"""Pictures of the pages, taken of a made-up weekend in a real browser.

python -m tests.web.screenshots                                  take them again, into docs/reference/pages/
python -m tests.web.screenshots --serve 8099 --members 10000     serve the weekend instead, to look at it
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser

from matoolkit.bus.wire import decode
from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.doors.identity import LocalOnly
from matoolkit.doors.services import Services
from matoolkit.store import open_store
from matoolkit.store.upgrade import upgrade
from matoolkit.web.sealing import Seal
from matoolkit.web.serving import Site
from tests.conftest import Rows
from tests.servers.browser import browsing
from tests.servers.pages import serving_pages
from tests.stage import Stage
from tests.web.scenery import SATURDAY, Weekend, weekend

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "reference" / "pages"
MEMBERS = 2_000
WIDE, NARROW, HEIGHT = 1440, 390, 900
SETTLES_MS = 2_000


@contextmanager
def served(members: int, port: int = 0) -> Iterator[tuple[str, Weekend]]:
    """Serve a weekend in which time stands still."""
    with tempfile.TemporaryDirectory(prefix="weekend") as folder:
        clock = VirtualClock(SATURDAY - timedelta(days=5))
        store = open_store(f"sqlite:///{folder}/state.db", clock=clock)
        upgrade(store)
        stage = Stage(store, clock)
        scene = weekend(stage, members)
        services = Services(store, stage.bus, decode, lambda _: Rows([]), clock, LocalOnly())
        site = Site(services, services.sign_in, Seal.of_this_process(SystemClock()), "PROD", "Europe/Madrid")
        with serving_pages(site, port) as address:
            yield address, scene
        store.close()


def take(address: str, scene: Weekend) -> None:
    """Take the pictures that the documentation shows."""
    batch = f"/batches/{scene.running.id}"
    pages = {
        "now": "/",
        "batch": batch,
        "member": f"{batch}/members/{scene.failed_member}",
        "runbook": "/runbooks/user-migration",
        "hold": f"/holds/{scene.held.id}",
    }
    PICTURES.mkdir(parents=True, exist_ok=True)
    with browsing() as browser:
        for name, path in pages.items():
            _picture(browser, f"{address}{path}", name, WIDE)
        _picture(browser, address, "now-dark", WIDE, "dark")
        _picture(browser, f"{address}{batch}", "batch-narrow", NARROW)


def _picture(browser: Browser, url: str, name: str, width: int, theme: Literal["dark", "light"] = "light") -> None:
    context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=theme)
    tab = context.new_page()
    tab.goto(url, wait_until="load")
    # The matrix loads later than the page.
    tab.wait_for_timeout(SETTLES_MS)
    tab.screenshot(path=PICTURES / f"{name}.png", full_page=True)
    context.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", type=int, metavar="PORT")
    parser.add_argument("--members", type=int, default=MEMBERS)
    options = parser.parse_args()
    with served(options.members, options.serve or 0) as (address, scene):
        if options.serve:
            print(f"{address}  batch {scene.running.id}, held {scene.held.id}, failed member {scene.failed_member}")  # noqa: T201 - what was asked for
            input("Enter ends it. ")
        else:
            take(address, scene)
