"""The rule for windows and a look at the clock minute by minute agree, above all where clocks are changed (rule K3)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from matoolkit.domain import wallclock, windows
from matoolkit.domain.windows import Binds, Hours, is_open
from matoolkit.runbook.values import WEEKDAYS
from matoolkit.simulate.declared import Declared
from matoolkit.simulate.wallclocks import is_window_open, next_opening

# Days on which clocks are changed in Berlin, New York or on Lord Howe Island, where it is by half an hour.
CHANGES = [(3, 8), (3, 29), (4, 5), (10, 4), (10, 25), (11, 1)]


def hours_of(window: dict[str, Any]) -> Hours:
    opens, closes = (int(text[:2]) * 60 + int(text[3:]) for text in (window["from"], window["to"]))
    days = frozenset(WEEKDAYS.index(day) for day in window.get("days", WEEKDAYS))
    return Hours(days, opens, closes, ZoneInfo(window["zone"]), Binds.START)


def disagreements(seeds: range) -> Iterator[tuple[dict[str, Any], datetime]]:
    for seed, (month, day) in product(seeds, CHANGES):
        rng = Random(seed)
        window = Declared(rng).window()
        at = datetime(2026, month, day, tzinfo=UTC) + timedelta(minutes=rng.randint(-1500, 1500), seconds=30)
        opens = windows.next_opening(hours_of(window), at)
        is_same = is_window_open(window, at) == is_open(hours_of(window), at)
        if not is_same or (opens is not None and opens > at and opens != next_opening(window, at)):
            yield window, at


def test_k3_windows_are_open_when_the_clock_says_so() -> None:
    assert list(disagreements(range(60))) == []


def test_k3_an_hour_that_comes_twice_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a window begins when the clock comes to its beginning for the first time."""
    monkeypatch.setattr(windows, "last_reached", wallclock.first_reached)
    windows.opening.cache_clear()
    assert next(disagreements(range(60)), None) is not None
    windows.opening.cache_clear()


def test_k3_an_hour_that_never_comes_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a time that the clock jumps over is taken as if it did not."""

    def by_the_new_clock(wall: datetime, zone: ZoneInfo) -> datetime:
        return wall.replace(tzinfo=zone, fold=1).astimezone(UTC)

    monkeypatch.setattr(windows, "last_reached", by_the_new_clock)
    windows.opening.cache_clear()
    assert next(disagreements(range(60)), None) is not None
    windows.opening.cache_clear()
