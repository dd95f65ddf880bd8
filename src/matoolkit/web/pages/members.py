"""The members of a batch, with filters that work over all of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.exporting import MEMBER_COLUMNS, member_rows
from matoolkit.admin.failing import group_like
from matoolkit.admin.queries import batch_views, existing_batch, member_views
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.domain.states import MemberState
from matoolkit.store import Transaction
from matoolkit.store.enrolments import count_members, members_page
from matoolkit.store.failures import failures_by_error, members_that_failed
from matoolkit.store.members import MemberRow, members_by_id
from matoolkit.web.files import csv_file
from matoolkit.web.forms import Choice, Number
from matoolkit.web.pages.batch import BatchId
from matoolkit.web.rendering import Frame, address, page
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import Looking

router = APIRouter(prefix="/batches/{batch_id}")

_AT_ONCE = 50
_MOST_GROUPS = 50


class WantedMembers(BaseModel):
    """Which members are wanted; an empty choice does not matter."""

    model_config = ConfigDict(extra="ignore")

    state: Choice[MemberState] = None
    key: Choice[Annotated[str, StringConstraints(max_length=MAX_KEY_LENGTH)]] = None
    like: Number = None
    after: Number = None

    def address(self, path: str, **more: object) -> str:
        """Return the address of this list, or of another slice of it."""
        return address(path, {**self.model_dump(mode="json", exclude={"after"}), **more})

    def command(self, batch_id: int) -> str:
        """The command that prints the same list; failures by error have one of their own."""
        if self.like:
            return f"matoolkit batch retry {batch_id} --like {self.like} --dry-run"
        flags = [
            f" --state {self.state}" if self.state else "",
            f" --key-contains '{self.key}'" if self.key and self.key.isalnum() else "",
        ]
        return f"matoolkit batch members {batch_id}{''.join(flags)}"


@router.get("/members")
def list_members(
    request: Request, serving: Serving, viewer: Looking, batch_id: BatchId, wanted: Annotated[WantedMembers, Query()]
) -> Response:
    """Show a slice of the list."""
    path = f"/batches/{batch_id}/members"
    with serving.services.store.reading() as tx:
        (view,) = batch_views(tx, [existing_batch(tx, batch_id)])
        groups = failures_by_error(tx, batch_id)[:_MOST_GROUPS]
        rows, found = _slice(tx, batch_id, wanted)
        members = member_views(tx, rows[:_AT_ONCE])
    following = wanted.address(path, after=members[-1].row.id) if len(rows) > _AT_ONCE else None
    slices = {"first": wanted.address(path) if wanted.after else None, "next": following}
    around: dict[str, Any] = {"view": view, "batch": view.batch, "groups": groups, "states": list(MemberState)}
    csv = None if wanted.like else wanted.address(f"{path}.csv")
    frame = Frame(f"Members of batch {batch_id}", "batches", wanted.command(batch_id), csv, styles=("batch.css",))
    around |= {"members": members, "found": found, "whole": sum(view.states.values())}
    return page(request, viewer, "members.html", frame, wanted=wanted, slices=slices, **around)


@router.get("/members.csv")
def members_as_file(
    serving: Serving, _: Looking, batch_id: BatchId, wanted: Annotated[WantedMembers, Query()]
) -> Response:
    """Return the list as a file."""
    rows = member_rows(serving.services.store, batch_id, state=wanted.state, key_part=wanted.key)
    return csv_file(f"batch-{batch_id}-members", MEMBER_COLUMNS, rows)


def _slice(tx: Transaction, batch_id: int, wanted: WantedMembers) -> tuple[list[MemberRow], int]:
    """Return a slice of the members that are wanted, and how many there are."""
    after = wanted.after or 0
    if wanted.like is None:
        rows = members_page(tx, batch_id, state=wanted.state, key_part=wanted.key, after=after, limit=_AT_ONCE + 1)
        return rows, count_members(tx, batch_id, state=wanted.state, key_part=wanted.key)
    group = group_like(tx, batch_id, wanted.like)
    ids = members_that_failed(
        tx, batch_id, phase_name=group.phase_name, step_name=group.step_name, fingerprint=group.fingerprint
    )
    # A group of failures is listed whole; the other filters do not apply to it.
    wanted_ids = [number for number in ids if number > after][: _AT_ONCE + 1]
    return sorted(members_by_id(tx, wanted_ids), key=lambda row: row.id), len(ids)
