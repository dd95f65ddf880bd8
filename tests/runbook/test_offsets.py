"""Rule R3: offsets from T."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.runbook.offsets import Offset, parse_offset


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("T-5d", 7200),
        ("T-4h", 240),
        ("T-30m", 30),
        ("T-90s", 2),
        ("T-60s", 1),
        ("T-1s", 1),
        ("T-0", 0),
        ("T+0", 0),
        ("T-0d", 0),
        ("T+2h", -120),
        ("T+90s", -2),
        ("T+1s", -1),
    ],
)
def test_r3_offsets_are_minutes_positive_before_t_and_seconds_round_away_from_it(text: str, minutes: int) -> None:
    assert parse_offset(text) == Offset(minutes)


@pytest.mark.parametrize(
    "text", ["", "T", "T-", "T-5", "t-5d", "5d", "T5d", "T-5w", "T-1.5h", "T--5d", "T-5d ", "T-0\n"]
)
def test_r3_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="offset"):
        parse_offset(text)


def test_r3_a_phase_is_due_that_long_before_or_after_t() -> None:
    t = datetime(2026, 3, 3, 20, tzinfo=UTC)
    assert parse_offset("T-5d").due_at(t) == datetime(2026, 2, 26, 20, tzinfo=UTC)
    assert parse_offset("T+90s").due_at(t) == datetime(2026, 3, 3, 20, 2, tzinfo=UTC)


@given(st.integers(min_value=-5_000_000, max_value=5_000_000))
def test_r3_offsets_round_trip(minutes: int) -> None:
    assert parse_offset(str(Offset(minutes))) == Offset(minutes)


def test_r3_a_phase_beyond_the_calendar_is_due_at_its_end() -> None:
    never = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert parse_offset("T+2h").due_at(never) > never
    assert parse_offset("T-5d").due_at(datetime(1, 1, 1, tzinfo=UTC)) == datetime(1, 1, 1, tzinfo=UTC)
