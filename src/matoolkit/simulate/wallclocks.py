"""When a window is open, found by looking at the clock minute by minute (rules K2 and K3).

It shares nothing with the rule that the system goes by, and is far too slow for it.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
# No clock is changed by more.
_FURTHEST = timedelta(hours=2)


def is_window_open(window: dict[str, Any], at: datetime) -> bool:
    """Tell whether a window as a runbook declares it is open at an instant."""
    return any(opens <= at < closes for opens, closes in _openings(window, at, range(-2, 2)))


def next_opening(window: dict[str, Any], at: datetime) -> datetime | None:
    """Return when a window that is shut opens; nothing if it is open, or does not open within two weeks."""
    if is_window_open(window, at):
        return None
    ahead = [opens for opens, closes in _openings(window, at, range(14)) if at < opens < closes]
    return min(ahead, default=None)


def openings_in(window: dict[str, Any], since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """Return the openings of a window that touch a time."""
    days = range(-2, (until - since).days + 3)
    return [
        (opens, closes)
        for opens, closes in _openings(window, since, days)
        if opens < until and since < closes and opens < closes
    ]


def _openings(window: dict[str, Any], at: datetime, days: Iterable[int]) -> Iterator[tuple[datetime, datetime]]:
    zone = window["zone"]
    opens, closes = _minutes(window.get("from", "00:00")), _minutes(window.get("to", "24:00"))
    closes += 1440 if closes <= opens else 0
    today = at.astimezone(ZoneInfo(zone)).date()
    for day in (today + _DAY * number for number in days):
        if _DAYS[day.weekday()] in window.get("days", _DAYS):
            yield max(_times(zone, day, opens)), min(_times(zone, day, closes))


@lru_cache(maxsize=4096)
def _times(zone: str, day: date, minute: int) -> list[datetime]:
    """Return all instants at which a clock comes to a minute of a day, or jumps to it or past it."""
    wanted = datetime.combine(day, time()) + _MINUTE * minute
    instant = wanted.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) - _FURTHEST
    found, shown = [], _shown(instant, zone)
    for _ in range(2 * int(_FURTHEST / _MINUTE)):
        instant, before = instant + _MINUTE, shown
        shown = _shown(instant, zone)
        if before < wanted <= shown or shown == wanted:
            found.append(instant)
    return found


def _shown(at: datetime, zone: str) -> datetime:
    return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)
