"""Steps that were to undo something and failed: by cause, one by one, and tried again by the group (rule O9)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.queries import existing_batch
from matoolkit.store.undofailures import UndoFailure, count_undo_failures, undo_causes, undo_failures_page
from matoolkit.web.files import csv_file
from matoolkit.web.forms import Number
from matoolkit.web.pages.batch import number_of
from matoolkit.web.rendering import Frame, address, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking

router = APIRouter()

PATH = "/undo-failures"
_ALL = "all"
_AT_ONCE = 50
_MOST_CAUSES = 50
_IN_A_FILE_AT_ONCE = 500
_PARTS = {"causes": "undofailures/causes.html", "list": "undofailures/list.html"}


def topic_of(site: Site, key: str) -> Topic:
    """Return the failed undo steps of all batches, or of one, as something to watch."""
    batch_id = None if key == _ALL else number_of(key)
    look = ("undo-failures", batch_id)
    return Topic(
        f"undo-failures/{batch_id or _ALL}",
        _PARTS,
        lambda: site.looks.taken(look, lambda: _slice(site, batch_id, None)),
    )


@router.get(PATH)
def list_undo_failures(
    request: Request,
    serving: Serving,
    viewer: Looking,
    batch: Annotated[Number, Query()] = None,
    before: Annotated[Number, Query()] = None,
) -> Response:
    """Show the causes and a slice of the steps; the first slice is live."""
    topic = topic_of(serving, _ALL if batch is None else str(batch)) if before is None else None
    seen = topic.look() if topic else _slice(serving, batch, before)
    command = f"matoolkit undo-failure list{f' --batch {batch}' if batch else ''}"
    frame = Frame("Undo failures", "undo", command, address(f"{PATH}.csv", {"batch": batch}), topic, ("matters.css",))
    return page(request, viewer, "undofailures.html", frame, **seen)


@router.get(f"{PATH}.csv")
def list_as_file(serving: Serving, _: Looking, batch: Annotated[Number, Query()] = None) -> Response:
    """Return the list as a file."""
    names = ["id", "batch_id", "runbook_name", "member_key", "sequence_name", "cause", "step_name", "status", "attempt"]
    names += ["completed_at", "error_type", "error_message"]
    rows = _everything(serving, batch)
    return csv_file("undo-failures", names, ([getattr(row, name) for name in names] for row in rows))


def _everything(site: Site, batch_id: int | None) -> Iterator[UndoFailure]:
    before: int | None = None
    while True:
        with site.services.store.reading() as tx:
            rows = undo_failures_page(tx, batch_id=batch_id, before=before, limit=_IN_A_FILE_AT_ONCE)
        yield from rows
        if len(rows) < _IN_A_FILE_AT_ONCE:
            return
        before = rows[-1].id


def _slice(site: Site, batch_id: int | None, before: int | None) -> Mapping[str, Any]:
    with site.services.store.reading() as tx:
        if batch_id is not None:
            existing_batch(tx, batch_id)
        whole = count_undo_failures(tx)
        found = whole if batch_id is None else count_undo_failures(tx, batch_id=batch_id)
        causes = undo_causes(tx, batch_id=batch_id, limit=_MOST_CAUSES + 1)
        rows = undo_failures_page(tx, batch_id=batch_id, before=before, limit=_AT_ONCE + 1)
    shown, here = rows[:_AT_ONCE], {"batch": batch_id}
    following = address(PATH, {**here, "before": shown[-1].id}) if len(rows) > _AT_ONCE else None
    slices = {"first": address(PATH, here) if before else None, "next": following}
    some = {"causes": causes[:_MOST_CAUSES], "has_more_causes": len(causes) > _MOST_CAUSES}
    return {"batch_id": batch_id, "found": found, "whole": whole, "failures": shown, "slices": slices, **some}
