"""What people do to batches, and what keeps the system going, as it is asked for and answered."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from matoolkit.api.shapes.naming import Reason, RowId, Shape, WithReason, parsed
from matoolkit.domain.retrying import DataChoice, LeftOutBecause, VersionChoice
from matoolkit.domain.states import BatchStatus, DeadLetterStatus, RollbackCause, StepStatus
from matoolkit.store.audit import AuditEntry
from matoolkit.store.deadletters import DeadLetterRow


class CreatedBatch(Shape):
    """A manual batch that was made; `skipped` are in another batch under way."""

    batch_id: int
    status: BatchStatus
    member_count: int
    skipped_count: int
    skipped: list[str]
    available_phases: list[str]
    warnings: list[str]


class AddedMembers(Shape):
    """Who joined a manual batch; `skipped` are in a batch under way already."""

    batch_id: int
    added_count: int
    skipped_count: int
    skipped: list[str]
    warnings: list[str]


class RemovedMember(Shape):
    """Who left a manual batch."""

    batch_id: int
    member_id: int
    member_key: str


class AdvanceShape(Shape):
    """What a manual batch was advanced to, and what comes after."""

    batch_id: int
    action: Literal["init_dispatched", "phase_dispatched", "all_phases_complete"]
    phase_name: str | None
    member_count: int
    step_count: int
    next_phase: str | None


class CancellationShape(Shape):
    """What was stopped; a job in flight cannot be recalled."""

    batch_id: int
    phases: int
    steps: int
    jobs_in_flight: int
    compensations_finishing: int


class ApproveRequest(WithReason):
    """Which hold is approved: exactly what was shown under this key."""

    hold_key: Annotated[str, Field(min_length=1, max_length=200)]


class LateRequest(WithReason):
    """Selects late batches: those whose T lies before a time, of one runbook or of all."""

    before: AwareDatetime
    runbook_name: Annotated[str | None, Field(max_length=200)] = None
    dry_run: bool = False


class LateRefusal(Shape):
    """A late batch about which it was not decided, and why."""

    batch_id: int
    code: str
    detail: str


class LateShape(Shape):
    """Late batches that were approved or cancelled together, or would be."""

    batch_ids: list[int]
    member_count: int
    signed_ids: list[int] = Field(description="Batches that were signed off and still miss sign-offs.")
    refused: list[LateRefusal]
    is_dry_run: bool


class IncludeRequest(WithReason):
    """A member to include in the batch of its time."""

    member_key: Annotated[str, Field(min_length=1, max_length=500)]


class IncludedShape(Shape):
    """A member that the next tick includes, if its row stays as it was read.

    Somebody who `wasExcluded` is so no longer: the next tick treats its row like any other, if there is one.
    """

    runbook_name: str
    member_key: str
    batch_time: datetime | None
    batch_id: int | None
    was_excluded: bool
    waits_for: str | None = Field(description="What the next tick waits for, if it cannot do it.")


class RetrySelection(Shape):
    """Selects failed members: all, by number, or by how they failed; and says how to retry them."""

    member_ids: Annotated[list[RowId] | None, Field(max_length=100_000)] = None
    phase_name: str | None = None
    step_name: str | None = None
    error: Annotated[str | None, Field(description="The beginning of an error, up to 200 characters.")] = None
    fingerprint: Annotated[str | None, Field(description="`fingerprint` of a group of failures.")] = None
    version: Annotated[
        VersionChoice | None,
        Field(
            description="`current`: the version that the batch follows, even if a newer one waits. "
            "`active`: the active one, in a batch that has ended, was reopened or is manual."
        ),
    ] = None
    begin_with: Annotated[
        str | None, Field(description="Phase with which they begin again, unless an earlier one is not done yet.")
    ] = None
    data: Annotated[
        DataChoice | None,
        Field(
            description="The row that members take: of the `last_reading`, `refreshed` from the source, or `kept`. "
            "Members of a manual batch keep theirs, or take those of `rows` (`file`)."
        ),
    ] = None
    rows: Annotated[
        str | None, Field(max_length=2 * 1024 * 1024, description="CSV with the rows of members of a manual batch.")
    ] = None
    keep_done: Annotated[
        bool, Field(description="Whether finished steps that used a changed column stay finished.")
    ] = False


class RetryRequest(RetrySelection):
    """Failed members to be tried again, and why."""

    reason: Reason = None


class BeginningShape(Shape):
    """Members that begin again with the same phase; without one there is nothing left for them to do."""

    phase_name: str | None
    members: list[str]


class LeftOutShape(Shape):
    """Members that are not retried for the same reason."""

    because: LeftOutBecause
    members: list[str]


class ChangedColumnShape(Shape):
    """A column, and the members for whom it changes."""

    name: str
    members: list[str]


class DoneBeforeShape(Shape):
    """A finished step that used old values of these columns and does not run again."""

    phase_name: str
    step_name: str
    columns: list[str]
    members: list[str]


class RetryShape(Shape):
    """Which version runs, which members go on, which begin again and where, and which are left out and why.

    Members take their row as it was at `readAt`: these columns change, and these steps were done with the old values.
    """

    batch_id: int
    version: int
    active_version: int | None
    going_on: list[str]
    beginning_again: list[str]
    beginnings: list[BeginningShape]
    left_out: list[str]
    left_out_because: list[LeftOutShape]
    data: DataChoice
    read_at: datetime | None
    changed_columns: list[ChangedColumnShape]
    done_before: list[DoneBeforeShape]


class InitRetryShape(Shape):
    """The version whose init runs again."""

    batch_id: int
    version: int


class FailureShape(Shape):
    """Steps that failed in the same way."""

    phase_name: str
    step_name: str
    error_type: str | None
    error: str = Field(description="The error of one of them, up to 200 characters.")
    fingerprint: str = Field(description="What their errors have in common, to choose them by.")
    steps: int
    members: int
    example_step_id: int


class UndoFailureShape(Shape):
    """A step that was to undo something and failed; the member is null for an init."""

    id: int
    batch_id: int
    runbook_name: str
    batch_member_id: int | None
    member_key: str | None
    cause: RollbackCause
    sequence_name: str
    step_name: str
    status: StepStatus
    attempt: int
    error_type: str | None
    error_message: str | None
    completed_at: datetime | None


class UndoRetryRequest(WithReason):
    """Selects failed undo steps of a batch: all, or by number."""

    step_ids: Annotated[list[RowId] | None, Field(max_length=100_000)] = None
    dry_run: bool = False


class StepsLeftOutShape(Shape):
    """Failed undo steps that are not retried, and why."""

    because: str
    step_ids: list[int]


class UndoRetryShape(Shape):
    """Failed undo steps that are retried, or would be."""

    batch_id: int
    step_ids: list[int]
    left_out: list[StepsLeftOutShape]


class DeadLetterShape(Shape):
    """A message that could not be handled."""

    id: int
    topic: str
    subscription: str
    message_id: str
    message_type: str
    reason: str
    description: str | None
    delivery_count: int
    enqueued_at: datetime
    dead_lettered_at: datetime
    status: DeadLetterStatus
    resolved_at: datetime | None
    resolved_by: str | None
    resent_message_id: str | None


class DeadLetterContent(DeadLetterShape):
    """A dead letter with its content."""

    body: str
    properties: Any


class ResentShape(Shape):
    """What was done with a dead letter: the id under which it was sent again, or the work that is retried."""

    letter_id: int
    message_id: str | None
    retried: str | None


class AuditShape(Shape):
    """A change that a person made."""

    id: int
    at: datetime
    actor: str
    action: str
    subject_type: str
    subject_id: str
    runbook_name: str | None
    batch_id: int | None
    before: Any
    after: Any
    reason: str | None


class ParameterShape(Shape):
    """A parameter of a function."""

    name: str
    is_mandatory: bool
    is_secret: bool
    kind: str


class FunctionShape(Shape):
    """A function that runbooks can call, and the workers that announced it; none for one that is only built in."""

    name: str
    parameters: list[ParameterShape]
    workers: list[str]


class Health(Shape):
    """Whether the process is there, and whether it can work."""

    status: Literal["ok"]


def letter_content(row: DeadLetterRow) -> DeadLetterContent:
    """Describe a dead letter with its content."""
    head = DeadLetterShape.model_validate(row).model_dump()
    return DeadLetterContent(**head, body=row.body, properties=parsed(row.properties_json))


def audit_shape(entry: AuditEntry) -> AuditShape:
    """Describe a change."""
    plain = {name: getattr(entry, name) for name in AuditShape.model_fields if name not in ("before", "after")}
    return AuditShape(**plain, before=parsed(entry.before_json), after=parsed(entry.after_json))
