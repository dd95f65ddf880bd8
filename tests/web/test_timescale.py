"""Days side by side: positions follow the zone, also on a day on which clocks change."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from matoolkit.web.timescale import TimeScale

MADRID = ZoneInfo("Europe/Madrid")


def test_it_begins_with_the_viewers_monday() -> None:
    scale = TimeScale(MADRID, date(2026, 11, 9), 8)
    assert scale.begin == datetime(2026, 11, 8, 23, tzinfo=UTC)
    assert scale.x(scale.begin) == "0.00%"
    assert scale.x(scale.begin + timedelta(days=28)) == "50.00%"
    assert (scale.x(scale.begin - timedelta(days=3)), scale.x(scale.end + timedelta(days=3))) == ("0.00%", "100.00%")
    assert scale.width(scale.begin, scale.begin + timedelta(days=14)) == "25.00%"
    assert scale.width(scale.end, scale.begin) == "0.00%"
    assert (scale.shows(scale.begin), scale.shows(scale.end)) == (True, False)


def test_mondays_are_named_with_their_month_where_it_is_new_and_weekends_have_their_place() -> None:
    scale = TimeScale(ZoneInfo("UTC"), date(2026, 11, 9), 8)
    assert [label for _, label in scale.labels] == ["9 Nov", "16", "23", "30", "7 Dec", "14", "21", "28"]
    assert scale.weekends[0] == ("8.93%", "3.57%")
    assert len(scale.weekends) == 8


def test_a_week_in_which_clocks_change_has_its_true_length() -> None:
    scale = TimeScale(MADRID, date(2026, 10, 19), 1)
    assert scale.end - scale.begin == timedelta(days=7, hours=1)
    saturday, sunday_night = scale.weekends[0][0], scale.weekends[0][1]
    assert (saturday, sunday_night) == (f"{100 * 120 / 169:.2f}%", f"{100 * 49 / 169:.2f}%")
