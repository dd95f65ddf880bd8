"""Workers: what each can do, what it is at work on, and what runbooks miss."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.workforce import Workforce, look_at_workers
from matoolkit.errors import UnknownRoute
from matoolkit.web.files import csv_file
from matoolkit.web.rendering import Frame, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking

router = APIRouter()

PATH = "/workers"
_ALL = "all"
_PARTS = {"workers": "workers/workers.html"}


def topic_of(site: Site, key: str) -> Topic:
    """Return all workers as something to watch."""
    if key != _ALL:
        raise UnknownRoute(f"/live/workers/{key}")
    return Topic("workers/all", _PARTS, lambda: _seen(site))


@router.get(PATH)
def list_workers(request: Request, serving: Serving, viewer: Looking) -> Response:
    """Show all workers with their functions."""
    topic = topic_of(serving, _ALL)
    frame = Frame("Workers", "workers", "matoolkit worker catalogue", f"{PATH}.csv", topic, styles=("matters.css",))
    return page(request, viewer, "workers.html", frame, **topic.look())


@router.get(f"{PATH}.csv")
def list_as_file(serving: Serving, _: Looking) -> Response:
    """Return all functions of all workers as a file, one parameter in a row."""
    seen = look_at_workers(serving.services.store)
    heading = ["worker", "announced_at", "function", "parameter", "type", "mandatory", "secret"]
    return csv_file("workers", heading, _rows(seen))


def _seen(site: Site) -> Mapping[str, Any]:
    return {"seen": site.looks.taken("workers", lambda: look_at_workers(site.services.store))}


def _rows(seen: Workforce) -> Iterator[list[object]]:
    for worker in seen.workers:
        for function in worker.functions:
            named = [worker.id, worker.announced_at, function.name]
            if not function.parameters:
                yield [*named, None, None, None, None]
            for one in function.parameters or ():
                yield [*named, one.name, one.type, one.is_mandatory, one.is_secret]
