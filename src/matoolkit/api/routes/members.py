"""Members of batches and their steps: lists, changes of manual batches, histories, exports."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Response, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import Field

from matoolkit.admin.csvfiles import csv_lines, read_csv
from matoolkit.admin.exporting import MEMBER_COLUMNS, member_rows
from matoolkit.admin.manual import ManualChange, ManualUpload, remove_from_manual_batch
from matoolkit.admin.queries import existing_batch, member_history, member_keys, member_views
from matoolkit.admin.secrecy import secret_columns
from matoolkit.admin.uploads import Upload
from matoolkit.api.changing import Changing
from matoolkit.api.conditions import TAGGED, IfNoneMatch, shown
from matoolkit.api.paging import MOST_AT_ONCE, Count, Page, PageQuery, page, position
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.batches import (
    MemberHistoryShape,
    MemberShape,
    StepShape,
    member_shape,
    step_shape,
)
from matoolkit.api.shapes.naming import Reason, RowId
from matoolkit.api.shapes.operations import AddedMembers, RemovedMember
from matoolkit.api.subjects import batch_subject, member_shown, member_subject
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.domain.states import MemberState, MemberStatus, StepStatus
from matoolkit.doors.services import Services
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.counts import member_counts, step_counts
from matoolkit.store.enrolments import count_members, members_page
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import runbooks_by_id
from matoolkit.store.statecounts import state_counts
from matoolkit.store.steps import steps_in_state_page, steps_page

router = APIRouter(prefix="/api", tags=["members"])

_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
_STEP_COLUMNS = (
    *("id", "member_key", "phase_name", "step_name", "status", "attempt", "function_name", "worker_id"),
    *("error_type", "error_message", "dispatched_at", "completed_at"),
)


class MemberQuery(PageQuery):
    """Which members are wanted."""

    status: MemberStatus | None = None
    state: MemberState | None = None
    key_contains: Annotated[
        str | None,
        Field(min_length=1, max_length=MAX_KEY_LENGTH, description="Part of the key; its case does not matter."),
    ] = None


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
        secret = secret_columns(tx, existing_batch(tx, batch_id).runbook_name)
        rows = members_page(
            tx,
            batch_id,
            status=wanted.status,
            state=wanted.state,
            key_part=wanted.key_contains,
            after=after,
            limit=wanted.limit + 1,
        )
        members, count = member_views(tx, rows), _member_count(tx, batch_id, wanted)
    return page(members, wanted.limit, "members", lambda one: one.row.id, lambda one: member_shape(one, secret), count)


@router.get("/batches/{batch_id}/members.csv", response_class=Response, responses=_CSV)
def export_members(batch_id: RowId, serving: Serving, _: Reader) -> StreamingResponse:
    """Return all members of a batch as CSV, with cells that no spreadsheet executes."""
    return _csv(f"batch-{batch_id}-members.csv", MEMBER_COLUMNS, member_rows(serving.store, batch_id))


@router.post("/batches/{batch_id}/members", response_model=AddedMembers)
def add_members(
    batch_id: RowId,
    change: Changing,
    file: Annotated[UploadFile, File(description="CSV, UTF-8, at most 50 MiB.")],
    reason: Annotated[Reason, Form()] = None,
) -> Response:
    """Add the rows of a file to a manual batch; members that are already in it are skipped and counted."""
    with change.services.store.reading() as tx:
        (version,) = runbooks_by_id(tx, [existing_batch(tx, batch_id).runbook_id])

    source = parse_runbook(version.yaml_content).data_source
    given = read_csv(file.file, source)
    rows = Upload(given, source.primary_key)
    filling = ManualUpload(change.services.publisher, rows, by=change.by, reason=reason, batch_id=batch_id)

    def shape(done: ManualChange) -> AddedMembers:
        return AddedMembers(
            batch_id=batch_id,
            added_count=done.members,
            skipped_count=done.left_out_count,
            skipped=list(done.left_out),
            warnings=list(given.warnings),
        )

    return change.made_in_parts(
        ("add", batch_id, reason),
        filling.parts(shape),
        of=batch_subject(batch_id),
        file=file.file,
    )


@router.get("/batches/{batch_id}/members/{member_id}", response_model=MemberHistoryShape, responses=TAGGED)
def get_member(batch_id: RowId, member_id: RowId, serving: Serving, _: Reader, known: IfNoneMatch = None) -> Response:
    """Return a member with everything that was done for it, in all its epochs."""
    return shown(member_shown(serving.store, batch_id, member_id), known)


@router.delete("/batches/{batch_id}/members/{member_id}", response_model=RemovedMember)
def remove_member(
    batch_id: RowId, member_id: RowId, change: Changing, reason: Annotated[Reason, Query()] = None
) -> Response:
    """Remove an active member from a manual batch; the steps of `on_member_removed` run."""

    def remove(store: Store) -> RemovedMember:
        key = member_history(store, batch_id, member_id).member.row.member_key
        remove_from_manual_batch(store, change.services.publisher, batch_id, [key], by=change.by, reason=reason)
        return RemovedMember(batch_id=batch_id, member_id=member_id, member_key=key)

    return change.made(("remove", batch_id, member_id, reason), remove, of=member_subject(batch_id, member_id))


@router.get("/batches/{batch_id}/steps")
def list_steps(batch_id: RowId, serving: Serving, _: Reader, wanted: Annotated[StepQuery, Query()]) -> Page[StepShape]:
    """List the steps of the members of a batch."""
    after = position(wanted.cursor, "steps") or 0
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
        phases = phases_of_batches(tx, [batch_id])
        only = _phase_meant(phases, wanted.phase)
        steps = _steps(tx, phases, batch_id, wanted.status, only, after, wanted.limit + 1)
        counts = step_counts(tx, [phase.id for phase in phases])
    total = sum(
        one.count for one in counts if only in (None, one.phase_execution_id) and wanted.status in (None, one.status)
    )
    count = Count(total, sum(one.count for one in counts))
    return page(steps, wanted.limit, "steps", lambda step: step.id, lambda step: step, count)


@router.get("/batches/{batch_id}/steps.csv", response_class=Response, responses=_CSV)
def export_steps(batch_id: RowId, serving: Serving, _: Reader) -> StreamingResponse:
    """Return all steps of the members of a batch as CSV, with cells that no spreadsheet executes."""
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
    return _csv(f"batch-{batch_id}-steps.csv", _STEP_COLUMNS, _all_steps(serving, batch_id))


def _member_count(tx: Transaction, batch_id: int, wanted: MemberQuery) -> Count:
    counts = member_counts(tx, [batch_id])
    everybody = sum(one.count for one in counts)
    match wanted.status, wanted.state, wanted.key_contains:
        case None, None, None:
            total = everybody
        case status, None, None:
            total = sum(one.count for one in counts if one.status is status)
        case None, state, None:
            total = sum(one.count for one in state_counts(tx, counts) if one.state is state)
        case _:
            total = count_members(tx, batch_id, status=wanted.status, state=wanted.state, key_part=wanted.key_contains)
    return Count(total, everybody)


def _phase_meant(phases: Sequence[PhaseRow], name: str | None) -> int | None:
    # If several versions have a phase of this name, the latest is meant.
    return None if name is None else max((phase.id for phase in phases if phase.phase_name == name), default=0)


def _steps(
    tx: Transaction,
    phases: Sequence[PhaseRow],
    batch_id: int,
    status: StepStatus | None,
    phase_id: int | None,
    after: int,
    limit: int,
) -> list[StepShape]:
    names = {phase.id: phase.phase_name for phase in phases}
    if status is None:
        rows = steps_page(tx, batch_id, phase_id=phase_id, after=after, limit=limit)
    else:
        meant = names if phase_id is None else [phase_id]
        rows = steps_in_state_page(tx, meant, status, after=after, limit=limit)
    keys = member_keys(tx, {row.batch_member_id for row in rows})
    return [step_shape(row, keys.get(row.batch_member_id, ""), names.get(row.phase_execution_id, "")) for row in rows]


def _all_steps(serving: Services, batch_id: int) -> Iterator[list[Any]]:
    after = 0
    while True:
        with serving.store.reading() as tx:
            phases = phases_of_batches(tx, [batch_id])
            steps = _steps(tx, phases, batch_id, None, None, after, MOST_AT_ONCE)
        if not steps:
            return
        yield from ([getattr(step, name) for name in _STEP_COLUMNS] for step in steps)
        after = steps[-1].id


def _csv(name: str, columns: tuple[str, ...], rows: Iterator[list[Any]]) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(csv_lines(columns, rows), media_type="text/csv; charset=utf-8", headers=headers)
