"""One dead letter: what it was, what it holds, and what can be done with it (rule M7)."""

from typing import Annotated

from fastapi import APIRouter, Form
from fastapi import Path as InPath
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.deadletters import discard_dead_letter, resend_dead_letter
from matoolkit.admin.letters import look_at_letter
from matoolkit.web.contents import content_of
from matoolkit.web.forms import Reason, RowNumber
from matoolkit.web.previews import preview
from matoolkit.web.rendering import Frame, elsewhere, page
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import Changing, Deciding, Looking

router = APIRouter(prefix="/dead-letters/{letter_id}")

LetterId = Annotated[RowNumber, InPath()]


@router.get("")
def get_letter(request: Request, serving: Serving, viewer: Looking, letter_id: LetterId) -> Response:
    """Show a dead letter; what it holds is for administrators, because it may be parameters of a job."""
    look = look_at_letter(serving.services.store, letter_id)
    command = f"matoolkit dead-letter show {letter_id}"
    frame = Frame(f"Dead letter {letter_id}", "dead-letters", command, styles=("matters.css",))
    held = {}
    if viewer.may_change:
        held = {"body": content_of(look.letter.body), "properties": content_of(look.letter.properties_json)}
    return page(request, viewer, "deadletter.html", frame, look=look, held=held)


@router.get("/resend")
def preview_resend(request: Request, serving: Serving, viewer: Deciding, letter_id: LetterId) -> Response:
    """Show what sending it again would do, and ask for the reason."""
    frame = Frame(f"Send dead letter {letter_id} again", "dead-letters", f"matoolkit dead-letter resend {letter_id}")
    look = look_at_letter(serving.services.store, letter_id)
    return preview(request, viewer, "deadletters/resend.html", frame, look=look)


@router.get("/discard")
def preview_discard(request: Request, serving: Serving, viewer: Deciding, letter_id: LetterId) -> Response:
    """Ask for the reason for putting it away."""
    frame = Frame(f"Discard dead letter {letter_id}", "dead-letters", f"matoolkit dead-letter discard {letter_id}")
    look = look_at_letter(serving.services.store, letter_id)
    return preview(request, viewer, "deadletters/discard.html", frame, look=look)


@router.post("/resend")
def resend(
    request: Request, serving: Serving, viewer: Changing, letter_id: LetterId, reason: Annotated[Reason, Form()]
) -> Response:
    """Send it again; for a job, its step is retried."""
    services, by = serving.services, viewer.identity.name
    done = resend_dead_letter(services.store, services.publisher, services.read, letter_id, by=by, reason=reason)
    serving.looks.forget()
    became = f"sent again as {done.message_id}" if done.message_id else f"tried again: {done.retried}"
    return elsewhere(request, "/dead-letters", done=f"Dead letter {letter_id} was {became}.")


@router.post("/discard")
def discard(
    request: Request, serving: Serving, viewer: Changing, letter_id: LetterId, reason: Annotated[Reason, Form()]
) -> Response:
    """Discard it for good."""
    discard_dead_letter(serving.services.store, letter_id, by=viewer.identity.name, reason=reason)
    serving.looks.forget()
    return elsewhere(request, "/dead-letters", done=f"Dead letter {letter_id} is discarded.")
