"""A batch is cancelled, for good."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.cancelling import cancel_batch, preview_cancellation
from matoolkit.admin.queries import existing_batch
from matoolkit.store import Store
from matoolkit.web.deciding import Act, Decision, TypedReason, carry_out, preview
from matoolkit.web.pages.batch import BatchId
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding, Viewer
from matoolkit.words import counted

router = APIRouter(prefix="/batches/{batch_id}/cancel")


@router.get("")
def preview_cancel(request: Request, serving: Serving, viewer: Deciding, batch_id: BatchId) -> Response:
    """Show what cancelling would stop, and ask for the reason."""
    return preview(request, viewer, serving, _act(serving, viewer, batch_id, ""))


@router.post("")
def cancel(
    request: Request,
    serving: Serving,
    viewer: Changing,
    batch_id: BatchId,
    reason: Annotated[TypedReason, Form()] = "",
    shown: Annotated[str, Form()] = "",
) -> Response:
    """Cancel the batch."""
    act = _act(serving, viewer, batch_id, reason)
    return carry_out(request, viewer, serving, act, reason=reason, shown=shown)


def _act(site: Site, viewer: Viewer, batch_id: int, reason: str) -> Act[int]:
    def decision(store: Store, meant: int | None) -> Decision:
        with store.reading() as tx:
            batch = existing_batch(tx, batch_id)
        open_work = preview_cancellation(store, batch_id) if meant else None
        return Decision(
            f"Cancel batch {batch_id}",
            f"/batches/{batch_id}/cancel",
            "batch/cancel.html",
            f"/batches/{batch_id}",
            f"matoolkit batch cancel {batch_id}",
            # The counts of a batch at work change all the time; the decision is about which phases are dropped.
            (batch.status, open_work and open_work.phases),
            f"Cancel batch {batch_id}" if open_work else None,
            is_risk=True,
            facts={"batch": batch, "work": open_work},
        )

    def work(store: Store, _: int) -> str:
        done = cancel_batch(store, site.services.publisher, batch_id, by=viewer.identity.name, reason=reason)
        stopped = f"{counted(done.phases, 'phase')} and {counted(done.steps, 'step')} stopped"
        flying = f"{counted(done.jobs_in_flight, 'job')} in flight cannot be recalled"
        return f"Batch {batch_id} is cancelled: {stopped}, {flying}."

    return Act(lambda: batch_id, decision, work)
