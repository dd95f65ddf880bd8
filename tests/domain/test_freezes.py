"""Rules K1 and K3: the times of a freeze, as people write them; a clock that is changed makes it longer."""

from datetime import UTC, datetime

import pytest

from matoolkit.domain.freezes import freeze_times
from matoolkit.errors import InvalidFreeze

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BERLIN, LORD_HOWE = "Europe/Berlin", "Australia/Lord_Howe"


def read(begins: str | None, ends: str | None, zone: str | None = None, now: datetime = NOW) -> tuple[str, str | None]:
    times = freeze_times(begins, ends, zone, now)
    return f"{times.begins:%m-%d %H:%M}", f"{times.ends:%m-%d %H:%M}" if times.ends else None


@pytest.mark.parametrize(
    ("begins", "ends", "zone", "expected"),
    [
        ("2026-12-24 18:00", "2027-01-04 06:00", BERLIN, ("12-24 17:00", "01-04 05:00")),
        ("2026-06-30 18:00", "2026-07-01 06:00", BERLIN, ("06-30 16:00", "07-01 04:00")),
        ("2026-12-24T18:00Z", "2027-01-04T06:00:00+01:00", None, ("12-24 18:00", "01-04 05:00")),
        ("2026-12-24T18:00Z", "2027-01-04 06:00", BERLIN, ("12-24 18:00", "01-04 05:00")),
        ("2026-12-24", "2027-01-02", BERLIN, ("12-23 23:00", "01-01 23:00")),
        (None, "2026-04-01 06:00", "UTC", ("03-01 12:00", "04-01 06:00")),
        ("2026-12-24 18:00", None, "UTC", ("12-24 18:00", None)),
        (None, None, None, ("03-01 12:00", None)),
    ],
)
def test_k1_times_are_those_of_the_clock_on_the_wall(
    begins: str | None, ends: str | None, zone: str | None, expected: tuple[str, str | None]
) -> None:
    assert read(begins, ends, zone) == expected


@pytest.mark.parametrize(
    ("begins", "ends", "zone", "expected"),
    [
        # 02:30 comes twice in Berlin on 2026-10-25: at 00:30 and at 01:30 UTC.
        ("2026-10-25 02:30", "2026-10-26 02:30", BERLIN, ("10-25 00:30", "10-26 01:30")),
        ("2026-10-24 02:30", "2026-10-25 02:30", BERLIN, ("10-24 00:30", "10-25 01:30")),
        ("2026-10-25 02:10", "2026-10-25 02:50", BERLIN, ("10-25 00:10", "10-25 01:50")),
        # On 2026-03-29 it never comes: the clock jumps at 01:00 UTC from 02:00 to 03:00, which both are the jump.
        ("2026-03-29 02:30", "2026-03-30 02:30", BERLIN, ("03-29 01:00", "03-30 00:30")),
        ("2026-03-28 02:30", "2026-03-29 02:30", BERLIN, ("03-28 01:30", "03-29 01:00")),
        # Half an hour: 01:45 comes twice on Lord Howe on 2026-04-05, at 14:45 and at 15:15 UTC of the day before.
        ("2026-04-05 01:45", "2026-04-05 03:00", LORD_HOWE, ("04-04 14:45", "04-04 16:30")),
        ("2026-04-04 01:45", "2026-04-05 01:45", LORD_HOWE, ("04-03 14:45", "04-04 15:15")),
    ],
)
def test_k3_what_a_clock_repeats_or_skips_makes_a_freeze_longer(
    begins: str, ends: str, zone: str, expected: tuple[str, str]
) -> None:
    assert read(begins, ends, zone) == expected


@pytest.mark.parametrize(
    ("begins", "ends", "zone", "told"),
    [
        ("2025-12-24 18:00", "2026-01-04 06:00", BERLIN, "the freeze would be over: 2026-01-04 05:00 UTC is past"),
        ("2025-12-24 18:00", "2027-01-04 06:00", BERLIN, "the freeze would begin in the past, at 2025-12-24 17:00 UTC"),
        ("2025-12-24 18:00", None, BERLIN, "the freeze would begin in the past, at 2025-12-24 17:00 UTC"),
        (
            "2027-01-04 06:00",
            "2026-12-24 18:00",
            BERLIN,
            "the freeze would end before it begins, at 2026-12-24 17:00 UTC",
        ),
        (
            "2026-12-24 18:00",
            "2026-12-24 18:00",
            BERLIN,
            "the freeze would end when it begins, at 2026-12-24 17:00 UTC",
        ),
        ("2026-12-24", "2026-12-24", BERLIN, "the freeze would end when it begins, at 2026-12-23 23:00 UTC"),
        # The hour that comes twice hides the wrong order, as instants.
        (
            "2026-10-25 02:50",
            "2026-10-25 02:10",
            BERLIN,
            "the freeze would end before it begins, at 2026-10-25 01:10 UTC",
        ),
        ("2026-12-24 18:00", None, None, "'2026-12-24 18:00' does not say in which zone"),
        ("24.12.2026 18:00", None, BERLIN, "'24.12.2026 18:00' is not a time"),
        ("tomorrow", None, BERLIN, "'tomorrow' is not a time"),
        ("2026-12-24 18:00", None, "Europe/Berlln", "'Europe/Berlln' is not a time zone"),
        ("9999-12-31 23:30", None, "America/New_York", "'9999-12-31 23:30' is beyond the calendar"),
    ],
)
def test_k1_times_that_make_no_sense_are_refused_and_said(
    begins: str | None, ends: str | None, zone: str | None, told: str
) -> None:
    with pytest.raises(InvalidFreeze) as refused:
        freeze_times(begins, ends, zone, NOW)
    assert refused.value.message == told
    assert refused.value.hint
