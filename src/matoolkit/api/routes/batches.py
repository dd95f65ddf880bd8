"""Batches: finding them, making them from CSV, and moving them."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Query, Response, UploadFile

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.csvfiles import read_csv
from matoolkit.admin.manual import create_manual_batch
from matoolkit.admin.queries import batch_detail, batch_views, existing_batch, latest_runbook, phase_views
from matoolkit.api.idempotency import IdempotencyKey, fingerprint, once
from matoolkit.api.paging import Page, PageQuery, page, position
from matoolkit.api.services import Admin, Reader, Serving
from matoolkit.api.shapes.batches import (
    BatchDetailShape,
    BatchShape,
    PhaseShape,
    batch_shape,
    detail_shape,
    phase_shape,
)
from matoolkit.api.shapes.naming import Reason, RowId, WithReason
from matoolkit.api.shapes.operations import AdvanceShape, CancellationShape, CreatedBatch
from matoolkit.domain.states import BatchStatus
from matoolkit.errors import Flaw, InvalidRequest
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store
from matoolkit.store.batches import batches_page

router = APIRouter(prefix="/api/batches", tags=["batches"])
MOST_SKIPPED_SHOWN = 100


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
        rows = batches_page(
            tx,
            runbook_name=name,
            runbook_id=wanted.runbook_id,
            status=wanted.status,
            is_manual=wanted.manual,
            is_held=wanted.held,
            before=before,
            limit=wanted.limit + 1,
        )
        views = batch_views(tx, rows)
    return page(views, wanted.limit, "batches", lambda view: view.batch.id, batch_shape)


@router.post("", status_code=201, response_model=CreatedBatch)
def create_batch(
    serving: Serving,
    admin: Admin,
    file: Annotated[UploadFile, File(description="CSV, UTF-8, at most 50 MiB.")],
    runbook_name: Annotated[str | None, Form(alias="runbookName", max_length=200)] = None,
    runbook_name_too: Annotated[str | None, Form(alias="runbook_name", max_length=200)] = None,
    reason: Annotated[Reason, Form()] = None,
    key: IdempotencyKey = None,
) -> Response:
    """Make a manual batch of the rows of a file; nothing runs before it is advanced."""
    name = runbook_name or runbook_name_too
    if not name:
        raise InvalidRequest([Flaw("/body/runbookName", "is missing")])
    with serving.store.reading() as tx:
        model = parse_runbook(latest_runbook(tx, name).yaml_content)
    request = fingerprint("create", name, reason, file=file.file)
    given = read_csv(file.file, model.data_source)

    def create(store: Store) -> CreatedBatch:
        made = create_manual_batch(store, name, given.rows, by=admin, reason=reason)
        return CreatedBatch(
            batch_id=made.batch.id,
            status=made.batch.status,
            member_count=len(made.members),
            skipped_count=len(made.left_out),
            skipped=list(made.left_out[:MOST_SKIPPED_SHOWN]),
            available_phases=[phase.name for phase in model.phases],
            warnings=list(given.warnings),
        )

    return once(serving, admin, key, request, 201, create)


@router.get("/{batch_id}")
def get_batch(batch_id: RowId, serving: Serving, _: Reader) -> BatchDetailShape:
    """Return a batch with its phases, the steps of its init, and counts by status."""
    return detail_shape(batch_detail(serving.store, batch_id))


@router.get("/{batch_id}/phases")
def list_phases(batch_id: RowId, serving: Serving, _: Reader) -> Page[PhaseShape]:
    """List the phases of a batch, superseded ones included, with the counts of their steps."""
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
        return Page(items=[phase_shape(view) for view in phase_views(tx, batch_id)])


@router.post("/{batch_id}/advance", response_model=AdvanceShape)
def advance(
    batch_id: RowId, serving: Serving, admin: Admin, asked: WithReason | None = None, key: IdempotencyKey = None
) -> Response:
    """Let a manual batch go on: its init first, then phase by phase."""
    reason = asked.reason if asked else None

    def go_on(store: Store) -> AdvanceShape:
        done = advance_batch(store, serving.publisher, batch_id, by=admin, reason=reason)
        return AdvanceShape(
            batch_id=batch_id,
            action=done.action,
            phase_name=done.phase_name,
            member_count=done.members,
            step_count=done.steps,
            next_phase=done.next_phase,
        )

    return once(serving, admin, key, fingerprint("advance", batch_id, reason), 200, go_on)


@router.post("/{batch_id}/cancel")
def cancel(batch_id: RowId, serving: Serving, admin: Admin, asked: WithReason | None = None) -> CancellationShape:
    """Cancel a batch: nothing more is dispatched, and compensations that have begun finish."""
    reason = asked.reason if asked else None
    done = cancel_batch(serving.store, serving.publisher, batch_id, by=admin, reason=reason)
    return CancellationShape.model_validate(done)
