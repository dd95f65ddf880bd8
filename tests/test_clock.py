from datetime import UTC, datetime, timedelta, timezone

import pytest

from matoolkit.clock import FastClock, Pace, SystemClock, VirtualClock, as_utc
from matoolkit.errors import NaiveTime, TimeOutOfRange

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


def test_system_clock_tells_an_aware_instant_in_utc() -> None:
    assert SystemClock().now().tzinfo is UTC


def test_system_clock_measures_forwards() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    clock.sleep(0)
    assert clock.monotonic() >= before


def test_virtual_clock_stands_still_until_told_to_move() -> None:
    clock = VirtualClock(NOON)
    assert clock.now() == clock.now() == NOON
    clock.advance(timedelta(days=5))
    assert clock.now() == NOON + timedelta(days=5)


def test_sleeping_on_a_virtual_clock_passes_the_time_at_once() -> None:
    clock = VirtualClock(NOON)
    clock.sleep(90)
    assert clock.now() == NOON + timedelta(seconds=90)
    assert clock.monotonic() == 90


def test_a_clock_that_is_set_back_measures_no_time() -> None:
    clock = VirtualClock(NOON)
    clock.jump(NOON - timedelta(hours=1))
    assert clock.now() == NOON - timedelta(hours=1)
    assert clock.monotonic() == 0


def test_time_does_not_pass_backwards() -> None:
    with pytest.raises(ValueError, match="jump"):
        VirtualClock(NOON).advance(timedelta(seconds=-1))


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(NaiveTime, match="no time zone"):
        VirtualClock(NOON.replace(tzinfo=None))


def test_an_instant_in_another_zone_becomes_the_same_instant_in_utc() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=2)))
    assert as_utc(elsewhere) == NOON
    assert as_utc(elsewhere).tzinfo is UTC


@pytest.mark.parametrize(
    "instant",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=2))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-2))),
    ],
)
def test_an_instant_before_the_first_or_after_the_last_year_in_utc_is_refused(instant: datetime) -> None:
    with pytest.raises(TimeOutOfRange, match="cannot be written in UTC"):
        as_utc(instant)


def test_u5_a_fast_clock_shows_a_day_for_a_minute_and_measures_and_sleeps_as_the_clock_does() -> None:
    clock = VirtualClock(NOON)
    fast = FastClock(clock, Pace(1440, NOON))
    fast.sleep(60)
    assert clock.now() == NOON + timedelta(minutes=1)
    assert fast.now() == NOON + timedelta(days=1)
    assert fast.monotonic() == 60


def test_u5_a_time_of_the_calendar_has_one_of_the_clock_and_the_other_way_round() -> None:
    pace = Pace(1440, NOON)
    assert pace.real(NOON + timedelta(days=2)) == NOON + timedelta(minutes=2)
    assert pace.at(pace.real(NOON - timedelta(days=3))) == NOON - timedelta(days=3)
    assert pace.lasting(timedelta(seconds=10)) == timedelta(hours=4)


def test_u5_the_longest_duration_at_the_highest_speed_still_ends_on_a_calendar() -> None:
    assert (NOON + Pace(100_000, NOON).lasting(timedelta(days=3650))).year < 9999
