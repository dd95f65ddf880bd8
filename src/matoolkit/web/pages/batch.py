"""One batch: what needs a person, its phases, its failures, its members."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.domain.states import MemberState
from matoolkit.errors import Flaw, InvalidRequest
from matoolkit.web.forms import LARGEST_ID, RowNumber
from matoolkit.web.rendering import Frame, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking

router = APIRouter(prefix="/batches/{batch_id}")

BatchId = Annotated[RowNumber, InPath()]

_PARTS = {"head": "batch/head.html"}


def topic_of(site: Site, key: str) -> Topic:
    """Return a batch as something to watch."""
    number = number_of(key)

    def look() -> Mapping[str, Any]:
        seen = site.looks.batch(number)
        return {"seen": seen, "view": seen.detail.view, "batch": seen.detail.view.batch, "states": list(MemberState)}

    return Topic(f"batch/{number}", _PARTS, look)


def number_of(key: str) -> int:
    """Read the number of something in an address."""
    if not key.isdecimal() or not 0 < int(key) <= LARGEST_ID:
        raise InvalidRequest([Flaw("/path", f"{key[:20]!r} is not the number of anything")])
    return int(key)


@router.get("")
def get_batch(request: Request, serving: Serving, viewer: Looking, batch_id: BatchId) -> Response:
    """Show a batch."""
    topic = topic_of(serving, str(batch_id))
    seen = topic.look()
    frame = Frame(
        f"Batch {batch_id}",
        "batches",
        f"matoolkit batch get {batch_id} --watch",
        f"/batches/{batch_id}/members.csv",
        topic,
        styles=("batch.css",),
    )
    return page(request, viewer, "batch.html", frame, **seen)
