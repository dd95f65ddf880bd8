"""Reports: a row for each person, and their sums."""

from datetime import datetime
from typing import Any

from pydantic import Field

from matoolkit.admin.reporting import Person, Summary
from matoolkit.api.shapes.naming import Shape
from matoolkit.domain.states import BatchStatus, MemberState


class PersonShape(Shape):
    """Somebody in a batch, the state that people see, and the last step that was tried."""

    batch_id: int
    member_id: int
    member_key: str
    runbook_name: str
    batch_start_time: datetime | None
    state: MemberState
    since: datetime = Field(description="When the person came into this state.")
    phase_name: str | None
    step_name: str | None
    attempts: int
    error_type: str | None
    error_message: str | None
    undo_failures: int = Field(description="Steps that were to undo something for the person and failed.")
    undo_step_name: str | None = Field(description="The first of them.")
    undo_error_type: str | None
    undo_error_message: str | None
    columns: dict[str, Any] = Field(description="The columns that were asked for; secret ones are masked.")


class BatchSumShape(Shape):
    """A batch and its people by state."""

    id: int
    runbook_name: str
    status: BatchStatus
    batch_start_time: datetime | None
    is_manual: bool
    is_held: bool
    people: int
    states: dict[MemberState, int]


class PhaseSumShape(Shape):
    """A phase of a runbook; people who have left are not counted."""

    runbook_name: str
    phase_name: str
    offset_minutes: int
    people: int
    completed: int
    failed: int
    under_way: int


class FailedPeopleShape(Shape):
    """People who failed at the same step with the same error."""

    runbook_name: str
    phase_name: str
    step_name: str
    error_type: str | None
    error: str
    people: int = Field(validation_alias="members")
    example_key: str


class FailedUndoShape(Shape):
    """Steps that were to undo something and failed at the same step with the same error; an init has no people."""

    runbook_name: str
    sequence_name: str
    step_name: str
    error_type: str | None
    error: str
    steps: int
    people: int = Field(validation_alias="members")
    example_key: str | None


class SummaryShape(Shape):
    """What a report says in one look."""

    people: int
    states: dict[MemberState, int]
    batches: list[BatchSumShape]
    phases: list[PhaseSumShape]
    failures: list[FailedPeopleShape]
    people_not_undone: int = Field(description="People for whom a step that was to undo something failed.")
    undo_failures: list[FailedUndoShape]


def person_shape(person: Person) -> PersonShape:
    """Describe a person."""
    row, step, (error_type, error_message) = person.row, person.step, person.error
    undo = person.not_undone[0] if person.not_undone else None
    return PersonShape(
        batch_id=row.batch_id,
        member_id=row.id,
        member_key=row.member_key,
        runbook_name=row.runbook_name,
        batch_start_time=row.batch_start_time,
        state=row.state,
        since=person.since,
        phase_name=step.phase_name if step else None,
        step_name=step.step_name if step else None,
        attempts=step.attempt if step else 0,
        error_type=error_type,
        error_message=error_message,
        undo_failures=len(person.not_undone),
        undo_step_name=undo.step_name if undo else None,
        undo_error_type=undo.error_type if undo else None,
        undo_error_message=undo.error_message if undo else None,
        columns=dict(person.columns),
    )


def summary_shape(summary: Summary) -> SummaryShape:
    """Describe the sums of a report."""
    batches = [
        BatchSumShape(
            **{name: getattr(one.batch, name) for name in BatchSumShape.model_fields.keys() - {"people", "states"}},
            people=sum(one.states.values()),
            states=dict(one.states),
        )
        for one in summary.batches
    ]
    return SummaryShape(
        people=sum(summary.states.values()),
        states=dict(summary.states),
        batches=batches,
        phases=[PhaseSumShape.model_validate(one) for one in summary.phases],
        failures=[FailedPeopleShape.model_validate(one) for one in summary.failures],
        people_not_undone=summary.people_not_undone,
        undo_failures=[FailedUndoShape.model_validate(one) for one in summary.undo_failures],
    )
