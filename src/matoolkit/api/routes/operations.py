"""What people do when something needs them: holds, retries, dead letters."""

from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Annotated

from fastapi import APIRouter, Query, Response

from matoolkit.admin.approving import approve, missing_sign_offs, withdraw_from_hold
from matoolkit.admin.deadletters import discard_dead_letter, resend_dead_letter
from matoolkit.admin.late_batches import LateBatches, approve_late, cancel_late, late_batches
from matoolkit.admin.queries import batch_views, existing_batch, held_members, hold_of, one_dead_letter
from matoolkit.admin.reinitializing import retry_init
from matoolkit.admin.retrying import preview_member_retry, retry_members
from matoolkit.admin.retryplan import Chosen, Terms
from matoolkit.admin.retryrows import Rows, rows_in_file, rows_in_source
from matoolkit.api.changing import Change, Changing, OperatingOn, Signing
from matoolkit.api.conditions import TAGGED, IfNoneMatch, shown
from matoolkit.api.paging import Count, Page, PageQuery, page, position, whole
from matoolkit.api.services import Admin, Approver, Operator, Reader, Serving
from matoolkit.api.shapes.batches import ApprovedShape, BatchShape, HeldMemberShape, HoldShape, batch_shape
from matoolkit.api.shapes.naming import RowId, WithReason
from matoolkit.api.shapes.operations import (
    ApproveRequest,
    DeadLetterContent,
    DeadLetterShape,
    FailureShape,
    InitRetryShape,
    LateRefusal,
    LateRequest,
    LateShape,
    ResentShape,
    RetryRequest,
    RetrySelection,
    RetryShape,
)
from matoolkit.api.subjects import (
    batch_shown,
    batch_subject,
    hold_shown,
    hold_subject,
    letter_shown,
    letter_subject,
)
from matoolkit.domain.retrying import DataChoice
from matoolkit.domain.states import DeadLetterStatus
from matoolkit.doors.services import Services
from matoolkit.store import Store
from matoolkit.store.batches import BatchFilter, batches_page, count_batches
from matoolkit.store.deadletters import dead_letter_counts, dead_letters_page
from matoolkit.store.failures import failures_by_error

router = APIRouter(prefix="/api", tags=["operations"])


HELD = BatchFilter(is_held=True)


class DeadLetterQuery(PageQuery):
    """Which dead letters are wanted."""

    status: DeadLetterStatus = DeadLetterStatus.OPEN


@router.get("/holds")
def list_holds(serving: Serving, _: Reader, wanted: Annotated[PageQuery, Query()]) -> Page[BatchShape]:
    """List the batches that wait for a person's approval, newest first."""
    before = position(wanted.cursor, "holds")
    with serving.store.reading() as tx:
        views = batch_views(tx, batches_page(tx, HELD, before=before, limit=wanted.limit + 1))
        held = count_batches(tx, HELD)
    return page(views, wanted.limit, "holds", lambda view: view.batch.id, batch_shape, Count(held, held))


@router.get("/batches/{batch_id}/hold", response_model=HoldShape, responses=TAGGED)
def get_hold(batch_id: RowId, serving: Serving, _: Reader, known: IfNoneMatch = None) -> Response:
    """Show what a batch is held for, with the first 100 of the members that it is about."""
    return shown(hold_shown(serving.store, batch_id), known)


@router.get("/batches/{batch_id}/hold/members")
def list_held_members(
    batch_id: RowId, serving: Serving, _: Reader, wanted: Annotated[PageQuery, Query()]
) -> Page[HeldMemberShape]:
    """List exactly the members that a hold is about."""
    after = position(wanted.cursor, "held") or 0
    count, rows = held_members(serving.store, batch_id, after=after, limit=wanted.limit + 1)
    return page(rows, wanted.limit, "held", lambda row: row.id, HeldMemberShape.model_validate, Count(count, count))


@router.post("/batches/{batch_id}/hold/approve", response_model=ApprovedShape)
def approve_hold(batch_id: RowId, asked: ApproveRequest, change: Signing, by: Approver) -> Response:
    """Approve what a batch is held for, if it is still what was shown; it may take several people.

    Where the runbook wants no sign-offs of holds, this is for administrators.
    """

    def let_go(store: Store) -> ApprovedShape:
        publisher, key = change.services.publisher, asked.hold_key
        done = approve(store, publisher, batch_id, key, by=change.by, reason=asked.reason, signer=by.signer)
        # A batch that was held for its init goes on at once; everything else needs a tick.
        waits_for = hold_of(store, batch_id).waits_for if done.is_held else None
        told = {"waits_for": waits_for, "sign_offs": missing_sign_offs(store, batch_id)}
        return ApprovedShape(**dict(batch_shown(store, batch_id)), **told)

    return change.made(("approve", batch_id, asked.hold_key, asked.reason), let_go, of=hold_subject(batch_id))


@router.post("/batches/{batch_id}/hold/withdraw", response_model=HoldShape)
def withdraw_hold(batch_id: RowId, change: Signing, by: Approver, asked: WithReason | None = None) -> Response:
    """Take back the sign-off of a hold that the caller has given, unless the hold was approved with it."""
    reason = asked.reason if asked else None

    def take_back(store: Store) -> HoldShape:
        withdraw_from_hold(store, batch_id, by=by.signer, reason=reason)
        return hold_shown(store, batch_id)

    return change.made(("withdraw-hold", batch_id, reason), take_back, of=hold_subject(batch_id))


@router.post("/holds/late/approve", response_model=LateShape)
def approve_late_batches(asked: LateRequest, change: Changing, by: Approver) -> Response:
    """Approve all batches that are held as late and whose T lies before a time."""
    return _decided(asked, change, "approve", partial(approve_late, signer=by.signer))


@router.post("/holds/late/cancel", response_model=LateShape)
def cancel_late_batches(asked: LateRequest, change: Changing) -> Response:
    """Cancel all batches that are held as late and whose T lies before a time."""
    return _decided(asked, change, "cancel", cancel_late)


def _decided(asked: LateRequest, change: Change, what: str, decide: Callable[..., LateBatches]) -> Response:
    def work(store: Store) -> LateShape:
        if asked.dry_run:
            done = late_batches(store, asked.before, asked.runbook_name)
        else:
            publisher = change.services.publisher
            done = decide(store, publisher, asked.before, asked.runbook_name, by=change.by, reason=asked.reason)
        return LateShape(
            batch_ids=list(done.batch_ids),
            member_count=done.member_count,
            signed_ids=list(done.signed_ids),
            refused=[LateRefusal(batch_id=one, code=why.code, detail=str(why)) for one, why in done.refused.items()],
            is_dry_run=asked.dry_run,
        )

    return change.made(("late", what, asked.model_dump_json()), work)


@router.get("/batches/{batch_id}/failures")
def list_failures(batch_id: RowId, serving: Serving, _: Reader) -> Page[FailureShape]:
    """Group the failed steps of a batch by phase, step and cause, the largest group first, with one error of each."""
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
        groups = failures_by_error(tx, batch_id)
    return whole([FailureShape.model_validate(group) for group in groups])


@router.post("/batches/{batch_id}/retry/preview")
def preview_retry(batch_id: RowId, serving: Serving, _: Operator, asked: RetrySelection | None = None) -> RetryShape:
    """Say what a retry would do; nothing is changed."""
    return RetryShape.model_validate(preview_member_retry(serving.store, batch_id, *_meant(serving, batch_id, asked)))


@router.post("/batches/{batch_id}/retry", response_model=RetryShape)
def retry(batch_id: RowId, change: OperatingOn, asked: RetryRequest | None = None) -> Response:
    """Retry failed members: all, by number, by step or by error."""
    reason = asked.reason if asked else None
    # Sources and files are read before any transaction begins.
    meant = _meant(change.services, batch_id, asked)

    def try_again(store: Store) -> RetryShape:
        done = retry_members(store, change.services.publisher, batch_id, *meant, by=change.by, reason=reason)
        return RetryShape.model_validate(done)

    what = ("retry", batch_id, asked.model_dump_json() if asked else "")
    return change.made(what, try_again, of=batch_subject(batch_id))


@router.post("/batches/{batch_id}/init/retry", response_model=InitRetryShape)
def retry_failed_init(batch_id: RowId, change: OperatingOn, asked: WithReason | None = None) -> Response:
    """Run a failed init again."""
    reason = asked.reason if asked else None

    def try_again(store: Store) -> InitRetryShape:
        done = retry_init(store, change.services.publisher, batch_id, by=change.by, reason=reason)
        return InitRetryShape.model_validate(done)

    return change.made(("init", batch_id, reason), try_again, of=batch_subject(batch_id))


@router.get("/dead-letters")
def list_dead_letters(
    serving: Serving, _: Reader, wanted: Annotated[DeadLetterQuery, Query()]
) -> Page[DeadLetterShape]:
    """List messages that could not be handled, newest first."""
    before = position(wanted.cursor, "dead-letters")
    with serving.store.reading() as tx:
        rows = dead_letters_page(tx, status=wanted.status, before=before, limit=wanted.limit + 1)
        counts = dead_letter_counts(tx)
    count = Count(counts.get(wanted.status, 0), sum(counts.values()))
    return page(rows, wanted.limit, "dead-letters", lambda row: row.id, DeadLetterShape.model_validate, count)


@router.get("/dead-letters/{letter_id}", response_model=DeadLetterContent, responses=TAGGED)
def get_dead_letter(letter_id: RowId, serving: Serving, _: Admin, known: IfNoneMatch = None) -> Response:
    """Return a dead letter with its content, which may hold parameters of a job."""
    return shown(letter_shown(serving.store, letter_id), known)


@router.post("/dead-letters/{letter_id}/resend", response_model=ResentShape)
def resend(letter_id: RowId, change: Changing, asked: WithReason | None = None) -> Response:
    """Send a dead letter again; for a job, its step is retried."""
    reason, serving = asked.reason if asked else None, change.services

    def send_again(store: Store) -> ResentShape:
        done = resend_dead_letter(store, serving.publisher, serving.read, letter_id, by=change.by, reason=reason)
        return ResentShape.model_validate(done)

    return change.made(("resend", letter_id, reason), send_again, of=letter_subject(letter_id))


@router.post("/dead-letters/{letter_id}/discard", response_model=DeadLetterShape)
def discard(letter_id: RowId, change: Changing, asked: WithReason | None = None) -> Response:
    """Discard a dead letter for good."""
    reason = asked.reason if asked else None

    def put_away(store: Store) -> DeadLetterShape:
        discard_dead_letter(store, letter_id, by=change.by, reason=reason)
        return DeadLetterShape.model_validate(one_dead_letter(store, letter_id))

    return change.made(("discard", letter_id, reason), put_away, of=letter_subject(letter_id))


def _meant(serving: Services, batch_id: int, asked: RetrySelection | None) -> tuple[Chosen, Terms]:
    if asked is None:
        return Chosen(), Terms()
    chosen = Chosen(asked.member_ids, asked.phase_name, asked.step_name, asked.error, asked.fingerprint)
    rows = _rows(serving, batch_id, asked)
    return chosen, Terms(asked.version, asked.begin_with, asked.keep_done, asked.data, rows)


def _rows(serving: Services, batch_id: int, asked: RetrySelection) -> Rows | None:
    if asked.rows is not None or asked.data is DataChoice.FILE:
        return rows_in_file(serving.store, batch_id, BytesIO((asked.rows or "").encode()))
    if asked.data is DataChoice.REFRESHED:
        return rows_in_source(serving.store, serving.open_source, batch_id, serving.clock.now)
    return None
