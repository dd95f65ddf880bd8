"""Rules K2 and K3: when a window is open, by the clock on the wall, also where that clock is changed."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from matoolkit.domain.wallclock import first_reached, last_reached
from matoolkit.domain.windows import Binds, Hours, hours_of, is_open, last_opening, next_opening, opening, times_shut
from matoolkit.runbook.model import Phase, Runbook
from matoolkit.runbook.values import WEEKDAYS, time_of_day

BERLIN, LORD_HOWE, HAVANA, APIA = map(
    ZoneInfo, ("Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia")
)
MINUTE = timedelta(minutes=1)


def hours(days: str, opens: str, closes: str, zone: str | ZoneInfo = "UTC") -> Hours:
    numbers = frozenset(WEEKDAYS.index(day) for day in days.split()) if days else frozenset(range(7))
    key = zone if isinstance(zone, ZoneInfo) else ZoneInfo(zone)
    return Hours(numbers, time_of_day(opens), time_of_day(closes), key, Binds.START)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def opened(window: Hours, since: str) -> tuple[str, str] | None:
    """Return the first opening that ends after an instant, as the clock of UTC says."""
    found = opening(window, utc(since))
    return None if found is None else (f"{found.since:%m-%d %H:%M}", f"{found.until:%m-%d %H:%M}")


# 2026-11-20 is a Friday.
@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-11-20 19:59", False),
        ("2026-11-20 20:00", True),
        ("2026-11-20 23:59", True),
        ("2026-11-21 00:00", True),
        ("2026-11-21 05:59", True),
        ("2026-11-21 06:00", False),
        ("2026-11-21 20:00", True),
        ("2026-11-22 05:59", True),
        ("2026-11-22 20:00", False),
        # The early morning of Friday belongs to Thursday, on which the window does not open.
        ("2026-11-20 05:59", False),
    ],
)
def test_k2_a_window_past_midnight_belongs_to_the_day_on_which_it_begins(at: str, *, expected: bool) -> None:
    assert is_open(hours("fri sat", "20:00", "06:00"), utc(at)) is expected


def test_k2_a_window_that_is_shut_says_when_it_opens() -> None:
    window = hours("fri", "20:00", "06:00")
    assert next_opening(window, utc("2026-11-19 02:00")) == utc("2026-11-20 20:00")
    assert next_opening(window, utc("2026-11-21 06:00")) == utc("2026-11-27 20:00")
    assert last_opening(window, utc("2026-11-27 19:59")) == utc("2026-11-20 20:00")
    assert last_opening(window, utc("2026-11-27 20:00")) == utc("2026-11-27 20:00")


def test_k2_days_that_follow_one_another_are_one_opening() -> None:
    assert opened(hours("sat sun", "00:00", "24:00", "Europe/Berlin"), "2026-11-19") == ("11-20 23:00", "11-22 23:00")
    assert opened(hours("mon tue wed thu fri sat", "00:00", "24:00"), "2026-11-19") == ("11-16 00:00", "11-22 00:00")


@pytest.mark.parametrize(
    ("of_window", "of_source", "zone"),
    [("Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo"), (None, "Europe/Berlin", "Europe/Berlin"), (None, None, "UTC")],
)
def test_k2_the_zone_is_its_own_or_that_of_the_batch_times_or_utc(
    of_window: str | None, of_source: str | None, zone: str
) -> None:
    window: dict[str, Any] = {"days": ["fri"], "from": "20:00", "to": "06:00"}
    window |= {"zone": of_window} if of_window else {}
    found = hours_of(*runbook_with(window, of_source))
    assert found == Hours(frozenset({4}), 1200, 360, ZoneInfo(zone), Binds.START)


def test_k2_a_window_that_is_never_shut_is_none() -> None:
    assert hours_of(*runbook_with({"zone": "Asia/Tokyo"}, None)) is None


def runbook_with(window: dict[str, Any], zone: str | None) -> tuple[Runbook, Phase]:
    source = {"type": "sql", "connection": "A", "query": "SELECT Id, T FROM p", "primary_key": "Id"}
    source["batch_time_column"] = "T"
    step = {"name": "s", "worker_id": "w", "function": "f"}
    document = {
        "name": "move",
        "data_source": source | ({"batch_time_zone": zone} if zone else {}),
        "phases": [{"name": "p", "offset": "T-0", "steps": [step], "window": window}],
    }
    runbook = Runbook.model_validate(document)
    return runbook, runbook.phases[0]


# Clocks that are changed. Berlin: on 2026-03-29 at 01:00 UTC from 02:00 to 03:00, on 2026-10-25 at 01:00 UTC from 03:00
# to 02:00. Lord Howe: half an hour, on 2026-10-03 at 15:30 UTC (Sunday 02:00 to 02:30), on 2026-04-04 at 15:00 UTC
# (Sunday 02:00 to 01:30).


@pytest.mark.parametrize(
    ("wall", "zone", "first", "last"),
    [
        # A day like any other.
        ("2026-11-20 20:00", BERLIN, "2026-11-20 19:00", "2026-11-20 19:00"),
        # Twice: 02:30 summer time, 02:30 winter time.
        ("2026-10-25 02:30", BERLIN, "2026-10-25 00:30", "2026-10-25 01:30"),
        ("2026-10-25 02:00", BERLIN, "2026-10-25 00:00", "2026-10-25 01:00"),
        ("2026-10-25 03:00", BERLIN, "2026-10-25 02:00", "2026-10-25 02:00"),
        # Never: the clock jumps from 02:00 to 03:00.
        ("2026-03-29 02:30", BERLIN, "2026-03-29 01:00", "2026-03-29 01:00"),
        ("2026-03-29 02:00", BERLIN, "2026-03-29 01:00", "2026-03-29 01:00"),
        ("2026-03-29 03:00", BERLIN, "2026-03-29 01:00", "2026-03-29 01:00"),
        ("2026-03-29 01:59", BERLIN, "2026-03-29 00:59", "2026-03-29 00:59"),
        # Half an hour.
        ("2026-04-05 01:45", LORD_HOWE, "2026-04-04 14:45", "2026-04-04 15:15"),
        ("2026-10-04 02:15", LORD_HOWE, "2026-10-03 15:30", "2026-10-03 15:30"),
        # A whole day that never came.
        ("2011-12-30 12:00", APIA, "2011-12-30 10:00", "2011-12-30 10:00"),
    ],
)
def test_k3_a_time_comes_once_or_twice_or_is_the_jump(wall: str, zone: ZoneInfo, first: str, last: str) -> None:
    written = datetime.fromisoformat(wall)
    assert (first_reached(written, zone), last_reached(written, zone)) == (utc(first), utc(last))


@pytest.mark.parametrize(
    ("window", "since", "expected"),
    [
        # Over the jump: from 01:00 to 04:00 are two hours.
        (hours("", "01:00", "04:00", BERLIN), "2026-03-29", ("03-29 00:00", "03-29 02:00")),
        # An end that is skipped is the jump, and so is a beginning.
        (hours("", "01:00", "02:30", BERLIN), "2026-03-29", ("03-29 00:00", "03-29 01:00")),
        (hours("", "02:30", "04:00", BERLIN), "2026-03-29", ("03-29 01:00", "03-29 02:00")),
        # A window in the hour that is skipped does not open that day.
        (hours("", "02:15", "02:45", BERLIN), "2026-03-29", ("03-30 00:15", "03-30 00:45")),
        # It ends the first time that its end comes, and begins the last time that its beginning comes.
        (hours("", "01:00", "02:30", BERLIN), "2026-10-24 22:00", ("10-24 23:00", "10-25 00:30")),
        (hours("", "02:30", "04:00", BERLIN), "2026-10-25 00:00", ("10-25 01:30", "10-25 03:00")),
        # In the hour that comes twice, the last beginning is after the first end.
        (hours("", "02:15", "02:45", BERLIN), "2026-10-25 00:00", ("10-26 01:15", "10-26 01:45")),
        (hours("sun", "02:15", "02:45", BERLIN), "2026-10-25 00:00", ("11-01 01:15", "11-01 01:45")),
        (hours("", "01:15", "01:45", LORD_HOWE), "2026-04-04 14:00", ("04-04 14:15", "04-04 14:45")),
        (hours("", "01:40", "03:00", LORD_HOWE), "2026-04-04 14:00", ("04-04 15:10", "04-04 16:30")),
        (hours("", "01:00", "02:15", LORD_HOWE), "2026-10-03 14:00", ("10-03 14:30", "10-03 15:30")),
        # Midnight itself comes twice in Havana, on 2026-11-01 at 01:00.
        (hours("sat", "20:00", "24:00", HAVANA), "2026-10-31 12:00", ("11-01 00:00", "11-01 04:00")),
        (hours("sun", "00:00", "06:00", HAVANA), "2026-10-31 12:00", ("11-01 05:00", "11-01 11:00")),
    ],
)
def test_k3_what_the_clock_skips_or_repeats_makes_a_window_shorter(
    window: Hours, since: str, expected: tuple[str, str]
) -> None:
    assert opened(window, since) == expected


def test_k3_a_day_that_never_came_had_no_window() -> None:
    found = opening(hours("fri", "08:00", "16:00", APIA), utc("2011-12-28"))
    assert found is not None
    assert found.since == utc("2012-01-05 18:00")


@pytest.mark.parametrize("at", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_k2_the_calendar_has_an_end(at: datetime) -> None:
    for zone in (BERLIN, LORD_HOWE):
        assert not is_open(hours("fri", "20:00", "06:00", zone), at)
        assert list(times_shut(hours("fri", "20:00", "06:00", zone), at, at)) == []


@st.composite
def a_window_and_a_time(draw: st.DrawFn) -> tuple[Hours, datetime]:
    """Choose a window, and two days in which a clock is often changed."""
    zone = draw(st.sampled_from([BERLIN, LORD_HOWE, HAVANA, ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo")]))
    changes = _changes(zone) or [utc("2026-06-01")]
    since = draw(st.sampled_from(changes)) - timedelta(minutes=draw(st.integers(0, 2 * 1440)))
    opens, closes = draw(st.tuples(st.integers(0, 1439), st.integers(0, 1440)).filter(lambda ends: ends[0] != ends[1]))
    days = draw(st.frozensets(st.integers(0, 6), min_size=1))
    return Hours(days, opens, closes, zone, Binds.START), since


@settings(deadline=None, max_examples=40)
@given(a_window_and_a_time())
@example((hours("sat sun", "00:00", "24:00", HAVANA), utc("2026-10-31 00:00")))
@example((hours("", "02:15", "02:45", BERLIN), utc("2026-10-24 00:00")))
@example((hours("", "02:30", "02:29", BERLIN), utc("2026-10-24 00:00")))
def test_k3_stepping_minute_by_minute_agrees(chosen: tuple[Hours, datetime]) -> None:
    window, since = chosen
    until = since + timedelta(days=2)
    opens = _minutes_open(window, since, until)
    shut = [(begin, end) for begin, end in times_shut(window, since, until)]
    told = {at for at in _minutes(since, until) if not any(begin <= at < end for begin, end in shut)}
    assert told == opens
    assert all(end < begin for (_, end), (begin, _) in pairwise(shut))
    for at in (since, since + timedelta(minutes=700), since + timedelta(minutes=2000)):
        assert is_open(window, at) == (at in opens)


@settings(deadline=None, max_examples=40)
@given(a_window_and_a_time())
def test_k3_the_next_opening_is_the_first_minute_that_is_open(chosen: tuple[Hours, datetime]) -> None:
    window, since = chosen
    opens = _minutes_open(window, since, since + timedelta(days=2))
    found = opening(window, since)
    if opens and found is not None:
        assert max(found.since, since) == min(opens)


def _minutes(since: datetime, until: datetime) -> Iterator[datetime]:
    at = since
    while at < until:
        yield at
        at += MINUTE


def _minutes_open(window: Hours, since: datetime, until: datetime) -> set[datetime]:
    """Watch the clock on the wall for days: each day's window begins when it comes to `from` for the last time."""
    start, end = since - timedelta(days=2), until + timedelta(days=2)
    days = [(start + timedelta(days=number)).date() for number in range(-1, (end - start).days + 2)]
    walls = [(at, at.astimezone(window.zone).replace(tzinfo=None)) for at in _minutes(start, end)]
    comes_to: dict[datetime, list[datetime]] = {}
    overnight = 1440 if window.closes <= window.opens else 0
    ends_of_days = {
        day: [
            datetime.combine(day, time()) + timedelta(minutes=end) for end in (window.opens, window.closes + overnight)
        ]
        for day in days
    }
    wanted = sorted(wall for ends in ends_of_days.values() for wall in ends)
    for (_, before), (at, wall) in pairwise(walls):
        for wanted_wall in wanted:
            if before < wanted_wall <= wall or wall == wanted_wall:
                comes_to.setdefault(wanted_wall, []).append(at)
    found: set[datetime] = set()
    for day, (opens, closes) in ends_of_days.items():
        if day.weekday() in window.days and opens in comes_to and closes in comes_to:
            found.update(_minutes(max(comes_to[opens][-1], since), min(comes_to[closes][0], until)))
    return found


@cache
def _changes(zone: ZoneInfo) -> list[datetime]:
    """Return the hours of a year in which a clock is changed."""
    hours_of_year = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number) for number in range(366 * 24)]
    offsets = [(hour, hour.astimezone(zone).utcoffset()) for hour in hours_of_year]
    return [hour for (_, before), (hour, offset) in pairwise(offsets) if offset != before]
