"""The init of a batch failed, and runs again."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.queries import existing_batch
from matoolkit.admin.reinitializing import preview_init_retry, retry_init
from matoolkit.store import Store
from matoolkit.web.deciding import Act, Decision, TypedReason, carry_out, preview
from matoolkit.web.pages.batch import BatchId
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding, Viewer

router = APIRouter(prefix="/batches/{batch_id}/init/retry")


@router.get("")
def preview_again(request: Request, serving: Serving, viewer: Deciding, batch_id: BatchId) -> Response:
    """Show which init would run again, and ask for the reason."""
    return preview(request, viewer, serving, _act(serving, viewer, batch_id, ""))


@router.post("")
def run_again(
    request: Request,
    serving: Serving,
    viewer: Changing,
    batch_id: BatchId,
    reason: Annotated[TypedReason, Form()] = "",
    shown: Annotated[str, Form()] = "",
) -> Response:
    """Run the init again."""
    act = _act(serving, viewer, batch_id, reason)
    return carry_out(request, viewer, serving, act, reason=reason, shown=shown)


def _act(site: Site, viewer: Viewer, batch_id: int, reason: str) -> Act[int]:
    def decision(store: Store, meant: int | None) -> Decision:
        with store.reading() as tx:
            existing_batch(tx, batch_id)
        plan = preview_init_retry(store, batch_id) if meant else None
        return Decision(
            f"Retry the init of batch {batch_id}",
            f"/batches/{batch_id}/init/retry",
            "batch/init.html",
            f"/batches/{batch_id}",
            f"matoolkit batch retry-init {batch_id}",
            plan,
            f"Run the init of version {plan.version} again" if plan else None,
            facts={"plan": plan},
        )

    def work(store: Store, _: int) -> str:
        done = retry_init(store, site.services.publisher, batch_id, by=viewer.identity.name, reason=reason)
        return f"Batch {batch_id}: the init of version {done.version} runs again."

    return Act(lambda: batch_id, decision, work)
