"""A real browser: the Chromium of this machine, without a screen and without any word to the outside."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)


def found_browser() -> str | None:
    """Return where a browser is, if there is one."""
    wanted = os.environ.get("MATOOLKIT_TEST_BROWSER")
    return wanted or next((found for name in _NAMES if (found := shutil.which(name))), None)


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser; where there is none, the tests that need it say that they are skipped."""
    place = found_browser()
    if place is None:
        pytest.skip("there is no Chromium: the pages are not tested in a browser")
    # Chromium refuses to sandbox itself for root, who has nothing to lose here but our own pages.
    with sync_playwright() as driver:
        arguments = [*_QUIET, "--no-sandbox"] if os.geteuid() == 0 else [*_QUIET]
        browser = driver.chromium.launch(executable_path=place, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
