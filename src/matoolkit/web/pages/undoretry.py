"""Failed undo steps tried again: all of a batch, or those that failed for one cause (rules O9 and O14)."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.undoretries import UndoRetry, preview_undo_retry, retry_undo
from matoolkit.errors import PreviewChanged
from matoolkit.store.undofailures import undo_steps_like
from matoolkit.web.forms import Number, Reason, RowNumber
from matoolkit.web.previews import preview
from matoolkit.web.rendering import Frame, elsewhere
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding
from matoolkit.words import counted

router = APIRouter(prefix="/undo-failures/retry")

_PURPOSE = "undo-retry"


@router.get("")
def preview_retry(
    request: Request,
    serving: Serving,
    viewer: Deciding,
    batch: Annotated[RowNumber, Query()],
    like: Annotated[Number, Query()] = None,
) -> Response:
    """Say which failed undo steps would run again and which are left out, and ask for the reason."""
    planned = preview_undo_retry(serving.services.store, batch, _meant(serving, like))
    frame = Frame(f"Retry failed undo steps of batch {batch}", "undo", f"matoolkit undo-failure retry {batch}")
    mark = serving.seal.mark(_PURPOSE, *_facts(planned))
    return preview(request, viewer, "undofailures/retry.html", frame, planned=planned, like=like, mark=mark)


@router.post("")
def retry(
    request: Request,
    serving: Serving,
    viewer: Changing,
    batch: Annotated[RowNumber, Form()],
    shown_as: Annotated[str, Form(max_length=100)],
    reason: Annotated[Reason, Form()],
    like: Annotated[Number, Form()] = None,
) -> Response:
    """Send exactly those again that were shown."""
    services, steps = serving.services, _meant(serving, like)
    planned = preview_undo_retry(services.store, batch, steps)
    if not serving.seal.is_mark(shown_as, _PURPOSE, *_facts(planned)):
        raise PreviewChanged
    by = viewer.identity.name
    done = retry_undo(services.store, services.publisher, batch, planned.step_ids, by=by, reason=reason)
    serving.looks.forget()
    told = f"Batch {batch}: {counted(len(done.step_ids), 'failed undo step')} run again."
    return elsewhere(request, "/undo-failures", done=told)


def _meant(site: Site, like: int | None) -> Sequence[int] | None:
    if like is None:
        return None
    with site.services.store.reading() as tx:
        return undo_steps_like(tx, like)


def _facts(planned: UndoRetry) -> list[str]:
    return [str(planned.batch_id), ",".join(map(str, planned.step_ids))]
