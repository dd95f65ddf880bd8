"""All batches that wait for a person's approval."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.holding import HeldBatch, held_page
from matoolkit.domain.holds import HoldKind
from matoolkit.errors import UnknownRoute
from matoolkit.store.runbooks import runbook_names
from matoolkit.web.files import csv_file
from matoolkit.web.forms import Number
from matoolkit.web.rendering import Frame, address, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking

router = APIRouter()

PATH = "/holds"
_ALL = "all"
_AT_ONCE = 50
_MOST_IN_A_FILE = 5000
_PARTS = {"list": "holds/list.html"}


def topic_of(site: Site, key: str) -> Topic:
    """Return the newest holds as something to watch."""
    if key != _ALL:
        raise UnknownRoute(f"/live/holds/{key}")
    return Topic("holds/all", _PARTS, lambda: site.looks.taken("holds", lambda: _slice(site, None)))


@router.get(PATH)
def list_holds(
    request: Request, serving: Serving, viewer: Looking, before: Annotated[Number, Query()] = None
) -> Response:
    """Show a slice of the list; the first slice is live."""
    topic = topic_of(serving, _ALL) if before is None else None
    seen = topic.look() if topic else _slice(serving, before)
    with serving.services.store.reading() as tx:
        names = runbook_names(tx)
    frame = Frame("Holds", "holds", "matoolkit hold list", f"{PATH}.csv", topic, styles=("matters.css",))
    return page(request, viewer, "holds.html", frame, names=names, **seen)


@router.get(f"{PATH}.csv")
def list_as_file(serving: Serving, _: Looking) -> Response:
    """Return the list as a file."""
    _count, held = held_page(serving.services.store, before=None, limit=_MOST_IN_A_FILE)
    heading = [
        "batch",
        "runbook",
        "start",
        "status",
        "kind",
        "reason",
        "held_at",
        "approved_by",
        "members",
        "next_phase",
    ]
    return csv_file("holds", [*heading, "next_due"], map(_row, held))


def _slice(site: Site, before: int | None) -> Mapping[str, Any]:
    count, found = held_page(site.services.store, before=before, limit=_AT_ONCE + 1)
    held = found[:_AT_ONCE]
    following = address(PATH, {"before": held[-1].batch.id}) if len(found) > _AT_ONCE else None
    slices = {"first": PATH if before else None, "next": following}
    has_late = following is not None or any(one.batch.hold_kind is HoldKind.LATE for one in held)
    return {"count": count, "held": held, "slices": slices, "has_late": has_late}


def _row(held: HeldBatch) -> list[object]:
    batch, phase = held.batch, held.following
    due = [phase.phase_name, phase.due_at] if phase else ["", None]
    facts = [batch.hold_kind, batch.hold_reason, batch.held_at, batch.approved_hold_by]
    return [batch.id, batch.runbook_name, batch.batch_start_time, batch.status, *facts, held.members, *due]
