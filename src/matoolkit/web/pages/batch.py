"""One batch: what needs a person, its phases, its failures, its members."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.queries import existing_batch
from matoolkit.domain.batch import MEMBERS_CAN_BE_RETRIED
from matoolkit.domain.states import ENDED_BATCHES, MemberState, StepStatus
from matoolkit.errors import Flaw, InvalidRequest
from matoolkit.store.failures import FailureGroup, failures_by_error
from matoolkit.web.files import csv_file
from matoolkit.web.forms import LARGEST_ID, RowNumber
from matoolkit.web.matrixlegend import LEGEND
from matoolkit.web.rendering import Frame, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.timeline import time_line
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking

router = APIRouter(prefix="/batches/{batch_id}")

BatchId = Annotated[RowNumber, InPath()]

_PARTS = {
    "head": "batch/head.html",
    "phases": "batch/phases.html",
    "failures": "batch/failures.html",
    "progress": "batch/progress.html",
    "deeds": "batch/deeds.html",
}
_MOST_GROUPS = 20
_MOST_DIGITS = len(str(LARGEST_ID))


def topic_of(site: Site, key: str) -> Topic:
    """Return a batch as something to watch."""
    number = number_of(key)

    def look() -> Mapping[str, Any]:
        seen = site.looks.batch(number)
        view, counted = seen.detail.view, site.looks.progress(number)
        return {
            "seen": seen,
            "view": view,
            "batch": view.batch,
            "states": list(MemberState),
            "line": time_line(seen),
            "progress": counted.progress if counted else None,
            "is_counted": counted is not None,
            "step_states": list(StepStatus),
            "most": _MOST_GROUPS,
            "is_over": view.batch.status in ENDED_BATCHES,
            "can_retry": view.batch.status in MEMBERS_CAN_BE_RETRIED,
        }

    return Topic(f"batch/{number}", _PARTS, look, {"matrix": lambda: site.matrices.version(number)})


def number_of(key: str) -> int:
    """Read the number of something in an address."""
    # Digits beyond number are not even read.
    if not key.isdecimal() or len(key) > _MOST_DIGITS or not 0 < int(key) <= LARGEST_ID:
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
        styles=("batch.css", "matrix.css"),
        scripts=("matrix.js",),
    )
    return page(request, viewer, "batch.html", frame, legend=LEGEND, **seen)


@router.get("/failures.csv")
def failures_as_file(serving: Serving, _: Looking, batch_id: BatchId) -> Response:
    """Return the failures by error as a file."""
    with serving.services.store.reading() as tx:
        existing_batch(tx, batch_id)
        groups = failures_by_error(tx, batch_id)
    names = [one.name for one in fields(FailureGroup)]
    return csv_file(f"batch-{batch_id}-failures", names, ([getattr(group, name) for name in names] for group in groups))
