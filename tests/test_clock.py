from datetime import UTC, datetime, timedelta, timezone

import pytest

from matoolkit.clock import SystemClock, VirtualClock, as_utc
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
