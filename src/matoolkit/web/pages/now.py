"""The first page: what needs a person, the calendar of all waves, and what the last hour was like."""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from functools import partial
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.attention import Attention, what_needs_a_person
from matoolkit.admin.waves import WaveCalendar, wave_calendar
from matoolkit.errors import Flaw, InvalidRequest
from matoolkit.runbook.offsets import Offset
from matoolkit.web.files import csv_file
from matoolkit.web.rendering import Frame, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.timescale import TimeScale, polyline
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking
from matoolkit.words import NOTHING_NEEDS_A_PERSON

router = APIRouter()

_PARTS = {"matters": "now/matters.html", "calendar": "now/calendar.html", "rates": "now/rates.html"}
# The calendar of the weeks around now; other weeks have their distance for a key.
_AROUND_NOW = "all"
_WEEKS, _WEEKS_BACK, _FARTHEST = 8, 2, 520
# Midnight comes to some zones so much earlier or later than to UTC.
_ZONES_APART = timedelta(hours=14)

Shift = Annotated[int, Query(ge=-_FARTHEST, le=_FARTHEST)]


def topic_of(site: Site, key: str) -> Topic:
    """Return the first page as something to watch."""
    shift = _shift_of(key)

    def look() -> Mapping[str, Any]:
        monday = _monday(site.services.clock.now(), shift)
        return {
            "attention": _attention(site),
            "nothing": NOTHING_NEEDS_A_PERSON,
            "calendar": _calendar(site, monday),
            "scale_of": partial(_scale, monday),
            "offset_of": Offset,
            "minutes_lie_between": _minutes_lie_between,
            "rates": site.looks.rates(),
            "line": polyline,
            "shift": shift,
            "weeks": _WEEKS,
        }

    return Topic(f"now/{shift or _AROUND_NOW}", _PARTS, look)


def _shift_of(key: str) -> int:
    if key == _AROUND_NOW:
        return 0
    digits = key.removeprefix("-")
    if not digits.isdecimal() or len(digits) > len(str(_FARTHEST)) or int(digits) > _FARTHEST:
        raise InvalidRequest([Flaw("/path", f"{key[:20]!r} is not a number of weeks")])
    return int(key)


def _monday(now: datetime, shift: int) -> date:
    today = now.date()
    return today - timedelta(days=today.weekday()) + timedelta(weeks=shift - _WEEKS_BACK)


def _scale(monday: date, zone: ZoneInfo) -> TimeScale:
    return TimeScale(zone, monday, _WEEKS)


def _minutes_lie_between(earlier: datetime, later: datetime) -> bool:
    """Tell whether a distance is told: shorter ones read differently every second, and would be sent every second."""
    return later - earlier >= timedelta(minutes=1)


def _calendar(site: Site, monday: date) -> WaveCalendar:
    scale = _scale(monday, ZoneInfo("UTC"))
    begin, end = scale.begin - _ZONES_APART, scale.end + _ZONES_APART
    return site.looks.taken(("waves", monday), lambda: wave_calendar(site.services.store, begin, end))


@router.get("/")
def get_now(request: Request, serving: Serving, viewer: Looking, weeks: Shift = 0) -> Response:
    """Show what needs a person, and what goes on; the calendar so many weeks from now."""
    topic = topic_of(serving, str(weeks) if weeks else _AROUND_NOW)
    seen = topic.look()
    things = seen["attention"].things
    title = f"{things:,} {'needs' if things == 1 else 'need'} a person · Now" if things else "Now"
    frame = Frame(title, "now", "matoolkit now --watch", "/now.csv", topic, styles=("now.css",))
    return page(request, viewer, "now.html", frame, **seen)


@router.get("/now.csv")
def matters_as_file(serving: Serving, _: Looking) -> Response:
    """Return what needs a person as a file."""
    heading = ["kind", "needs a person", "more", "since", "batch", "T", "runbook", "things", "command"]
    return csv_file("now", heading, _rows(_attention(serving)))


def _attention(site: Site) -> Attention:
    return site.looks.taken("attention", lambda: what_needs_a_person(site.services.store))


def _rows(seen: Attention) -> Iterator[list[object]]:
    for one in seen.matters:
        of = (one.batch_id, one.batch_start_time, one.runbook_name)
        yield [one.kind, one.sentence, one.detail, one.since, *of, one.things, one.command]
