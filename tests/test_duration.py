from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.duration import MAX_DURATION, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("30s", timedelta(seconds=30)),
        ("15m", timedelta(minutes=15)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
    ],
)
def test_r3_durations_are_a_number_and_a_unit(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text", ["", "5", "m", "5 m", "-5m", "1.5h", "5M", "5m ", "5m\n", "\u0665m", "1h30m", "99999d"]
)
def test_r3_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=int(MAX_DURATION.total_seconds())))
def test_r3_durations_round_trip(seconds: int) -> None:
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration


def test_a_duration_is_written_in_the_largest_unit_that_holds_it() -> None:
    assert [format_duration(timedelta(minutes=minutes)) for minutes in (90, 120, 1440, 1441)] == [
        "90m",
        "2h",
        "1d",
        "1441m",
    ]
