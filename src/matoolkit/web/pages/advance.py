"""Letting a manual batch go on: what would begin, and then exactly that."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.advancing import Advance, advance_batch, next_advance
from matoolkit.errors import PreviewChanged
from matoolkit.web.forms import Reason
from matoolkit.web.pages.batch import BatchId
from matoolkit.web.previews import preview
from matoolkit.web.rendering import Frame, elsewhere
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import Changing, Deciding
from matoolkit.words import advanced_told

router = APIRouter(prefix="/batches/{batch_id}/advance")

_PURPOSE = "advance"


@router.get("")
def preview_advance(request: Request, serving: Serving, viewer: Deciding, batch_id: BatchId) -> Response:
    """Show what would begin, and ask for the reason; refused if the part before has not ended."""
    planned = next_advance(serving.services.store, batch_id)
    frame = Frame(f"Advance batch {batch_id}", "batches", f"matoolkit batch advance {batch_id}")
    mark = serving.seal.mark(_PURPOSE, str(planned))
    return preview(request, viewer, "batch/advance.html", frame, planned=planned, mark=mark)


@router.post("")
def advance(
    request: Request,
    serving: Serving,
    viewer: Changing,
    batch_id: BatchId,
    reason: Annotated[Reason, Form()],
    seen: Annotated[str, Form()],
) -> Response:
    """Begin what was shown."""
    services = serving.services
    with services.store.transaction() as tx:
        inside = services.store.within(tx)
        done = advance_batch(inside, services.publisher, batch_id, by=viewer.identity.name, reason=reason)
        # What is not what was shown is undone with the transaction.
        if not serving.seal.is_mark(seen, _PURPOSE, str(done)):
            raise PreviewChanged
    serving.looks.forget()
    return elsewhere(request, f"/batches/{batch_id}", _told(done))


def _told(done: Advance) -> str:
    phase, following = done.phase_name or "", done.next_phase or ""
    return advanced_told(done.batch_id, done.action, phase, done.members, done.steps, following)
