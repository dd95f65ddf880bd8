"""Waiting for something that another process does."""

import time
from collections.abc import Callable


def until(happened: Callable[[], object], seconds: float = 30, pause: float = 0.05) -> None:
    """Look again and again until something has happened; a test that waits too long fails."""
    end = time.monotonic() + seconds  # noqa: TID251 - another process's clock is real
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"  # noqa: TID251
        time.sleep(pause)  # noqa: TID251
