"""A member is kept out of all batches of its runbook, or taken out of a manual batch."""

from typing import Annotated

from fastapi import APIRouter, Form, Query
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.excluding import exclude_member, preview_exclusion
from matoolkit.admin.manual import remove_from_manual_batch
from matoolkit.admin.planwords import NOT_UNDONE, NOTHING_RUNS, ROLLED_BACK, STAYS
from matoolkit.admin.queries import existing_batch, member_history
from matoolkit.domain.states import MemberStatus
from matoolkit.errors import UnknownMembers
from matoolkit.store import Store
from matoolkit.store.members import MemberRow
from matoolkit.web.deciding import Act, Decision, TypedReason, carry_out, preview
from matoolkit.web.pages.batch import BatchId
from matoolkit.web.pages.member import MemberId
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding, Viewer

router = APIRouter(prefix="/batches/{batch_id}/members/{member_id}")


class AskedChange(BaseModel):
    """Whether what was done is undone too, and what was typed and shown."""

    model_config = ConfigDict(extra="ignore")

    undo: bool = False
    reason: TypedReason = ""
    shown: str = ""


@router.get("/exclude")
def preview_excluding(
    request: Request,
    serving: Serving,
    viewer: Deciding,
    batch_id: BatchId,
    member_id: MemberId,
    asked: Annotated[AskedChange, Query()],
) -> Response:
    """Show what an exclusion would do, and ask for the reason."""
    act = _exclusion(serving, viewer, batch_id, member_id, asked)
    return preview(request, viewer, serving, act, asked.reason)


@router.post("/exclude")
def exclude(
    request: Request,
    serving: Serving,
    viewer: Changing,
    batch_id: BatchId,
    member_id: MemberId,
    asked: Annotated[AskedChange, Form()],
) -> Response:
    """Keep somebody out until it is included again."""
    act = _exclusion(serving, viewer, batch_id, member_id, asked)
    return carry_out(request, viewer, serving, act, reason=asked.reason, shown=asked.shown)


@router.get("/remove")
def preview_removal(
    request: Request, serving: Serving, viewer: Deciding, batch_id: BatchId, member_id: MemberId
) -> Response:
    """Show what taking a member out would do, and ask for the reason."""
    return preview(request, viewer, serving, _removal(serving, viewer, batch_id, member_id, AskedChange()))


@router.post("/remove")
def remove(
    request: Request,
    serving: Serving,
    viewer: Changing,
    batch_id: BatchId,
    member_id: MemberId,
    asked: Annotated[AskedChange, Form()],
) -> Response:
    """Take a member out of a manual batch; its removal steps run."""
    act = _removal(serving, viewer, batch_id, member_id, asked)
    return carry_out(request, viewer, serving, act, reason=asked.reason, shown=asked.shown)


def _exclusion(site: Site, viewer: Viewer, batch_id: int, member_id: int, asked: AskedChange) -> Act[bool]:
    row, runbook = _member(site, batch_id, member_id)
    services = site.services

    def decision(store: Store, meant: bool | None) -> Decision:
        plan = preview_exclusion(store, runbook, row.member_key, undo=asked.undo) if meant else None
        return Decision(
            f"Exclude a member of batch {batch_id}",
            f"/batches/{batch_id}/members/{member_id}/exclude",
            "member/exclude.html",
            f"/batches/{batch_id}/members/{member_id}",
            f"matoolkit member exclude {runbook} KEY{' --undo' if asked.undo else ''} --dry-run",
            (plan, asked.undo),
            f"Exclude it{' and undo it' if asked.undo else ''}" if plan else None,
            is_risk=True,
            facts={
                "plan": plan,
                "asked": asked,
                "row": row,
                "runbook": runbook,
                "stays": STAYS,
                "nothing_runs": NOTHING_RUNS,
                "why": NOT_UNDONE,
                "rolled_back": ROLLED_BACK,
            },
        )

    def work(store: Store, _: bool) -> str:
        by, reason = viewer.identity.name, asked.reason
        exclude_member(store, services.publisher, runbook, row.member_key, by=by, reason=reason, undo=asked.undo)
        return f"The member is excluded from {runbook} until a person includes it again."

    return Act(lambda: True, decision, work)


def _removal(site: Site, viewer: Viewer, batch_id: int, member_id: int, asked: AskedChange) -> Act[bool]:
    row, _ = _member(site, batch_id, member_id)

    def decision(store: Store, meant: bool | None) -> Decision:
        status = member_history(store, batch_id, member_id).member.row.status
        if meant and status is not MemberStatus.ACTIVE:
            raise UnknownMembers(batch_id, [row.member_key], "active")
        return Decision(
            f"Remove a member from batch {batch_id}",
            f"/batches/{batch_id}/members/{member_id}/remove",
            "member/remove.html",
            f"/batches/{batch_id}/members/{member_id}",
            f"matoolkit batch remove-member {batch_id} {member_id}",
            status,
            "Remove it" if meant else None,
            is_risk=True,
            facts={"row": row, "batch_id": batch_id},
        )

    def work(store: Store, _: bool) -> str:
        by, reason = viewer.identity.name, asked.reason
        remove_from_manual_batch(store, site.services.publisher, batch_id, [row.member_key], by=by, reason=reason)
        return f"The member left batch {batch_id}."

    return Act(lambda: True, decision, work)


def _member(site: Site, batch_id: int, member_id: int) -> tuple[MemberRow, str]:
    store = site.services.store
    row = member_history(store, batch_id, member_id).member.row
    with store.reading() as tx:
        return row, existing_batch(tx, batch_id).runbook_name
