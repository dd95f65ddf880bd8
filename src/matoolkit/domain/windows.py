"""Windows: the hours in which a phase may begin, by the clock on the wall (rules K2 and K3).

A window belongs to the day on which it begins, also when it runs past midnight. What the clock repeats or skips at its
ends makes it shorter: it begins the last time that the clock comes to `from`, and ends the first time that it comes to
`to`. A window whose end comes before its beginning then does not open that day.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.wallclock import first_reached, last_reached
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.records import record
from matoolkit.runbook.model import Phase, Runbook
from matoolkit.runbook.values import DAY_MINUTES, WEEKDAYS

# A clock may spoil the window of one week, or of two where it is changed twice within days.
_SEARCHED = timedelta(days=29)
_FIRST, _LAST = datetime(1, 3, 1, tzinfo=UTC), datetime(9999, 11, 1, tzinfo=UTC)


class Binds(StrEnum):
    """What waits outside of a window."""

    START = "start"
    EVERY_JOB = "every_job"


@record
class Hours:
    """A window: days of the week, counted from Monday, and the minutes of the day between which it is open."""

    days: frozenset[int]
    opens: int
    closes: int
    zone: ZoneInfo
    binds: Binds

    def __str__(self) -> str:
        """Write it in a line: `fri, sat 20:00-06:00 Europe/Berlin`."""
        days = ", ".join(day for number, day in enumerate(WEEKDAYS) if number in self.days)
        opens, closes = (f"{minute // 60:02}:{minute % 60:02}" for minute in (self.opens, self.closes))
        return f"{days} {opens}-{closes} {self.zone.key}".removeprefix(", ".join(WEEKDAYS)).strip()


@record
class Opening:
    """A time for which a window is open without a break; it is shut again at `until`."""

    since: datetime
    until: datetime


def hours_of(runbook: Runbook, phase: Phase) -> Hours | None:
    """Return the window of a phase, if it has one that is ever shut."""
    window = phase.window
    if window is None or window.is_always_open:
        return None
    zone = window.zone or runbook.data_source.batch_time_zone or "UTC"
    days = frozenset(WEEKDAYS.index(day) for day in window.days)
    return Hours(days, window.opens_at, window.closes_at, ZoneInfo(zone), Binds(window.binds))


@lru_cache(maxsize=256)
def opening(hours: Hours, at: datetime) -> Opening | None:
    """Return the opening in which an instant is, or else the next one; none if there is none within four weeks."""
    return next(_openings(hours, at, min(at, _LAST) + _SEARCHED), None)


def is_open(hours: Hours, at: datetime) -> bool:
    """Tell whether a window is open at an instant."""
    found = opening(hours, at)
    return found is not None and found.since <= at


def next_opening(hours: Hours, at: datetime) -> datetime | None:
    """Return when a window that is shut at an instant opens."""
    found = opening(hours, at)
    return None if found is None else found.since


def why_shut(hours: Hours, at: datetime) -> Why | None:
    """Say that a window is shut, and when it opens; nothing if it is open."""
    found = opening(hours, at)
    if found is not None and found.since <= at:
        return None
    zone = hours.zone.key
    when = f"it opens at {found.since.astimezone(hours.zone):%Y-%m-%d %H:%M} {zone}" if found else "it does not open"
    until = None if found is None else found.since
    return Why(WhyKind.WINDOW, f"outside its window ({hours}): {when}", until=until, ended_by=EndedBy.TIME)


def outside_window(door: Door, _work: Work, phase: PhaseDoor) -> Why | None:
    """Keep a phase and who has not begun it outside of its window, and if it binds every job, all its jobs."""
    hours = phase.hours
    if hours is None or (door is Door.SEND and hours.binds is Binds.START):
        return None
    return why_shut(hours, phase.at)


def times_kept_by_window(work: Work, since: datetime, until: datetime) -> Iterable[tuple[datetime, datetime]]:
    """Return the parts of a time in which a window kept the jobs of work from leaving (rule G7)."""
    hours = None if work.phase is None else work.phase.hours
    return () if hours is None or hours.binds is Binds.START else times_shut(hours, since, until)


def last_opening(hours: Hours, at: datetime) -> datetime | None:
    """Return when a window opened for the last time, up to an instant."""
    began = [found.since for found in _openings(hours, max(at, _FIRST) - _SEARCHED, at) if found.since <= at]
    return began[-1] if began else None


def has_opened(hours: Hours, looked_at: datetime | None, at: datetime) -> bool:
    """Tell whether a window is open, and nobody in the phase was woken or began since it opened.

    A phase that never began for all was opened for members that a person retried; nobody has looked at it.
    """
    if not is_open(hours, at):
        return False
    opened = last_opening(hours, at)
    return looked_at is None or (opened is not None and opened > looked_at)


def times_shut(hours: Hours, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """List the parts of a time in which a window is shut."""
    reached = since
    for found in _openings(hours, since, until):
        if found.since >= until:
            break
        if found.since > reached:
            yield reached, found.since
        reached = found.until
    if reached < until:
        yield reached, until


def _openings(hours: Hours, since: datetime, until: datetime) -> Iterator[Opening]:
    """List the openings that end after an instant and begin up to another one; those that touch are one."""
    merged: Opening | None = None
    for day in _days(hours, since, until):
        found = _opening_of(hours, day)
        if found is None:
            continue
        if merged is not None and found.since <= merged.until:
            merged = Opening(merged.since, max(merged.until, found.until))
            continue
        if merged is not None and merged.until > since:
            yield merged
        merged = found
    if merged is not None and merged.until > since and merged.since <= until:
        yield merged


def _days(hours: Hours, since: datetime, until: datetime) -> Iterator[date]:
    """List the days whose windows may touch a time, or be one opening with one that does."""
    first = _day(hours.zone, since) - timedelta(days=8)
    last = _day(hours.zone, until) + timedelta(days=8)
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        if day.weekday() in hours.days:
            yield day


def _day(zone: ZoneInfo, at: datetime) -> date:
    """Return the day of an instant; some sources write 9999-12-31 for "not yet", and the calendar ends there."""
    return min(max(at, _FIRST), _LAST).astimezone(zone).date()


def _opening_of(hours: Hours, day: date) -> Opening | None:
    midnight = datetime.combine(day, time())
    overnight = DAY_MINUTES if hours.closes <= hours.opens else 0
    begins = last_reached(midnight + timedelta(minutes=hours.opens), hours.zone)
    ends = first_reached(midnight + timedelta(minutes=hours.closes + overnight), hours.zone)
    return Opening(begins, ends) if begins < ends else None
