"""Sign-offs as the API shows them, and what is asked of those who sign."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from matoolkit.admin.approvals import ApprovalState, Asking, Request, signatures
from matoolkit.api.shapes.naming import GivenReason, Reason, Shape
from matoolkit.domain.signoff import Signature
from matoolkit.domain.states import SignOff, SignOffSubject

Digest = Annotated[str, Field(min_length=1, max_length=100, description="Digest of what was shown.")]


class SignRequest(Shape):
    """What is signed off: exactly what was shown under this digest."""

    digest: Digest
    reason: Reason = None


class RejectRequest(Shape):
    """What is rejected, and why."""

    digest: Digest
    reason: GivenReason


class SignatureShape(Shape):
    """A sign-off that somebody gave."""

    id: int
    decision: SignOff
    signed_by: str
    is_signed_in: bool = Field(description="Whether a person had signed in; without Entra nobody does.")
    signed_at: datetime
    reason: str | None
    digest: str
    members: int = Field(description="How many members were shown.")
    withdrawn_at: datetime | None
    used_at: datetime | None = Field(description="When what it is about began.")
    void: str | None = Field(description="Why it does not count, if it does not.")


class ApprovalStep(Shape):
    """A step that would be done."""

    name: str
    function: str


class ApprovalShape(Shape):
    """Something that people have to sign off before it begins, and how far that is."""

    batch_id: int
    runbook_name: str
    batch_start_time: datetime | None
    version: int
    subject: SignOffSubject
    phase_id: int | None
    phase_name: str | None
    hold_reason: str | None
    state: ApprovalState
    waits: str | None = Field(description="What is missing, in a sentence.")
    count: int = Field(description="How many different people have to sign off.")
    by: list[str]
    not_publisher: bool
    published_by: str
    due_at: datetime | None
    opens_at: datetime | None
    ends_at: datetime | None
    deadline: datetime | None = Field(description="When it ends, or else when the phase is due.")
    valid_seconds: int
    is_for_late: bool = Field(description="Whether it is only about members who joined after the phase had begun.")
    member_count: int = Field(description="How many members it is about.")
    steps: list[ApprovalStep]
    signed: list[SignatureShape]


class RequestShape(ApprovalShape):
    """The same with what is signed: the digest, the first members, and whose data changed since the first sign-off."""

    digest: str
    first_members: list[str]
    data_changed: int


def approval_shape(asking: Asking) -> ApprovalShape:
    """Show something that waits for people."""
    return ApprovalShape(**_facts(asking))


def request_shape(request: Request) -> RequestShape:
    """Show what is signed."""
    told = {"digest": request.digest, "first_members": list(request.first_members)}
    return RequestShape(**_facts(request.asking), **told, data_changed=request.data_changed)


def _facts(asking: Asking) -> dict[str, object]:
    asked, batch = asking.asked, asking.batch
    is_phase, is_hold = (asked.subject is one for one in (SignOffSubject.PHASE, SignOffSubject.HOLD))
    return {
        "batch_id": batch.id,
        "runbook_name": batch.runbook_name,
        "batch_start_time": batch.batch_start_time,
        "version": asked.version,
        "subject": asked.subject,
        "phase_id": asked.phase_execution_id,
        "phase_name": asked.title if is_phase else None,
        "hold_reason": batch.hold_reason if is_hold else None,
        "state": asking.state,
        "waits": asking.waits,
        "count": asked.count,
        "by": list(asked.by),
        "not_publisher": asking.rule.not_publisher,
        "published_by": asking.publisher,
        "due_at": asking.due_at,
        "opens_at": asked.opens_at,
        "ends_at": asked.ends_at,
        "deadline": asking.deadline,
        "valid_seconds": int(asked.valid.total_seconds()),
        "is_for_late": asked.asked_after is not None,
        "member_count": asking.members,
        "steps": [ApprovalStep(name=step.name, function=step.function) for step in asking.steps],
        "signed": [_signature(one, void) for one, void in signatures(asking)],
    }


def _signature(one: Signature, void: str | None) -> SignatureShape:
    given = {name: getattr(one, name) for name in SignatureShape.model_fields if name != "void"}
    return SignatureShape(**given, void=void)
