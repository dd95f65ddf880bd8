"""What people do when something did not go by itself: holds, retries, dead letters."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from matoolkit.admin.approving import approve
from matoolkit.admin.deadletters import discard_dead_letter, resend_dead_letter
from matoolkit.admin.queries import batch_detail, batch_views, existing_batch, hold_of, one_dead_letter
from matoolkit.admin.reinitializing import retry_init
from matoolkit.admin.retrying import Chosen, MemberRetry, preview_member_retry, retry_members
from matoolkit.api.idempotency import IdempotencyKey, fingerprint, once
from matoolkit.api.paging import Page, PageQuery, page, position
from matoolkit.api.services import Admin, Reader, Serving
from matoolkit.api.shapes.batches import (
    BatchDetailShape,
    BatchShape,
    HoldShape,
    batch_shape,
    detail_shape,
    hold_shape,
)
from matoolkit.api.shapes.naming import RowId, WithReason
from matoolkit.api.shapes.operations import (
    ApproveRequest,
    DeadLetterContent,
    DeadLetterShape,
    FailureShape,
    InitRetryShape,
    ResentShape,
    RetryRequest,
    RetrySelection,
    RetryShape,
    letter_content,
)
from matoolkit.domain.states import DeadLetterStatus
from matoolkit.store import Store
from matoolkit.store.batches import batches_page
from matoolkit.store.counts import failures_by_error
from matoolkit.store.deadletters import dead_letters_page

router = APIRouter(prefix="/api", tags=["operations"])


class DeadLetterQuery(PageQuery):
    """Which dead letters are wanted."""

    status: DeadLetterStatus = DeadLetterStatus.OPEN


@router.get("/holds")
def list_holds(serving: Serving, _: Reader, wanted: Annotated[PageQuery, Query()]) -> Page[BatchShape]:
    """List the batches that wait for a person's approval, newest first."""
    before = position(wanted.cursor, "holds")
    with serving.store.reading() as tx:
        views = batch_views(tx, batches_page(tx, is_held=True, before=before, limit=wanted.limit + 1))
    return page(views, wanted.limit, "holds", lambda view: view.batch.id, batch_shape)


@router.get("/batches/{batch_id}/hold")
def get_hold(batch_id: RowId, serving: Serving, _: Reader) -> HoldShape:
    """Show exactly what a batch is held for."""
    return hold_shape(hold_of(serving.store, batch_id))


@router.post("/batches/{batch_id}/hold/approve")
def approve_hold(batch_id: RowId, asked: ApproveRequest, serving: Serving, admin: Admin) -> BatchDetailShape:
    """Approve what a batch is held for, if it is still what was shown."""
    approve(serving.store, serving.publisher, batch_id, asked.hold_key, by=admin, reason=asked.reason)
    return detail_shape(batch_detail(serving.store, batch_id))


@router.get("/batches/{batch_id}/failures")
def list_failures(batch_id: RowId, serving: Serving, _: Reader) -> Page[FailureShape]:
    """Group the failed steps of a batch by phase, step and error, the largest group first."""
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
        groups = failures_by_error(tx, batch_id)
    return Page(items=[FailureShape.model_validate(group) for group in groups])


@router.post("/batches/{batch_id}/retry/preview")
def preview_retry(batch_id: RowId, serving: Serving, _: Admin, asked: RetrySelection | None = None) -> RetryShape:
    """Say what a retry would do; nothing is changed."""
    return _retry_shape(preview_member_retry(serving.store, batch_id, _chosen(asked)))


@router.post("/batches/{batch_id}/retry", response_model=RetryShape)
def retry(
    batch_id: RowId, serving: Serving, admin: Admin, asked: RetryRequest | None = None, key: IdempotencyKey = None
) -> Response:
    """Let failed members try again: all, by number, by step or by error."""
    reason = asked.reason if asked else None

    def try_again(store: Store) -> RetryShape:
        done = retry_members(store, serving.publisher, batch_id, _chosen(asked), by=admin, reason=reason)
        return _retry_shape(done)

    request = fingerprint("retry", batch_id, asked.model_dump_json() if asked else "")
    return once(serving, admin, key, request, 200, try_again)


@router.post("/batches/{batch_id}/init/retry", response_model=InitRetryShape)
def retry_failed_init(
    batch_id: RowId, serving: Serving, admin: Admin, asked: WithReason | None = None, key: IdempotencyKey = None
) -> Response:
    """Let an init run again that failed."""
    reason = asked.reason if asked else None

    def try_again(store: Store) -> InitRetryShape:
        done = retry_init(store, serving.publisher, batch_id, by=admin, reason=reason)
        return InitRetryShape.model_validate(done)

    return once(serving, admin, key, fingerprint("init", batch_id, reason), 200, try_again)


@router.get("/dead-letters")
def list_dead_letters(
    serving: Serving, _: Reader, wanted: Annotated[DeadLetterQuery, Query()]
) -> Page[DeadLetterShape]:
    """List messages that nobody could handle, newest first."""
    before = position(wanted.cursor, "dead-letters")
    with serving.store.reading() as tx:
        rows = dead_letters_page(tx, status=wanted.status, before=before, limit=wanted.limit + 1)
    return page(rows, wanted.limit, "dead-letters", lambda row: row.id, DeadLetterShape.model_validate)


@router.get("/dead-letters/{letter_id}")
def get_dead_letter(letter_id: RowId, serving: Serving, _: Admin) -> DeadLetterContent:
    """Return a dead letter with its content, which may hold parameters of a job."""
    return letter_content(one_dead_letter(serving.store, letter_id))


@router.post("/dead-letters/{letter_id}/resend")
def resend(letter_id: RowId, serving: Serving, admin: Admin, asked: WithReason | None = None) -> ResentShape:
    """Send a dead letter again; a job is tried again as its step."""
    reason = asked.reason if asked else None
    done = resend_dead_letter(serving.store, serving.publisher, serving.read, letter_id, by=admin, reason=reason)
    return ResentShape.model_validate(done)


@router.post("/dead-letters/{letter_id}/discard")
def discard(letter_id: RowId, serving: Serving, admin: Admin, asked: WithReason | None = None) -> DeadLetterShape:
    """Put a dead letter away for good."""
    discard_dead_letter(serving.store, letter_id, by=admin, reason=asked.reason if asked else None)
    return DeadLetterShape.model_validate(one_dead_letter(serving.store, letter_id))


def _chosen(asked: RetrySelection | None) -> Chosen:
    if asked is None:
        return Chosen()
    return Chosen(asked.member_ids, asked.phase_name, asked.step_name, asked.error)


def _retry_shape(done: MemberRetry) -> RetryShape:
    return RetryShape.model_validate(done)
