"""One hold: why the batch waits, exactly who is concerned, and what can be done about it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.approving import approve, missing_sign_offs
from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.holding import HoldLook, everybody_concerned, look_at_hold
from matoolkit.admin.queries import hold_of
from matoolkit.doors.problems import problem
from matoolkit.errors import HoldChanged, PreviewChanged
from matoolkit.web.files import csv_file
from matoolkit.web.forms import Number, Reason
from matoolkit.web.holdwords import deed, headline
from matoolkit.web.pages.batch import BatchId, number_of
from matoolkit.web.previews import preview
from matoolkit.web.rendering import Frame, elsewhere, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Changing, Deciding, Looking
from matoolkit.words import counted

router = APIRouter(prefix="/holds/{batch_id}")

_AT_ONCE = 50
_PARTS = {"head": "hold/head.html", "who": "hold/who.html", "decide": "hold/decide.html"}


def topic_of(site: Site, key: str) -> Topic:
    """Return a hold as something to watch."""
    number = number_of(key)
    return Topic(f"hold/{number}", _PARTS, lambda: site.looks.taken(("hold", number), lambda: _seen(site, number, 0)))


@router.get("")
def get_hold(
    request: Request, serving: Serving, viewer: Looking, batch_id: BatchId, after: Annotated[Number, Query()] = None
) -> Response:
    """Show a hold, with the first of those whom it concerns or those after one of them."""
    topic = topic_of(serving, str(batch_id))
    seen = _seen(serving, batch_id, after) if after else topic.look()
    return page(request, viewer, "hold.html", _frame(seen["look"], topic), **seen)


@router.get("/members.csv")
def list_as_file(serving: Serving, _: Looking, batch_id: BatchId) -> Response:
    """Return all whom a hold concerns as a file."""
    # What is not held is refused before the file begins.
    hold_of(serving.services.store, batch_id)
    rows = everybody_concerned(serving.services.store, batch_id)
    written = ([one.id, one.member_key, one.state, one.last_completed_phase] for one in rows)
    return csv_file(f"hold-{batch_id}", ["id", "member_key", "state", "last_completed_phase"], written)


@router.get("/approve")
def preview_approval(request: Request, serving: Serving, viewer: Deciding, batch_id: BatchId) -> Response:
    """Show what approving would do, and ask for the reason."""
    seen = _seen(serving, batch_id, 0)
    frame = Frame(f"Approve the hold of batch {batch_id}", "holds", f"matoolkit hold approve {batch_id}")
    return preview(request, viewer, "hold/approve.html", frame, **seen)


@router.get("/cancel")
def preview_cancel(request: Request, serving: Serving, viewer: Deciding, batch_id: BatchId) -> Response:
    """Show what cancelling would stop, and ask for the reason."""
    seen = _seen(serving, batch_id, 0)
    frame = Frame(f"Cancel batch {batch_id}", "holds", f"matoolkit hold cancel {batch_id}")
    return preview(request, viewer, "hold/cancel.html", frame, **seen)


@router.post("/approve")
def approve_hold(
    request: Request,
    serving: Serving,
    viewer: Changing,
    batch_id: BatchId,
    key: Annotated[str, Form(max_length=200)],
    reason: Annotated[Reason, Form()],
    was: Annotated[str, Form(max_length=1000)] = "",
) -> Response:
    """Approve exactly what was shown; a hold that now stands for something else is refused with what changed."""
    services = serving.services
    serving.looks.forget()
    try:
        who = viewer.identity
        done = approve(services.store, services.publisher, batch_id, key, by=who.name, reason=reason, signer=who.signer)
    except HoldChanged as changed:
        now = look_at_hold(services.store, batch_id, limit=1)
        told = {"problem": problem(changed), "was": was, "look": now, "headline": headline(now)}
        frame = Frame(f"Approve the hold of batch {batch_id}", "holds")
        return preview(request, viewer, "hold/changed.html", frame, status=changed.http_status, **told)
    # A batch that was held for its init goes on at once; everything else needs a tick.
    waits_for = hold_of(services.store, batch_id).waits_for if done.is_held else None
    serving.looks.forget()
    if (progress := missing_sign_offs(services.store, batch_id)) is not None:
        return elsewhere(request, f"/holds/{batch_id}", done=f"Batch {batch_id}: signed off, {progress}.")
    said = f"Batch {batch_id}: approved" + (f"; it waits, {waits_for}" if waits_for else "")
    return elsewhere(request, f"/holds/{batch_id}", done=f"{said}.")


@router.post("/cancel")
def cancel_held(
    request: Request,
    serving: Serving,
    viewer: Changing,
    batch_id: BatchId,
    key: Annotated[str, Form(max_length=200)],
    reason: Annotated[Reason, Form()],
) -> Response:
    """Cancel a batch that is held, for good: something may have begun if it is held for another reason than shown."""
    services = serving.services
    with services.store.transaction() as tx:
        inside, by = services.store.within(tx), viewer.identity.name
        if hold_of(inside, batch_id).batch.hold_key != key:
            raise PreviewChanged
        done = cancel_batch(inside, services.publisher, batch_id, by=by, reason=reason)
    serving.looks.forget()
    stopped = f"{counted(done.phases, 'phase')} and {counted(done.steps, 'step')} stopped"
    flying = f"{counted(done.jobs_in_flight, 'job')} in flight cannot be recalled"
    return elsewhere(request, f"/batches/{batch_id}", done=f"Batch {batch_id} is cancelled: {stopped}, {flying}.")


def _seen(site: Site, batch_id: int, after: int) -> Mapping[str, Any]:
    found = look_at_hold(site.services.store, batch_id, after=after, limit=_AT_ONCE + 1)
    look, has_more = replace(found, members=found.members[:_AT_ONCE]), len(found.members) > _AT_ONCE
    start = look.hold.new_start if look.hold else None
    around = {"headline": headline(look), "deed": deed(look.hold) if look.hold else ""}
    sign_offs = missing_sign_offs(site.services.store, batch_id)
    new_start = datetime.fromisoformat(start) if start else None
    return {
        "look": look,
        "after": after,
        "has_more": has_more,
        "new_start": new_start,
        "sign_offs": sign_offs,
        **around,
    }


def _frame(look: HoldLook, topic: Topic) -> Frame:
    number = look.held.batch.id
    command = f"matoolkit hold show {number}"
    return Frame(f"Hold of batch {number}", "holds", command, topic=topic, styles=("matters.css",))
