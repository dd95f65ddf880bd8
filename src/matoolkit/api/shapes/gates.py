"""Gates as the API shows them, and what is asked of them."""

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

from matoolkit.admin.gating import Paused, Resumed, Subject, subject_of
from matoolkit.api.shapes.naming import GivenReason, RowId, Shape
from matoolkit.domain.doors import Door
from matoolkit.domain.gates import Gate, GateKind
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.store.gatekeeping import GateRow


class SubjectShape(Shape):
    """What is meant: a batch, a runbook, a worker, a person of a runbook; without any of them everything."""

    batch_id: RowId | None = None
    runbook_name: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    worker_id: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    member_key: Annotated[str | None, Field(min_length=1, max_length=MAX_KEY_LENGTH)] = None

    def subject(self) -> Subject:
        """Return it as the rules know it."""
        return Subject(self.batch_id, self.runbook_name, self.worker_id, self.member_key)


class PauseRequest(SubjectShape):
    """What is paused, why, and for how long."""

    reason: GivenReason
    let_finish: bool = Field(False, description="Nothing begins, and what has begun goes on.")
    until: AwareDatetime | None = Field(None, description="When it goes on by itself.")


class FreezeRequest(Shape):
    """What is frozen, why, and from when until when; without a subject everything."""

    batch_id: RowId | None = None
    runbook_name: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    worker_id: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    begins: Annotated[str | None, Field(max_length=40)] = Field(
        None, alias="from", description="When it begins: `2026-12-24 18:00` in `zone`, or RFC 3339; null for now."
    )
    until: Annotated[str | None, Field(max_length=40)] = Field(
        None, description="When it ends, written in the same way; null for when somebody opens it."
    )
    zone: Annotated[str | None, Field(max_length=64)] = Field(
        None, description="IANA zone of times without one. What its clock repeats or skips makes a freeze longer."
    )
    reason: GivenReason

    def subject(self) -> Subject:
        """Return what is frozen as the rules know it."""
        return Subject(self.batch_id, self.runbook_name, self.worker_id)


class ResumeRequest(SubjectShape):
    """What goes on, and why."""

    reason: GivenReason


class OpenRequest(Shape):
    """Why a gate is opened."""

    reason: GivenReason
    allow: int | None = Field(
        None,
        ge=0,
        le=10_000_000,
        description="Only for a budget: how many more members may fail before it is shut again. Default: none.",
    )


class GateShape(Shape):
    """A gate: what it keeps from going on, why, since when and until when, and who opened it."""

    id: int
    kind: GateKind
    reach: Door = Field(description="`start`: nothing begins. `send`: no job leaves either.")
    subject: str = Field(description="What it covers, as a command names it.")
    batch_id: int | None
    phase_execution_id: int | None = Field(description="Phase of that batch from which on it keeps everybody.")
    runbook_name: str | None
    worker_id: str | None
    member_key: str | None
    shut_from: datetime
    shut_until: datetime | None
    shut_by: str
    reason: str
    is_swept: bool = Field(description="Whether what follows from its latest change was done everywhere.")
    opened_at: datetime | None
    opened_by: str | None
    opened_reason: str | None
    allowed: int | None = Field(
        description="A budget that was opened: how many members may have failed before the phase is shut again."
    )


class PausedShape(GateShape):
    """A gate that was shut, and what that did to jobs that had left."""

    taken_back: int = Field(description="Jobs that nobody had received; they leave when the gate is open.")
    out: int = Field(description="Jobs that workers have, or that cannot be called back: they finish.")


class StillShape(Shape):
    """A gate that keeps the same subject still."""

    id: int
    kind: GateKind
    reason: str


class ResumedShape(Shape):
    """The gates that were opened, and those that keep the same subject still."""

    opened: list[GateShape]
    still: list[StillShape]


def gate_shape(gate: GateRow) -> GateShape:
    """Show a gate."""
    return GateShape(**_facts(gate))


def paused_shape(paused: Paused) -> PausedShape:
    """Show a gate that was just shut."""
    jobs = paused.jobs
    return PausedShape(**_facts(paused.gate), taken_back=jobs.taken_back, out=jobs.out)


def resumed_shape(resumed: Resumed) -> ResumedShape:
    """Show what was opened, and what is still shut."""
    return ResumedShape(opened=[gate_shape(gate) for gate in resumed.opened], still=list(map(_still, resumed.still)))


def _still(gate: Gate) -> StillShape:
    return StillShape(id=gate.id, kind=gate.kind, reason=gate.reason)


def _facts(gate: GateRow) -> dict[str, object]:
    computed = {"subject", "is_swept"}
    said = {name: getattr(gate, name) for name in GateShape.model_fields if name not in computed}
    is_swept = gate.swept_at is not None or gate.hold_key is not None
    return {**said, "subject": str(subject_of(gate)), "is_swept": is_swept}
