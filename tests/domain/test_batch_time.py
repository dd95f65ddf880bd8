"""Rule T3: a batch time is an instant or is refused with a reason."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.domain.batch_time import UnreadableBatchTime, read_batch_time

BERLIN = ZoneInfo("Europe/Berlin")
T = datetime(2026, 3, 3, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-03-03T20:00:00Z",
        "2026-03-03T20:00Z",
        "2026-03-03 20:00",
        "2026-03-03 20:00:00",
        " 2026-03-03T20:00:00.000 ",
        "2026-03-03T21:00:00+01:00",
        "2026-03-03 21:00:00 +0100",
        "2026-03-03T20:00:00.000000000Z",
        datetime(2026, 3, 3, 20),  # noqa: DTZ001 - as drivers return it
        T,
        T.astimezone(timezone(timedelta(hours=-5))),
    ],
)
def test_t3_a_time_without_zone_is_in_utc_and_one_with_is_converted(value: object) -> None:
    read = read_batch_time(value, None)
    assert read == T
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2026-03-03 21:00", T),
        ("2026-07-03 22:00", datetime(2026, 7, 3, 20, tzinfo=UTC)),
        ("2026-03-03T20:00:00Z", T),
        ("2026-03-04", datetime(2026, 3, 3, 23, tzinfo=UTC)),
        (date(2026, 3, 4), datetime(2026, 3, 3, 23, tzinfo=UTC)),
        (datetime(2026, 3, 3, 21), T),  # noqa: DTZ001 - as drivers return it
    ],
)
def test_t3_with_a_zone_a_time_without_one_is_local(value: object, instant: datetime) -> None:
    assert read_batch_time(value, BERLIN) == instant


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "empty"),
        ("  ", "empty"),
        ("2026-03-03", "needs batch_time_zone"),
        (date(2026, 3, 3), "needs batch_time_zone"),
        ("03/04/2026", "ambiguous"),
        ("3/4/2026 20:00", "ambiguous"),
        ("03.04.2026", "ambiguous"),
        ("2026-02-30 20:00", "no such date"),
        ("2026-13-01T00:00Z", "no such date"),
        ("2026-03-03 25:00", "no such date"),
        ("0001-01-01T00:00:00+14:00", "no such date"),
        ("tomorrow", "not a time"),
        ("2026-03-03T20", "not a time"),
        ("20260303T200000Z", "not a time"),
        (1772568000, "type int"),
        (True, "type bool"),
    ],
)
def test_t3_anything_else_is_refused_with_a_reason(value: object, why: str) -> None:
    with pytest.raises(UnreadableBatchTime, match=why):
        read_batch_time(value, None)


def test_t3_a_time_that_does_not_exist_or_exists_twice_is_refused_rather_than_guessed() -> None:
    with pytest.raises(UnreadableBatchTime, match="does not exist in Europe/Berlin"):
        read_batch_time("2026-03-29 02:30", BERLIN)
    with pytest.raises(UnreadableBatchTime, match="exists twice in Europe/Berlin"):
        read_batch_time("2026-10-25 02:30", BERLIN)
    assert read_batch_time("2026-10-25T02:30:00+01:00", BERLIN) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@given(st.text())
def test_t3_any_text_is_read_or_refused(text: str) -> None:
    for zone in (None, BERLIN):
        try:
            assert read_batch_time(text, zone).tzinfo is UTC
        except UnreadableBatchTime:
            continue


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 - UTC is added below
def test_t3_what_is_written_in_iso_8601_is_read_back(naive: datetime) -> None:
    instant = naive.replace(tzinfo=UTC)
    assert read_batch_time(instant.isoformat(), BERLIN) == instant
