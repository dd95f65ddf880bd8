"""When a freeze begins and ends, as people write it (rules K1 and K3).

What a clock repeats or skips makes a freeze longer: it begins the first time that the clock comes to its beginning, and
ends the last time that it comes to its end.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from matoolkit.domain.wallclock import first_reached, last_reached
from matoolkit.errors import InvalidFreeze
from matoolkit.records import record
from matoolkit.runbook.values import is_time_zone, zone_hint

_HOW = "write it as in 2026-12-24 18:00, with a zone beside it, or as in 2026-12-24T18:00+01:00"


@record
class FreezeTimes:
    """From when until when nothing leaves; without an end until somebody opens it."""

    begins: datetime
    ends: datetime | None


def freeze_times(begins: str | None, ends: str | None, zone: str | None, now: datetime) -> FreezeTimes:
    """Read the times of a freeze, the clock of a zone where they have none; without a beginning it begins now."""
    clock = None if zone is None else _zone(zone)
    since = now if begins is None else _instant(begins, clock, first_reached)
    until = None if ends is None else _instant(ends, clock, last_reached)
    if until is not None and until <= now:
        raise InvalidFreeze(f"the freeze would be over: {until:%Y-%m-%d %H:%M} UTC is past", "look at the year")
    if since < now:
        told = f"the freeze would begin in the past, at {since:%Y-%m-%d %H:%M} UTC"
        raise InvalidFreeze(told, "leave its beginning out to freeze from now on")
    if until is not None and until == since:
        told = f"the freeze would end when it begins, at {until:%Y-%m-%d %H:%M} UTC"
        raise InvalidFreeze(told, "let it end later; a day without a time is its midnight, with which it begins")
    if until is not None and (until < since or _is_turned(begins, ends)):
        raise InvalidFreeze(f"the freeze would end before it begins, at {until:%Y-%m-%d %H:%M} UTC", "swap the times")
    return FreezeTimes(since, until)


def _instant(text: str, zone: ZoneInfo | None, reached: Callable[[datetime, ZoneInfo], datetime]) -> datetime:
    written = _written(text)
    if written is None:
        raise InvalidFreeze(f"'{text}' is not a time", _HOW)
    try:
        if written.tzinfo is not None:
            return written.astimezone(UTC)
        if zone is None:
            raise InvalidFreeze(f"'{text}' does not say in which zone", "give a zone, such as Europe/Berlin")
        return reached(written, zone)
    except OverflowError:
        raise InvalidFreeze(f"'{text}' is beyond the calendar", "look at the year") from None


def _written(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def _is_turned(begins: str | None, ends: str | None) -> bool:
    """Tell whether the times are in the wrong order on the wall, which an hour that comes twice would hide."""
    since, until = (None if text is None else _written(text) for text in (begins, ends))
    if since is None or until is None or since.tzinfo is not None or until.tzinfo is not None:
        return False
    return until <= since


def _zone(name: str) -> ZoneInfo:
    if not is_time_zone(name):
        raise InvalidFreeze(f"'{name}' is not a time zone", zone_hint(name))
    return ZoneInfo(name)
