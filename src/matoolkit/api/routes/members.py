"""Members of batches and their steps: lists, changes of manual batches, histories, exports."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Response, UploadFile
from fastapi.responses import StreamingResponse

from matoolkit.admin.csvfiles import csv_lines, read_csv
from matoolkit.admin.manual import add_to_manual_batch, remove_from_manual_batch
from matoolkit.admin.queries import existing_batch, member_history, member_keys
from matoolkit.api.idempotency import IdempotencyKey, fingerprint, once
from matoolkit.api.paging import MOST_AT_ONCE, Page, PageQuery, page, position
from matoolkit.api.routes.batches import MOST_SKIPPED_SHOWN
from matoolkit.api.services import Admin, Reader, Services, Serving
from matoolkit.api.shapes.batches import (
    EnrolmentShape,
    MemberHistoryShape,
    MemberShape,
    StepShape,
    history_shape,
    member_shape,
    step_shape,
)
from matoolkit.api.shapes.naming import Reason, RowId
from matoolkit.api.shapes.operations import AddedMembers, RemovedMember
from matoolkit.domain.states import MemberStatus, StepStatus
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.membership import enrolments_of_key, members_page
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.runbooks import runbooks_by_id
from matoolkit.store.steps import steps_page

router = APIRouter(prefix="/api", tags=["members"])

_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
_MEMBER_COLUMNS = ("id", "member_key", "status", "epoch", "added_at", "removed_at", "remove_reason", "failed_at")
_STEP_COLUMNS = (
    *("id", "member_key", "phase_name", "step_name", "status", "attempt", "function_name", "worker_id"),
    *("error_type", "error_message", "dispatched_at", "completed_at"),
)


class MemberQuery(PageQuery):
    """Which members are wanted."""

    status: MemberStatus | None = None


class StepQuery(PageQuery):
    """Which steps are wanted."""

    status: StepStatus | None = None
    phase: str | None = None


@router.get("/batches/{batch_id}/members")
def list_members(
    batch_id: RowId, serving: Serving, _: Reader, wanted: Annotated[MemberQuery, Query()]
) -> Page[MemberShape]:
    """List the members of a batch."""
    after = position(wanted.cursor, "members") or 0
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
        rows = members_page(tx, batch_id, status=wanted.status, after=after, limit=wanted.limit + 1)
    return page(rows, wanted.limit, "members", lambda row: row.id, member_shape)


@router.get("/batches/{batch_id}/members.csv", response_class=Response, responses=_CSV)
def export_members(batch_id: RowId, serving: Serving, _: Reader) -> StreamingResponse:
    """Return all members of a batch as CSV, with cells that no spreadsheet executes."""
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
    return _csv(f"batch-{batch_id}-members.csv", _MEMBER_COLUMNS, _all_members(serving, batch_id))


@router.post("/batches/{batch_id}/members", response_model=AddedMembers)
def add_members(
    batch_id: RowId,
    serving: Serving,
    admin: Admin,
    file: Annotated[UploadFile, File(description="CSV, UTF-8, at most 50 MiB.")],
    reason: Annotated[Reason, Form()] = None,
    key: IdempotencyKey = None,
) -> Response:
    """Let the rows of a file join a manual batch; those that are in it already are skipped and counted."""
    with serving.store.reading() as tx:
        (version,) = runbooks_by_id(tx, [existing_batch(tx, batch_id).runbook_id])
    request = fingerprint("add", batch_id, reason, file=file.file)
    given = read_csv(file.file, parse_runbook(version.yaml_content).data_source)

    def add(store: Store) -> AddedMembers:
        done = add_to_manual_batch(store, serving.publisher, batch_id, given.rows, by=admin, reason=reason)
        return AddedMembers(
            batch_id=batch_id,
            added_count=len(done.members),
            skipped_count=len(done.left_out),
            skipped=list(done.left_out[:MOST_SKIPPED_SHOWN]),
            warnings=list(given.warnings),
        )

    return once(serving, admin, key, request, 200, add)


@router.get("/batches/{batch_id}/members/{member_id}")
def get_member(batch_id: RowId, member_id: RowId, serving: Serving, _: Reader) -> MemberHistoryShape:
    """Return a member with everything that was done for it, in all its epochs."""
    return history_shape(member_history(serving.store, batch_id, member_id))


@router.delete("/batches/{batch_id}/members/{member_id}")
def remove_member(
    batch_id: RowId, member_id: RowId, serving: Serving, admin: Admin, reason: Annotated[Reason, Query()] = None
) -> RemovedMember:
    """Take an active member out of a manual batch; what is to run for leavers runs."""
    key = member_history(serving.store, batch_id, member_id).member.member_key
    remove_from_manual_batch(serving.store, serving.publisher, batch_id, [key], by=admin, reason=reason)
    return RemovedMember(batch_id=batch_id, member_id=member_id, member_key=key)


@router.get("/batches/{batch_id}/steps")
def list_steps(batch_id: RowId, serving: Serving, _: Reader, wanted: Annotated[StepQuery, Query()]) -> Page[StepShape]:
    """List the steps of the members of a batch."""
    after = position(wanted.cursor, "steps") or 0
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
        steps = _steps(tx, batch_id, wanted, after, wanted.limit + 1)
    return page(steps, wanted.limit, "steps", lambda step: step.id, lambda step: step)


@router.get("/batches/{batch_id}/steps.csv", response_class=Response, responses=_CSV)
def export_steps(batch_id: RowId, serving: Serving, _: Reader) -> StreamingResponse:
    """Return all steps of the members of a batch as CSV, with cells that no spreadsheet executes."""
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
    return _csv(f"batch-{batch_id}-steps.csv", _STEP_COLUMNS, _all_steps(serving, batch_id))


@router.get("/members")
def find_member(
    serving: Serving, _: Reader, key: Annotated[str, Query(min_length=1, max_length=500)]
) -> Page[EnrolmentShape]:
    """Find every batch that somebody is or was in, newest first, at most 100; the case of the key does not matter."""
    with serving.store.reading() as tx:
        rows = enrolments_of_key(tx, key.strip())
    return Page(items=[EnrolmentShape.model_validate(row) for row in rows])


def _steps(tx: Transaction, batch_id: int, wanted: StepQuery, after: int, limit: int) -> list[StepShape]:
    phases = {phase.id: phase.phase_name for phase in phases_of_batches(tx, [batch_id])}
    # Of a name that several versions have, the latest is meant.
    found = max((number for number, name in phases.items() if name == wanted.phase), default=0)
    only = found if wanted.phase is not None else None
    rows = steps_page(tx, batch_id, status=wanted.status, phase_id=only, after=after, limit=limit)
    keys = member_keys(tx, {row.batch_member_id for row in rows})
    return [step_shape(row, keys.get(row.batch_member_id, ""), phases.get(row.phase_execution_id, "")) for row in rows]


def _all_members(serving: Services, batch_id: int) -> Iterator[list[Any]]:
    after = 0
    while True:
        with serving.store.reading() as tx:
            rows = members_page(tx, batch_id, after=after, limit=MOST_AT_ONCE)
        if not rows:
            return
        yield from ([getattr(row, name) for name in _MEMBER_COLUMNS] for row in rows)
        after = rows[-1].id


def _all_steps(serving: Services, batch_id: int) -> Iterator[list[Any]]:
    after = 0
    while True:
        with serving.store.reading() as tx:
            steps = _steps(tx, batch_id, StepQuery(), after, MOST_AT_ONCE)
        if not steps:
            return
        yield from ([getattr(step, name) for name in _STEP_COLUMNS] for step in steps)
        after = steps[-1].id


def _csv(name: str, columns: tuple[str, ...], rows: Iterator[list[Any]]) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(csv_lines(columns, rows), media_type="text/csv; charset=utf-8", headers=headers)
