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


class SummaryShape(Shape):
    """What a report says in one look."""

    people: int
    states: dict[MemberState, int]
    batches: list[BatchSumShape]
    phases: list[PhaseSumShape]
    failures: list[FailedPeopleShape]


def person_shape(person: Person) -> PersonShape:
    """Describe a person."""
    row, step, (error_type, error_message) = person.row, person.step, person.error
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
    )
