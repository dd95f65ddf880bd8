"""Messages that could not be handled."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.domain.states import DeadLetterStatus
from matoolkit.errors import UnknownRoute
from matoolkit.store.deadletters import DeadLetterRow, dead_letter_counts, dead_letters_page
from matoolkit.web.files import csv_file
from matoolkit.web.forms import Choice, Number
from matoolkit.web.rendering import Frame, address, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking

router = APIRouter()

PATH = "/dead-letters"
_AT_ONCE = 50
_IN_A_FILE_AT_ONCE = 500
_PARTS = {"list": "deadletters/list.html"}

Status = Annotated[Choice[DeadLetterStatus], Query()]


def topic_of(site: Site, key: str) -> Topic:
    """Return the newest dead letters of a status as something to watch."""
    status = next((one for one in DeadLetterStatus if one == key), None)
    if status is None:
        raise UnknownRoute(f"/live/dead-letters/{key}")
    look = ("dead-letters", status)
    return Topic(f"dead-letters/{status}", _PARTS, lambda: site.looks.taken(look, lambda: _slice(site, status, None)))


@router.get(PATH)
def list_letters(
    request: Request,
    serving: Serving,
    viewer: Looking,
    status: Status = None,
    before: Annotated[Number, Query()] = None,
) -> Response:
    """Show a slice of the list; the first slice is live."""
    wanted = status or DeadLetterStatus.OPEN
    topic = topic_of(serving, wanted) if before is None else None
    seen = topic.look() if topic else _slice(serving, wanted, before)
    command = f"matoolkit dead-letter list --status {wanted}"
    frame = Frame("Dead letters", "dead-letters", command, _address(wanted, f"{PATH}.csv"), topic, ("matters.css",))
    return page(request, viewer, "deadletters.html", frame, **seen)


@router.get(f"{PATH}.csv")
def list_as_file(serving: Serving, _: Looking, status: Status = None) -> Response:
    """Return the list as a file, without what the messages hold."""
    names = ["id", "status", "message_type", "topic", "subscription", "message_id", "delivery_count", "enqueued_at"]
    names += ["dead_lettered_at", "reason", "description", "resolved_at", "resolved_by", "resent_message_id"]
    rows = _everything(serving, status or DeadLetterStatus.OPEN)
    return csv_file("dead-letters", names, ([getattr(row, name) for name in names] for row in rows))


def _everything(site: Site, status: DeadLetterStatus) -> Iterator[DeadLetterRow]:
    before: int | None = None
    while True:
        with site.services.store.reading() as tx:
            rows = dead_letters_page(tx, status=status, before=before, limit=_IN_A_FILE_AT_ONCE)
        yield from rows
        if len(rows) < _IN_A_FILE_AT_ONCE:
            return
        before = rows[-1].id


def _slice(site: Site, status: DeadLetterStatus, before: int | None) -> Mapping[str, Any]:
    with site.services.store.reading() as tx:
        counts = dead_letter_counts(tx)
        rows = dead_letters_page(tx, status=status, before=before, limit=_AT_ONCE + 1)
    shown = rows[:_AT_ONCE]
    following = _address(status, PATH, before=shown[-1].id) if len(rows) > _AT_ONCE else None
    slices = {"first": _address(status, PATH) if before else None, "next": following}
    statuses = {one: counts.get(one, 0) for one in DeadLetterStatus}
    return {"wanted": status, "statuses": statuses, "letters": shown, "slices": slices}


def _address(status: DeadLetterStatus, path: str, **more: object) -> str:
    return address(path, {"status": status, **more})
