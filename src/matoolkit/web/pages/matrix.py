"""The matrix of a batch for the script that draws it: cells, changes, keys of members, and the story of a cell."""

import asyncio
import gzip
import sys
from bisect import bisect_left
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.matrix import Numbers
from matoolkit.admin.queries import member_history
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.domain.matrix import state_in
from matoolkit.errors import Flaw, InvalidRequest
from matoolkit.store.enrolments import count_members
from matoolkit.store.matrix import members_with_key_part
from matoolkit.store.members import member_labels
from matoolkit.visible import visible
from matoolkit.web.forms import RowNumber
from matoolkit.web.matrices import Shown, enveloped
from matoolkit.web.matrixlegend import WITHOUT_STEP
from matoolkit.web.rendering import fragment
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Looking

router = APIRouter(prefix="/batches/{batch_id}/matrix")

BatchId = Annotated[RowNumber, InPath()]
Place = Annotated[int, Query(ge=0)]

_MOST_KEYS = 200
_MOST_FOUND = 5000
# The page cuts keys to the width they have; no screen shows more than this.
_LONGEST_KEY = 100
_BYTES = "application/octet-stream"


@router.get("/cells")
async def get_cells(request: Request, serving: Serving, _: Looking, batch_id: BatchId, since: str = "") -> Response:
    """Return what has changed since a version, or all cells."""
    shown = await _shown(serving, batch_id)
    changed = shown.since(since) if since else None
    if changed is not None:
        head = {"version": shown.version, "changes": len(changed)}
        return Response(enveloped(head, _lowest_first(changed)), media_type=_BYTES)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(shown.packed, media_type=_BYTES, headers={"Content-Encoding": "gzip"})
    return Response(await run_in_threadpool(gzip.decompress, shown.packed), media_type=_BYTES)


@router.get("/members")
async def get_members(serving: Serving, _: Looking, batch_id: BatchId, places: str) -> dict[str, Any]:
    """Return ids and keys of members by their places in the matrix."""
    ids = (await _shown(serving, batch_id)).matrix.members.ids
    wanted = {ids[place]: place for place in _numbers(places) if place < len(ids)}

    def read() -> list[dict[str, Any]]:
        with serving.services.store.reading() as tx:
            found = member_labels(tx, wanted)
        return [{"place": wanted[one.id], "id": one.id, "key": _cut(one.member_key)} for one in found]

    return {"members": await run_in_threadpool(read)}


@router.get("/find")
async def find_members(
    serving: Serving,
    _: Looking,
    batch_id: BatchId,
    key: Annotated[str, Query(min_length=1, max_length=MAX_KEY_LENGTH)],
) -> dict[str, Any]:
    """Return the places of members whose keys contain a text, cut, and how many there are."""
    ids = (await _shown(serving, batch_id)).matrix.members.ids

    def read() -> tuple[int, list[int]]:
        with serving.services.store.reading() as tx:
            found = members_with_key_part(tx, batch_id, key, _MOST_FOUND)
            count = len(found) if len(found) < _MOST_FOUND else count_members(tx, batch_id, key_part=key)
            return count, [place for one in found if (place := _place_of(one, ids)) is not None]

    count, found = await run_in_threadpool(read)
    return {"count": count, "places": found}


@router.get("/story")
async def get_story(serving: Serving, viewer: Looking, batch_id: BatchId, place: Place, column: Place) -> Response:
    """Tell what happened in a cell."""
    shown = await _shown(serving, batch_id)
    matrix = shown.matrix
    if place >= len(matrix.members) or column >= len(matrix.columns):
        raise InvalidRequest([Flaw("/query", f"the matrix has no cell {place}, {column}")])
    where, cell = matrix.columns[column], matrix.cells[column * len(matrix.members) + place]

    def write() -> Response:
        history = member_history(serving.services.store, batch_id, matrix.members.ids[place])
        same = [
            step
            for step in history.steps
            if step.phase_execution_id == where.phase_id
            and step.step_index == where.step_index
            and step.epoch == history.member.row.epoch
        ]
        step = same[0] if same else None
        return fragment(viewer, "batch/matrix_story.html", step=step, why=WITHOUT_STEP.get(state_in(cell), ""))

    return await run_in_threadpool(write)


async def _shown(site: Site, batch_id: int) -> Shown:
    # Others may wait for the same look, so one who goes away must not end it.
    return await asyncio.shield(asyncio.wrap_future(site.matrices.shown(batch_id)))


def _numbers(given: str) -> list[int]:
    parts = given.split(",")
    if len(parts) > _MOST_KEYS or not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise InvalidRequest([Flaw("/query/places", f"give up to {_MOST_KEYS} numbers with commas between them")])
    return [int(part) for part in parts]


def _place_of(number: int, ids: Numbers) -> int | None:
    place = bisect_left(ids, number)
    return place if place < len(ids) and ids[place] == number else None


def _cut(key: str) -> str:
    return visible(key if len(key) <= _LONGEST_KEY else f"{key[: _LONGEST_KEY - 1]}…")


def _lowest_first(numbers: Numbers) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
