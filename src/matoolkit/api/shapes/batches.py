"""Batches, phases, members and steps, as they are answered."""

from datetime import datetime
from typing import Any

from pydantic import Field

from matoolkit.admin.people import PlaceHistory
from matoolkit.admin.queries import BatchDetail, BatchView, HoldView, MemberHistory, MemberView, PhaseView, RolloutView
from matoolkit.api.shapes.delays import DelayShape, delay_shapes
from matoolkit.api.shapes.naming import Shape, parsed
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.secrecy import row_without_secrets
from matoolkit.domain.states import BatchStatus, MemberState, MemberStatus, PhaseStatus, RollbackCause, StepStatus
from matoolkit.store.enrolments import Enrolment
from matoolkit.store.executions import ExecutionRow, StepRow


class BatchShape(Shape):
    """A batch, with the number of its members in each state."""

    id: int
    runbook_id: int
    runbook_name: str
    batch_start_time: datetime | None
    status: BatchStatus
    is_manual: bool
    is_held: bool
    hold_reason: str | None
    created_by: str | None
    current_phase: str | None
    detected_at: datetime
    init_dispatched_at: datetime | None
    completed_at: datetime | None
    reopened_at: datetime | None
    member_count: int = Field(description="Everybody who is or was in it; `members` says how many are in which status.")
    members: dict[MemberStatus, int]
    member_states: dict[MemberState, int] = Field(description="The same members, by the state in which they are.")


class RolloutShape(Shape):
    """How a phase goes that not all members go through at once."""

    members: int = Field(description="Active members when it began.")
    pilots: int = Field(description="Pilots of the batch.")
    pilots_open: int = Field(description="Pilots who are in the phase.")
    pilots_failed: int = Field(description="Pilots who failed in it, or were undone or excluded after they began it.")
    pilots_through: int = Field(description="Pilots who went through it.")
    pilots_done_at: datetime | None = Field(description="When the last pilot had ended it.")
    places_taken: int = Field(description="Places that are taken, if only so many may be in it at once.")


class PhaseShape(Shape):
    """A phase of a batch, with the number of its steps in each state."""

    id: int
    batch_id: int
    runbook_version: int
    phase_name: str
    phase_index: int
    offset_minutes: int
    due_at: datetime | None
    status: PhaseStatus
    late_after: datetime | None = Field(description="After that it does not begin without a person; null for never.")
    dispatched_at: datetime | None
    completed_at: datetime | None
    steps: dict[StepStatus, int]
    rollout: RolloutShape | None = Field(description="Null if all go through it at once, or if it has not begun.")


class ExecutionShape(Shape):
    """Work that a worker does: what, how often it was tried, and what came of it. Parameters are not shown."""

    id: int
    step_name: str
    step_index: int
    worker_id: str
    function_name: str | None
    status: StepStatus
    attempt: int
    job_id: str | None
    error_type: str | None
    error_message: str | None
    is_poll_step: bool
    poll_count: int
    retry_count: int
    max_retries: int
    retry_after: datetime | None
    dispatched_at: datetime | None
    completed_at: datetime | None
    result: Any


class InitShape(ExecutionShape):
    """A step of a batch's init."""

    runbook_version: int


class StepShape(ExecutionShape):
    """A step of a member."""

    batch_member_id: int
    member_key: str
    phase_execution_id: int
    phase_name: str
    epoch: int


class RollbackShape(ExecutionShape):
    """A step that undoes something, or that runs for a member that left."""

    sequence_name: str
    cause: RollbackCause
    epoch: int | None


class BatchDetailShape(BatchShape):
    """A batch with its phases and the steps of its init."""

    phases: list[PhaseShape]
    init_steps: list[InitShape]
    undo_failures: int = Field(description="Steps of rollbacks and removals that failed; `/undo-failures` lists them.")


class MemberShape(Shape):
    """A member of a batch; `***` stands for what is secret in its row and its outputs."""

    id: int
    batch_id: int
    member_key: str
    status: MemberStatus
    state: MemberState
    last_completed_phase: str | None
    epoch: int
    is_pilot: bool = Field(description="Whether it goes first in phases with `pilot_first`.")
    added_at: datetime
    left_source_at: datetime | None
    removed_at: datetime | None
    removed_by: str | None
    remove_reason: str | None
    failed_at: datetime | None
    undone_at: datetime | None
    data: dict[str, Any]
    outputs: dict[str, Any]


class MemberHistoryShape(MemberShape):
    """A member with everything that was done for it, in all its epochs."""

    steps: list[StepShape]
    rollbacks: list[RollbackShape]


class EnrolmentShape(Shape):
    """A batch that a person is or was in."""

    id: int
    batch_id: int
    member_key: str
    status: MemberStatus
    state: MemberState
    failed_at: datetime | None
    remove_reason: str | None
    undone_at: datetime | None
    runbook_name: str
    batch_status: BatchStatus
    batch_start_time: datetime | None
    is_manual: bool
    batch_completed_at: datetime | None


class PlaceHistoryShape(MemberHistoryShape):
    """All that was done for a person in one batch, with the state of that batch."""

    runbook_name: str
    batch_status: BatchStatus
    batch_start_time: datetime | None


class NewDueShape(Shape):
    """When a phase that has not begun would be due."""

    phase_name: str
    due_at: datetime


class HoldShape(Shape):
    """What a batch waits for a person to approve: these members would leave, or it would start then."""

    batch_id: int
    runbook_name: str
    hold_key: str
    kind: HoldKind
    reason: str
    held_at: datetime
    is_approved: bool
    approved_by: str | None
    member_count: int
    members: list[str] = Field(description="The first 100; `/hold/members` lists them all.")
    new_start: datetime | None
    new_dues: list[NewDueShape] = Field(description="When phases that have not begun would be due with the new start.")
    delays: list[DelayShape] = Field(
        description="Which of these freezes and windows would keep until they are late, or for ever."
    )
    voided_approvals: list[str] = Field(description="Whose sign-offs would not count with the new start.")
    waits_for: str | None = Field(description="What an approval waits for, if it waits.")
    sign_offs: str | None = Field(description="How many have signed it off, if the runbook wants more.")


class ApprovedShape(BatchDetailShape):
    """A batch whose hold was approved, or signed off by one of several people."""

    waits_for: str | None = Field(description="What the approval waits for, if it waits.")
    sign_offs: str | None = Field(description="How many have signed it off, if the runbook wants more.")


class HeldMemberShape(Shape):
    """A member that a hold is about."""

    id: int
    member_key: str


def batch_shape(view: BatchView) -> BatchShape:
    """Describe a batch."""
    return BatchShape(**_batch(view))


def detail_shape(detail: BatchDetail) -> BatchDetailShape:
    """Describe a batch with its phases and its init."""
    inits = [InitShape(**_work(init), runbook_version=init.runbook_version) for init in detail.inits]
    return BatchDetailShape(
        **_batch(detail.view),
        phases=[phase_shape(view) for view in detail.phases],
        init_steps=inits,
        undo_failures=detail.undo_failures,
    )


def phase_shape(view: PhaseView) -> PhaseShape:
    """Describe a phase."""
    names = [name for name in PhaseShape.model_fields if name not in ("steps", "rollout")]
    plain = {name: getattr(view.phase, name) for name in names}
    return PhaseShape(**plain, steps=dict(view.steps), rollout=view.rollout and _rollout(view.rollout))


def _rollout(view: RolloutView) -> RolloutShape:
    pilots = view.pilots
    return RolloutShape(
        members=view.members,
        pilots=pilots.pilots if pilots else 0,
        pilots_open=pilots.open if pilots else 0,
        pilots_failed=pilots.failed if pilots else 0,
        pilots_through=pilots.through if pilots else 0,
        pilots_done_at=view.pilots_done_at,
        places_taken=view.places_taken,
    )


def member_shape(member: MemberView, secret_columns: frozenset[str]) -> MemberShape:
    """Describe a member, with its secrets masked."""
    return MemberShape(**_member(member, secret_columns))


def enrolment_shape(enrolment: Enrolment, state: MemberState) -> EnrolmentShape:
    """Describe a batch that a person is or was in."""
    columns = [name for name in EnrolmentShape.model_fields if name != "state"]
    return EnrolmentShape(**{name: getattr(enrolment, name) for name in columns}, state=state)


def step_shape(step: StepRow, key: str, phase: str) -> StepShape:
    """Describe a step of a member."""
    where = {name: getattr(step, name) for name in ("batch_member_id", "phase_execution_id", "epoch")}
    return StepShape(**_work(step), **where, member_key=key, phase_name=phase)


def history_shape(history: MemberHistory) -> MemberHistoryShape:
    """Describe a member and all that was done for it."""
    return MemberHistoryShape(**_history(history))


def place_history_shape(place: PlaceHistory) -> PlaceHistoryShape:
    """Describe what was done for a person in one batch."""
    where = {name: getattr(place.enrolment, name) for name in ("runbook_name", "batch_status", "batch_start_time")}
    return PlaceHistoryShape(**_history(place.history), **where)


def _history(history: MemberHistory) -> dict[str, Any]:
    key = history.member.row.member_key
    steps = [step_shape(step, key, history.phases.get(step.phase_execution_id, "")) for step in history.steps]
    undone = [
        RollbackShape(**_work(row), sequence_name=row.sequence_name, cause=row.cause, epoch=row.epoch)
        for row in history.rollbacks
    ]
    member = _member(history.member, history.secret_columns)
    return {**member, "steps": steps, "rollbacks": undone}


def hold_shape(hold: HoldView, sign_offs: str | None = None) -> HoldShape:
    """Describe exactly what a batch is held for."""
    batch = hold.batch
    return HoldShape.model_validate(
        {
            "batch_id": batch.id,
            "runbook_name": batch.runbook_name,
            "hold_key": batch.hold_key,
            "kind": hold.kind,
            "reason": batch.hold_reason,
            "held_at": batch.held_at,
            "is_approved": batch.approved_hold_key == batch.hold_key,
            "approved_by": batch.approved_hold_by,
            "member_count": hold.count,
            "members": list(hold.members),
            "new_start": hold.new_start,
            "new_dues": [{"phase_name": name, "due_at": due} for name, due in hold.new_dues],
            "delays": delay_shapes(hold.delays),
            "voided_approvals": list(hold.voided),
            "waits_for": hold.waits_for,
            "sign_offs": sign_offs,
        }
    )


def _batch(view: BatchView) -> dict[str, Any]:
    counted = ("member_count", "members", "member_states")
    plain = {name: getattr(view.batch, name) for name in BatchShape.model_fields if name not in counted}
    members, states = dict(view.members), dict(view.states)
    return {**plain, "members": members, "member_count": sum(members.values()), "member_states": states}


def _member(member: MemberView, secret: frozenset[str]) -> dict[str, Any]:
    row, derived = member.row, {"state": member.state, "last_completed_phase": member.last_completed_phase}
    columns = MemberShape.model_fields.keys() - derived.keys() - {"data", "outputs"}
    plain = {name: getattr(row, name) for name in columns} | {"is_pilot": bool(row.is_pilot)}
    data, outputs = parsed(row.data_json), parsed(row.worker_data_json)
    shown = {"data": row_without_secrets(data, secret), "outputs": row_without_secrets(outputs, secret)}
    return {**plain, **derived, **shown}


def _work(row: ExecutionRow) -> dict[str, Any]:
    plain = {name: getattr(row, name) for name in ExecutionShape.model_fields if name != "result"}
    return {**plain, "result": parsed(row.result_json)}
