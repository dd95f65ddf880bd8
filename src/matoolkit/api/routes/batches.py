"""Batches: finding them, making them from CSV, and moving them."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Query, Response, UploadFile

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.csvfiles import read_csv
from matoolkit.admin.manual import ManualChange, ManualUpload
from matoolkit.admin.queries import batch_views, existing_batch, latest_runbook, phase_views
from matoolkit.admin.uploads import Upload
from matoolkit.api.changing import Changing, Creating
from matoolkit.api.conditions import TAGGED, IfNoneMatch, shown
from matoolkit.api.paging import Count, Page, PageQuery, page, position, whole
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.batches import BatchDetailShape, BatchShape, PhaseShape, batch_shape, phase_shape
from matoolkit.api.shapes.naming import Reason, RowId, WithReason
from matoolkit.api.shapes.operations import AdvanceShape, CancellationShape, CreatedBatch
from matoolkit.api.subjects import batch_shown, batch_subject
from matoolkit.domain.states import BatchStatus
from matoolkit.errors import Flaw, InvalidRequest
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store
from matoolkit.store.batches import BatchFilter, batches_page, count_batches

router = APIRouter(prefix="/api/batches", tags=["batches"])


class BatchQuery(PageQuery):
    """Which batches are wanted."""

    runbook: str | None = None
    runbook_id: RowId | None = None
    status: BatchStatus | None = None
    manual: bool | None = None
    held: bool | None = None


@router.get("")
def list_batches(serving: Serving, _: Reader, wanted: Annotated[BatchQuery, Query()]) -> Page[BatchShape]:
    """List batches, newest first."""
    before = position(wanted.cursor, "batches")
    with serving.store.reading() as tx:
        name = latest_runbook(tx, wanted.runbook).name if wanted.runbook else None
        asked = BatchFilter(name, wanted.runbook_id, wanted.status, wanted.manual, wanted.held)
        views = batch_views(tx, batches_page(tx, asked, before=before, limit=wanted.limit + 1))
        count = Count(count_batches(tx, asked), count_batches(tx))
    return page(views, wanted.limit, "batches", lambda view: view.batch.id, batch_shape, count)


@router.post("", status_code=201, response_model=CreatedBatch)
def create_batch(
    change: Creating,
    file: Annotated[UploadFile, File(description="CSV, UTF-8, at most 50 MiB.")],
    runbook_name: Annotated[str | None, Form(alias="runbookName", max_length=200)] = None,
    runbook_name_too: Annotated[str | None, Form(alias="runbook_name", max_length=200)] = None,
    reason: Annotated[Reason, Form()] = None,
) -> Response:
    """Make a manual batch from the rows of a file; nothing runs before it is advanced."""
    name = runbook_name or runbook_name_too
    if not name:
        raise InvalidRequest([Flaw("/body/runbookName", "is missing")])
    with change.services.store.reading() as tx:
        model = parse_runbook(latest_runbook(tx, name).yaml_content)

    given = read_csv(file.file, model.data_source)
    rows = Upload(given, model.data_source.primary_key)
    filling = ManualUpload(change.services.publisher, rows, by=change.by, reason=reason, runbook_name=name)

    def shape(made: ManualChange) -> CreatedBatch:
        return CreatedBatch(
            batch_id=made.batch.id,
            status=made.batch.status,
            member_count=made.members,
            skipped_count=made.left_out_count,
            skipped=list(made.left_out),
            available_phases=[phase.name for phase in model.phases],
            warnings=list(given.warnings),
        )

    return change.made_in_parts(
        ("create", name, reason),
        filling.parts(shape),
        file=file.file,
        resume=lambda said: filling.resume(said.get("batchId")),
        status=lambda _: 201,
    )


@router.get("/{batch_id}", response_model=BatchDetailShape, responses=TAGGED)
def get_batch(batch_id: RowId, serving: Serving, _: Reader, known: IfNoneMatch = None) -> Response:
    """Return a batch with its phases, the steps of its init, and counts by status."""
    return shown(batch_shown(serving.store, batch_id), known)


@router.get("/{batch_id}/phases")
def list_phases(batch_id: RowId, serving: Serving, _: Reader) -> Page[PhaseShape]:
    """List the phases of a batch, superseded ones included, with the counts of their steps."""
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
        return whole([phase_shape(view) for view in phase_views(tx, batch_id)])


@router.post("/{batch_id}/advance", response_model=AdvanceShape)
def advance(batch_id: RowId, change: Changing, asked: WithReason | None = None) -> Response:
    """Let a manual batch go on: its init first, then phase by phase."""
    reason = asked.reason if asked else None

    def go_on(store: Store) -> AdvanceShape:
        done = advance_batch(store, change.services.publisher, batch_id, by=change.by, reason=reason)
        return AdvanceShape(
            batch_id=batch_id,
            action=done.action,
            phase_name=done.phase_name,
            member_count=done.members,
            step_count=done.steps,
            next_phase=done.next_phase,
        )

    return change.made(("advance", batch_id, reason), go_on, of=batch_subject(batch_id))


@router.post("/{batch_id}/cancel", response_model=CancellationShape)
def cancel(batch_id: RowId, change: Changing, asked: WithReason | None = None) -> Response:
    """Cancel a batch: nothing more is dispatched, and compensations that have begun finish."""
    reason = asked.reason if asked else None

    def stop(store: Store) -> CancellationShape:
        done = cancel_batch(store, change.services.publisher, batch_id, by=change.by, reason=reason)
        return CancellationShape.model_validate(done)

    return change.made(("cancel", batch_id, reason), stop, of=batch_subject(batch_id))
