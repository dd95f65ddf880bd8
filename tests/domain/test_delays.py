"""Rule K6: which phases freezes and windows keep until they are late, or for ever."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from matoolkit.domain.delays import Ahead, delays
from matoolkit.domain.doors import Door
from matoolkit.domain.gates import Gate, GateKind
from matoolkit.domain.windows import Binds, Hours

# A Friday.
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVENINGS = Hours(frozenset(range(7)), 20 * 60, 6 * 60, ZoneInfo("UTC"), Binds.START)


def phase(hours: Hours | None = None, limit: timedelta | None = 6 * HOUR, due: datetime | None = NOON) -> Ahead:
    late_after = None if due is None or limit is None else due + limit
    return Ahead(7, "wave", "cutover", due, late_after, hours)


def freeze(number: int, begins: float, ends: float | None, batch: int | None = None) -> Gate:
    until = None if ends is None else NOON + ends * HOUR
    return Gate(
        number, GateKind.FREEZE, Door.SEND, None, None, None, batch, NOON + begins * HOUR, until, "anna", "year end"
    )


def told(one: Ahead, *freezes: Gate, at: datetime = NOON - 24 * HOUR) -> list[str]:
    return [delay.in_words().partition(" UTC, ")[2] for delay in delays([one], freezes, at)]


@pytest.mark.parametrize(
    ("one", "freezes"),
    [
        (phase(), []),
        (phase(limit=None), [freeze(1, -1, 99)]),
        (phase(), [freeze(1, -1, 6)]),
        (phase(), [freeze(1, 1, 99)]),
        (phase(), [freeze(1, -1, 99, batch=8)]),
        (phase(EVENINGS, limit=8 * HOUR), []),
        (phase(EVENINGS, limit=None), [freeze(1, -1, 9)]),
        (phase(due=None), [freeze(1, -1, None)]),
    ],
)
def test_k6_a_phase_that_begins_in_time_is_not_listed(one: Ahead, freezes: list[Gate]) -> None:
    assert told(one, *freezes) == []


@pytest.mark.parametrize(
    ("one", "freezes", "expected"),
    [
        (
            phase(EVENINGS),
            [],
            "could begin at 2026-11-20 20:00 UTC, and only until 2026-11-20 18:00 UTC: its window is 20:00-06:00 UTC",
        ),
        (
            phase(),
            [freeze(1, -1, 7)],
            "could begin at 2026-11-20 19:00 UTC, and only until 2026-11-20 18:00 UTC: freeze 1: year end",
        ),
        # One freeze ends while the next is in force, and then the window is shut.
        (
            phase(EVENINGS, limit=12 * HOUR),
            [freeze(1, -1, 3), freeze(2, 2, 20)],
            "could begin at 2026-11-21 20:00 UTC, and only until 2026-11-21 00:00 UTC: its window is 20:00-06:00 UTC",
        ),
        (phase(limit=None), [freeze(3, -1, None)], "would never begin: freeze 3: year end"),
        (phase(), [freeze(1, -1, 2), freeze(2, 1, None, batch=7)], "would never begin: freeze 2: year end"),
        # The freeze is over each day when the window is: it begins in the evening of the day after.
        (
            phase(EVENINGS, limit=30 * HOUR),
            [freeze(1, 8, 18), freeze(2, 31, 42)],
            "could begin at 2026-11-22 20:00 UTC, and only until 2026-11-21 18:00 UTC: its window is 20:00-06:00 UTC",
        ),
    ],
)
def test_k6_a_phase_that_a_freeze_or_a_window_keeps_too_long_is_listed(
    one: Ahead, freezes: list[Gate], expected: str
) -> None:
    assert told(one, *freezes) == [expected]


def test_k6_what_is_late_already_is_told_too() -> None:
    (late,) = told(phase(), at=NOON + 7 * HOUR)
    assert late == "could begin at 2026-11-20 19:00 UTC, and only until 2026-11-20 18:00 UTC: that has passed"


def test_k6_what_is_past_due_is_looked_at_from_now() -> None:
    assert told(phase(limit=48 * HOUR), freeze(1, -1, 2), at=NOON + 3 * HOUR) == []
