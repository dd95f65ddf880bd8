"""Sign-offs: what waits for people, and what they say of it."""

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query, Response

from matoolkit.admin.approvals import approvals_of_batch, waiting_approvals
from matoolkit.admin.signing import sign_off, withdraw
from matoolkit.api.changing import Change, Signing
from matoolkit.api.paging import Page, whole
from matoolkit.api.services import Approver, Reader, Serving
from matoolkit.api.shapes.approvals import (
    ApprovalShape,
    RejectRequest,
    RequestShape,
    SignRequest,
    approval_shape,
    request_shape,
)
from matoolkit.api.shapes.naming import RowId, WithReason
from matoolkit.api.subjects import batch_subject
from matoolkit.domain.states import SignOff
from matoolkit.doors.identity import Identity
from matoolkit.store import Store

router = APIRouter(prefix="/api", tags=["operations"])


class Wanted(StrEnum):
    """Which are listed."""

    WAITING = "waiting"
    ALL = "all"


@router.get("/approvals")
def list_approvals(
    serving: Serving,
    _: Reader,
    state: Annotated[Wanted, Query(description="`waiting`, or `all` that is asked for.")] = Wanted.WAITING,
) -> Page[ApprovalShape]:
    """List everything that waits for sign-off, the oldest deadline first."""
    return whole([approval_shape(one) for one in waiting_approvals(serving.store, everything=state is Wanted.ALL)])


@router.get("/batches/{batch_id}/approvals")
def list_approvals_of_batch(batch_id: RowId, serving: Serving, _: Reader) -> Page[RequestShape]:
    """List what people have to sign off in a batch, each with its digest: a sign-off names the one that was shown."""
    return whole([request_shape(one) for one in approvals_of_batch(serving.store, batch_id)])


@router.post("/batches/{batch_id}/phases/{phase_id}/approve", response_model=RequestShape)
def approve_phase(batch_id: RowId, phase_id: RowId, asked: SignRequest, change: Signing, by: Approver) -> Response:
    """Approve that a phase begins, or those who joined it late, if it is still what was shown."""
    return _signed(change, by, batch_id, phase_id, SignOff.APPROVE, asked)


@router.post("/batches/{batch_id}/phases/{phase_id}/reject", response_model=RequestShape)
def reject_phase(batch_id: RowId, phase_id: RowId, asked: RejectRequest, change: Signing, by: Approver) -> Response:
    """Reject that a phase begins; those who joined it late fail."""
    return _signed(change, by, batch_id, phase_id, SignOff.REJECT, asked)


@router.post("/batches/{batch_id}/phases/{phase_id}/withdraw", response_model=RequestShape)
def withdraw_phase(
    batch_id: RowId, phase_id: RowId, change: Signing, by: Approver, asked: WithReason | None = None
) -> Response:
    """Take back what the caller has signed of a phase, unless it has begun with it."""
    return _withdrawn(change, by, batch_id, phase_id, asked)


@router.post("/batches/{batch_id}/init/approve", response_model=RequestShape)
def approve_init(batch_id: RowId, asked: SignRequest, change: Signing, by: Approver) -> Response:
    """Approve that the init of a batch begins, if it is still what was shown."""
    return _signed(change, by, batch_id, None, SignOff.APPROVE, asked)


@router.post("/batches/{batch_id}/init/reject", response_model=RequestShape)
def reject_init(batch_id: RowId, asked: RejectRequest, change: Signing, by: Approver) -> Response:
    """Reject that the init of a batch begins."""
    return _signed(change, by, batch_id, None, SignOff.REJECT, asked)


@router.post("/batches/{batch_id}/init/withdraw", response_model=RequestShape)
def withdraw_init(batch_id: RowId, change: Signing, by: Approver, asked: WithReason | None = None) -> Response:
    """Take back what the caller has signed of an init, unless it has begun."""
    return _withdrawn(change, by, batch_id, None, asked)


def _signed(
    change: Change,
    by: Identity,
    batch_id: int,
    phase_id: int | None,
    decision: SignOff,
    asked: SignRequest | RejectRequest,
) -> Response:
    def work(store: Store) -> RequestShape:
        publisher, signer = change.services.publisher, by.signer
        done = sign_off(
            store, publisher, batch_id, phase_id, decision, by=signer, digest=asked.digest, reason=asked.reason
        )
        return request_shape(done)

    return change.made(
        ("sign", decision, batch_id, phase_id, asked.model_dump_json()), work, of=batch_subject(batch_id)
    )


def _withdrawn(change: Change, by: Identity, batch_id: int, phase_id: int | None, asked: WithReason | None) -> Response:
    reason = asked.reason if asked else None

    def work(store: Store) -> RequestShape:
        publisher, signer = change.services.publisher, by.signer
        return request_shape(withdraw(store, publisher, batch_id, phase_id, by=signer, reason=reason))

    return change.made(("withdraw", batch_id, phase_id, reason), work, of=batch_subject(batch_id))
