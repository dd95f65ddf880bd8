"""Undoing members of batches, and keeping people out (rules U2 and U3)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from matoolkit.admin.excluding import exclude_member, preview_exclusion
from matoolkit.admin.queries import existing_batch, latest_runbook
from matoolkit.admin.undoing import preview_undo, undo_members
from matoolkit.admin.undoplan import Wanted
from matoolkit.api.changing import Changing
from matoolkit.api.paging import Count, Page, PageQuery, page, position
from matoolkit.api.services import Admin, Reader, Serving
from matoolkit.api.shapes.naming import RowId
from matoolkit.api.shapes.undoing import (
    ExcludedShape,
    ExcludeRequest,
    ExcludeSelection,
    ExclusionShape,
    UndoProgressShape,
    UndoRequest,
    UndoSelection,
    UndoShape,
)
from matoolkit.api.subjects import batch_subject
from matoolkit.store import Store
from matoolkit.store.exclusions import count_exclusions, exclusions_page
from matoolkit.store.undoing import undo_progress

router = APIRouter(prefix="/api", tags=["undo"])

Name = Annotated[str, Path(max_length=200)]


@router.post("/batches/{batch_id}/undo/preview")
def preview(batch_id: RowId, serving: Serving, _: Admin, asked: UndoSelection | None = None) -> UndoShape:
    """Say what an undo would do: which steps run for whom, for whom nothing does; nothing is changed."""
    meant = asked or UndoSelection()
    return UndoShape.model_validate(preview_undo(serving.store, batch_id, _wanted(meant), meant.version))


@router.post("/batches/{batch_id}/undo", response_model=UndoShape)
def undo(batch_id: RowId, asked: UndoRequest, change: Changing) -> Response:
    """Undo members of a batch in any status: everybody, by key, by state, or by how they failed."""

    def take_back(store: Store) -> UndoShape:
        publisher = change.services.publisher
        wanted, version = _wanted(asked), asked.version
        done = undo_members(store, publisher, batch_id, wanted, version, by=change.by, reason=asked.reason)
        return UndoShape.model_validate(done)

    return change.made(("undo", batch_id, asked.model_dump_json()), take_back, of=batch_subject(batch_id))


@router.get("/batches/{batch_id}/undo")
def get_progress(batch_id: RowId, serving: Serving, _: Reader) -> UndoProgressShape:
    """Say how far the undo of members of a batch has come."""
    with serving.store.reading() as tx:
        existing_batch(tx, batch_id)
        seen = undo_progress(tx, batch_id)
    return UndoProgressShape(batch_id=batch_id, members=seen.members, undoing=seen.undoing, steps=seen.steps)


@router.post("/runbooks/{name}/members/exclude/preview")
def preview_excluding(name: Name, asked: ExcludeSelection, serving: Serving, _: Admin) -> ExcludedShape:
    """Say what an exclusion would do; nothing is changed."""
    seen = preview_exclusion(serving.store, name, asked.member_key, undo=asked.undo, version=asked.version)
    return ExcludedShape.model_validate(seen)


@router.post("/runbooks/{name}/members/exclude", response_model=ExcludedShape)
def exclude(name: Name, asked: ExcludeRequest, change: Changing) -> Response:
    """Keep somebody out of all batches of a runbook until it is included again."""

    def keep_out(store: Store) -> ExcludedShape:
        done = exclude_member(
            store,
            change.services.publisher,
            name,
            asked.member_key,
            by=change.by,
            reason=asked.reason,
            undo=asked.undo,
            version=asked.version,
        )
        return ExcludedShape.model_validate(done)

    return change.made(("exclude", name, asked.model_dump_json()), keep_out)


@router.get("/runbooks/{name}/members/excluded")
def list_excluded(
    name: Name, serving: Serving, _: Reader, wanted: Annotated[PageQuery, Query()]
) -> Page[ExclusionShape]:
    """List the people who are excluded from a runbook, in the order in which they first were."""
    after = position(wanted.cursor, "excluded") or 0
    with serving.store.reading() as tx:
        runbook = latest_runbook(tx, name)
        rows = exclusions_page(tx, runbook.name, after=after, limit=wanted.limit + 1)
        count = count_exclusions(tx, runbook.name)
    return page(rows, wanted.limit, "excluded", lambda row: row.id, ExclusionShape.model_validate, Count(count, count))


def _wanted(asked: UndoSelection) -> Wanted:
    return Wanted(asked.member_keys, asked.state, asked.phase_name, asked.step_name, asked.error, asked.fingerprint)
