"""All runbooks: whether they are at work, what their last tick did, and their batches."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.runbooks import RunbookGlance, runbook_glances
from matoolkit.domain.states import BatchStatus
from matoolkit.errors import UnknownRoute
from matoolkit.web.files import csv_file
from matoolkit.web.rendering import Frame, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking

router = APIRouter()

PATH = "/runbooks"
_ALL = "all"
_PARTS = {"list": "runbooks/list.html"}


def topic_of(site: Site, key: str) -> Topic:
    """Return the list as something to watch."""
    if key != _ALL:
        raise UnknownRoute(f"/live/runbooks/{key}")

    def look() -> Mapping[str, Any]:
        return {"glances": _glances(site), "statuses": list(BatchStatus)}

    return Topic(f"runbooks/{_ALL}", _PARTS, look)


@router.get(PATH)
def list_runbooks(request: Request, serving: Serving, viewer: Looking) -> Response:
    """Show all runbooks."""
    topic = topic_of(serving, _ALL)
    frame = Frame("Runbooks", "runbooks", "matoolkit runbook list", f"{PATH}.csv", topic, styles=("runbook.css",))
    return page(request, viewer, "runbooks.html", frame, **topic.look())


@router.get(f"{PATH}.csv")
def list_as_file(serving: Serving, _: Looking) -> Response:
    """Return the list as a file."""
    heading = ["runbook", "version", "automation", "last tick", "rows read", "set aside", "last error", "error at"]
    return csv_file("runbooks", [*heading, *BatchStatus], map(_row, _glances(serving)))


def _glances(site: Site) -> Sequence[RunbookGlance]:
    return site.looks.taken("runbooks", lambda: runbook_glances(site.services.store))


def _row(glance: RunbookGlance) -> list[object]:
    row, tick = glance.active, glance.tick
    return [
        glance.name,
        row.version if row else None,
        "on" if glance.is_automated else "off",
        tick.finished_at if tick else None,
        tick.rows_read if tick else None,
        tick.rows_set_aside if tick else None,
        row.last_error if row else None,
        row.last_error_at if row else None,
        *(glance.batches.get(status, 0) for status in BatchStatus),
    ]
