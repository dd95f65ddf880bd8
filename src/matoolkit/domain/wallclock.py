"""Times of the clock on the wall of a zone, as instants (rule K3).

Where clocks are put back, a time comes twice: it has a first and a last instant. Where they are put forward, some times
never come: both are the instant of the jump, the first at which the clock shows a later time.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_SECOND = timedelta(seconds=1)


def first_reached(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant at which the clock shows a time, in UTC."""
    return _reached(wall, zone)[0]


def last_reached(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the last instant at which the clock comes to show a time, in UTC."""
    return _reached(wall, zone)[1]


def _reached(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    by_old, by_new = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if by_old <= by_new:
        return by_old, by_new
    jump = _jump(by_new, by_old, zone)
    return jump, jump


def _jump(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Find when a clock is put forward, between an instant before it and one that is not."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)
