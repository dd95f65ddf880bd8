"""What was typed into the field of the frame: one hit is gone to, several are listed."""

import shlex
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from matoolkit.admin.finding import Found, find
from matoolkit.web.files import csv_file
from matoolkit.web.rendering import Frame, address, page
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import Looking

router = APIRouter()


class Searched(BaseModel):
    """What was typed, and whether keys that contain it are wanted beside those that are it."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    q: Annotated[str, Field(max_length=400)] = ""
    parts: bool = False

    def address(self, path: str = "/find", *, parts: bool) -> str:
        """Return the address of what is found, or of what is found in parts of keys too."""
        return address(path, {"q": self.q, "parts": "true" if parts else None})


@router.get("/find")
def find_anything(
    request: Request, serving: Serving, viewer: Looking, wanted: Annotated[Searched, Query()]
) -> Response:
    """Go to what is meant, or list what may be."""
    found = find(serving.services.store, wanted.q, parts_too=wanted.parts)
    if found.count == 1 and not wanted.parts:
        return RedirectResponse(_only(found), 303)
    command = f"matoolkit member find {shlex.quote(wanted.q)}"
    frame = Frame("Find", "", command, wanted.address("/find.csv", parts=wanted.parts))
    return page(request, viewer, "find.html", frame, found=found, text=wanted.q, wider=wanted.address(parts=True))


@router.get("/find.csv")
def found_as_file(serving: Serving, _: Looking, wanted: Annotated[Searched, Query()]) -> Response:
    """Return what was found as a file."""
    heading = ["batch", "member", "key", "state", "runbook", "batch status", "T"]
    return csv_file("found", heading, _rows(find(serving.services.store, wanted.q, parts_too=wanted.parts)))


def _only(found: Found) -> str:
    if found.batches:
        return f"/batches/{found.batches[0].id}"
    return f"/batches/{found.members[0].batch_id}/members/{found.members[0].id}"


def _rows(found: Found) -> Iterator[list[object]]:
    for batch in found.batches:
        yield [batch.id, None, None, None, batch.runbook_name, batch.status, batch.batch_start_time]
    for one in found.members:
        of_batch = (one.runbook_name, one.batch_status, one.batch_start_time)
        yield [one.batch_id, one.id, one.member_key, found.states[one.id], *of_batch]
