"""The first page: what needs a person, the calendar of all waves, and what the last hour was like."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.attention import Attention, what_needs_a_person
from matoolkit.web.files import csv_file
from matoolkit.web.rendering import Frame, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking
from matoolkit.words import NOTHING_NEEDS_A_PERSON

router = APIRouter()

_PARTS = {"matters": "now/matters.html"}
_KEY = "all"


def topic_of(site: Site, key: str) -> Topic:
    """Return the first page as something to watch."""

    def look() -> Mapping[str, Any]:
        return {"attention": _attention(site), "nothing": NOTHING_NEEDS_A_PERSON}

    return Topic(f"now/{key}", _PARTS, look)


@router.get("/")
def get_now(request: Request, serving: Serving, viewer: Looking) -> Response:
    """Show what needs a person, and what goes on."""
    topic = topic_of(serving, _KEY)
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
