"""Runbooks and their automation, as they are asked for and answered."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from matoolkit.admin.publishing import Impact, Published
from matoolkit.admin.queries import RunbookStatus
from matoolkit.api.shapes.delays import DelayShape, delay_shapes
from matoolkit.api.shapes.naming import Shape, parsed
from matoolkit.domain.signoff import Signature
from matoolkit.domain.states import OverdueBehavior, SignOffSubject
from matoolkit.doors.problems import ProblemError
from matoolkit.errors import Finding
from matoolkit.store.automation import TickRow
from matoolkit.store.batches import BatchRow

_MOST_HELD = 20


class PublishOptions(Shape):
    """How a document is to be published."""

    name: Annotated[str | None, Field(max_length=200, description="Refused unless it is the name in the document.")] = (
        None
    )
    overdue_behavior: Annotated[
        OverdueBehavior, Field(description="What batches in flight do with phases past due.")
    ] = OverdueBehavior.RERUN
    rerun_init: Annotated[bool, Field(description="Whether batches in flight run their init again.")] = False
    force: Annotated[bool, Field(description="Make a new version even if the document has not changed.")] = False
    enable: Annotated[bool, Field(description="Switch automation on as well.")] = False
    dry_run: Annotated[bool, Field(description="Only say what would happen.")] = False


class PublishRequest(PublishOptions):
    """A document to be published, in JSON."""

    yaml_content: str


class RunbookSummary(Shape):
    """A version of a runbook."""

    id: int
    name: str
    version: int
    is_active: bool
    overdue_behavior: OverdueBehavior
    rerun_init: bool
    published_by: str
    created_at: datetime
    last_error: str | None
    last_error_at: datetime | None


class RunbookDocument(RunbookSummary):
    """A version of a runbook with its text."""

    yaml_content: str
    content_hash: str
    data_table_name: str
    data_table_schema: str | None


class VoidedShape(Shape):
    """A sign-off that does not count any more."""

    subject: SignOffSubject
    phase_id: int | None
    signed_by: str
    signed_at: datetime


class ImpactShape(Shape):
    """What a version does to a batch in flight."""

    batch_id: int
    start_time: datetime | None
    effect: str
    takes_version: bool
    repeated_phases: list[str]
    skipped_phases: list[str]
    voided_approvals: list[VoidedShape] = Field(description="Sign-offs that do not count any more.")


class PublishedShape(Shape):
    """The outcome of a publication, or of its dry run."""

    id: int | None
    name: str
    version: int
    is_active: bool
    created_at: datetime | None
    is_new: bool
    is_dry_run: bool
    automation_enabled: bool = Field(description="Whether the source is queried after this publication.")
    warnings: list[ProblemError]
    impacts: list[ImpactShape]
    delay_count: int = Field(description="How many phases freezes and windows keep until they are late, or for ever.")
    delays: list[DelayShape] = Field(description="The first 100 of them.")


class AutomationShape(Shape):
    """Whether the scheduler queries a runbook's source."""

    runbook_name: str
    automation_enabled: bool
    enabled_at: datetime | None
    enabled_by: str | None
    disabled_at: datetime | None
    disabled_by: str | None


class AutomationRequest(Shape):
    """A switch."""

    enabled: bool


class BatchGroup(Shape):
    """A batch that a query's rows would make; an immediate runbook's have no time yet."""

    batch_time: datetime | None
    member_count: int


class SetAsideShape(Shape):
    """A row that could not be used."""

    reason: str
    key: str
    detail: str


class PreviewShape(Shape):
    """What a runbook's query returns now; `***` stands for what is secret in the sample rows."""

    total_rows: int
    sample_rows: list[dict[str, Any]]
    batch_groups: list[BatchGroup]
    rows_set_aside: dict[str, int]
    set_aside_samples: list[SetAsideShape]


class TickShape(Shape):
    """What the last tick did for a runbook: what was counted is in the reference of the table `runbook_ticks`."""

    runbook_version: int
    started_at: datetime
    finished_at: datetime
    queried: bool
    rows_read: int
    rows_set_aside: int
    rows_ignored: int
    batches_created: int
    batches_rescheduled: int
    batches_held: int
    members_added: int
    members_removed: int
    members_moved: int
    members_returned: int
    members_refreshed: int
    phases_dispatched: int
    set_aside: Any
    remarks: Any


class HeldBatchShape(Shape):
    """A batch that waits for a person's approval."""

    batch_id: int
    batch_start_time: datetime | None
    held_at: datetime
    reason: str


class StatusShape(Shape):
    """How a runbook is doing."""

    runbook_name: str
    version: int
    is_active: bool
    automation_enabled: bool
    last_tick: TickShape | None
    last_error: str | None
    last_error_at: datetime | None
    batches: dict[str, int] = Field(description="All batches of the runbook, by status.")
    held_count: int = Field(description="Batches that wait for a person's approval now.")
    held: list[HeldBatchShape] = Field(description="The first 20 of them.")
    excluded_count: int = Field(description="How many people are excluded.")


def published_shape(published: Published) -> PublishedShape:
    """Describe a publication."""
    row = published.row
    return PublishedShape(
        id=row.id if row else None,
        name=published.name,
        version=published.version,
        is_active=row.is_active if row else False,
        created_at=row.created_at if row else None,
        is_new=published.is_new,
        is_dry_run=published.is_dry_run,
        automation_enabled=published.is_automated,
        warnings=[_warning(found) for found in published.warnings],
        impacts=[_impact(impact) for impact in published.impacts],
        delay_count=len(published.delays),
        delays=delay_shapes(published.delays),
    )


def status_shape(status: RunbookStatus) -> StatusShape:
    """Describe how a runbook is doing."""
    runbook = status.runbook
    return StatusShape(
        runbook_name=runbook.name,
        version=runbook.version,
        is_active=runbook.is_active,
        automation_enabled=status.automation.automation_enabled,
        last_tick=_tick(status.tick) if status.tick else None,
        last_error=runbook.last_error,
        last_error_at=runbook.last_error_at,
        batches={count.status: count.count for count in status.batches},
        held_count=len(status.held),
        held=[_held(batch) for batch in status.held[:_MOST_HELD]],
        excluded_count=status.excluded,
    )


def _held(batch: BatchRow) -> HeldBatchShape:
    return HeldBatchShape.model_validate(
        {
            "batch_id": batch.id,
            "batch_start_time": batch.batch_start_time,
            "held_at": batch.held_at,
            "reason": batch.hold_reason or "",
        }
    )


def _impact(impact: Impact) -> ImpactShape:
    change = impact.transition
    return ImpactShape(
        batch_id=impact.batch_id,
        start_time=impact.start_time,
        effect=change.in_words(),
        takes_version=change.stays is None,
        repeated_phases=[phase.name for phase in change.repeated],
        skipped_phases=[phase.name for phase in change.skipped],
        voided_approvals=[_voided(one) for one in impact.voided],
    )


def _voided(one: Signature) -> VoidedShape:
    return VoidedShape(
        subject=one.subject, phase_id=one.phase_execution_id, signed_by=one.signed_by, signed_at=one.signed_at
    )


def _warning(found: Finding) -> ProblemError:
    return ProblemError(message=found.message, line=found.line, column=found.column, code=found.code, hint=found.hint)


def _tick(tick: TickRow) -> TickShape:
    plain = {name: getattr(tick, name) for name in TickShape.model_fields if name not in ("set_aside", "remarks")}
    return TickShape(**plain, set_aside=parsed(tick.set_aside_json), remarks=parsed(tick.remarks_json))
