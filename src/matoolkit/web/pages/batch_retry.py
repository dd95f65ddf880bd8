"""Failed members of a batch try again: a group with the same error, one member, or all of them."""

from shlex import quote
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Form, Query
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.failing import group_like
from matoolkit.admin.planwords import NOT_RETRIED
from matoolkit.admin.queries import existing_batch
from matoolkit.admin.retrying import MemberRetry, preview_member_retry, retry_members
from matoolkit.admin.retryplan import Chosen, Terms
from matoolkit.admin.retryrows import rows_in_source
from matoolkit.domain.retrying import DataChoice, VersionChoice
from matoolkit.doors.services import Services
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store
from matoolkit.store.runbooks import runbooks_by_id
from matoolkit.web.deciding import Act, Decision, TypedReason, carry_out, preview
from matoolkit.web.forms import Choice, Number
from matoolkit.web.pages.batch import BatchId
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding, Viewer
from matoolkit.words import counted

router = APIRouter(prefix="/batches/{batch_id}/retry")

_Meant: TypeAlias = tuple[Chosen, Terms]

_ROWS = {
    DataChoice.LAST_READING: "as the source had them when it was last read",
    DataChoice.REFRESHED: "as the source has them now",
    DataChoice.KEPT: "members keep theirs",
}


class AskedRetry(BaseModel):
    """Whose retry is meant, under which terms, and what was typed and shown."""

    model_config = ConfigDict(extra="ignore")

    like: Number = None
    member: Number = None
    version: Choice[VersionChoice] = None
    begin_with: Choice[str] = None
    keep_done: bool = False
    data: Choice[DataChoice] = None
    reason: TypedReason = ""
    shown: str = ""

    def command(self, batch_id: int) -> str:
        """Return the command that shows the same."""
        flags = [
            f" --like {self.like}" if self.like else "",
            f" --member {self.member}" if self.member else "",
            f" --version {self.version}" if self.version else "",
            f" --from {quote(self.begin_with)}" if self.begin_with else "",
            " --keep-done" if self.keep_done else "",
            f" --data {self.data}" if self.data else "",
        ]
        return f"matoolkit batch retry {batch_id}{''.join(flags)} --dry-run"


@router.get("")
def preview_retry(
    request: Request, serving: Serving, viewer: Deciding, batch_id: BatchId, asked: Annotated[AskedRetry, Query()]
) -> Response:
    """Show what a retry would do, and ask for the reason."""
    return preview(request, viewer, serving, _act(serving, viewer, batch_id, asked), asked.reason)


@router.post("")
def retry(
    request: Request, serving: Serving, viewer: Changing, batch_id: BatchId, asked: Annotated[AskedRetry, Form()]
) -> Response:
    """Let the members try again whose retry was shown."""
    act = _act(serving, viewer, batch_id, asked)
    return carry_out(request, viewer, serving, act, reason=asked.reason, shown=asked.shown)


def _act(site: Site, viewer: Viewer, batch_id: int, asked: AskedRetry) -> Act[_Meant]:
    services = site.services

    def decision(store: Store, meant: _Meant | None) -> Decision:
        plan = preview_member_retry(store, batch_id, *meant) if meant else None
        return _decision(store, batch_id, asked, plan)

    def work(store: Store, meant: _Meant) -> str:
        by = viewer.identity.name
        done = retry_members(store, services.publisher, batch_id, *meant, by=by, reason=asked.reason)
        left_out = f", {len(done.left_out):,} left out" if done.left_out else ""
        return f"{counted(_count(done), 'member')} of batch {batch_id} retried{left_out}."

    return Act(lambda: _meant(services, batch_id, asked), decision, work)


def _meant(services: Services, batch_id: int, asked: AskedRetry) -> _Meant:
    chosen = Chosen(member_ids=[asked.member] if asked.member else None)
    if asked.like is not None:
        with services.store.reading() as tx:
            existing_batch(tx, batch_id)
            group = group_like(tx, batch_id, asked.like)
        chosen = Chosen(None, group.phase_name, group.step_name, None, group.fingerprint)
    rows = None
    if asked.data is DataChoice.REFRESHED:
        rows = rows_in_source(services.store, services.open_source, batch_id, services.clock.now)
    return chosen, Terms(asked.version, asked.begin_with, asked.keep_done, asked.data, rows)


def _decision(store: Store, batch_id: int, asked: AskedRetry, plan: MemberRetry | None = None) -> Decision:
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        (version,) = runbooks_by_id(tx, [batch.runbook_id])
    phases = [phase.name for phase in parse_runbook(version.yaml_content).phases]
    undecided = plan is not None and bool(plan.done_before) and not asked.keep_done and asked.begin_with is None
    return Decision(
        f"Retry failed members of batch {batch_id}",
        f"/batches/{batch_id}/retry",
        "batch/retry.html",
        _back(batch_id, asked),
        asked.command(batch_id),
        (plan, asked.model_dump(exclude={"reason", "shown"})),
        None if plan is None or undecided else f"Retry {counted(_count(plan), 'member')}",
        asked={"like": asked.like, "member": asked.member},
        facts={
            "plan": plan,
            "asked": asked,
            "phases": phases,
            "undecided": undecided,
            "rows": _ROWS,
            "why": NOT_RETRIED,
            "is_manual": batch.is_manual,
        },
    )


def _count(plan: MemberRetry) -> int:
    return len(plan.going_on) + len(plan.beginning_again)


def _back(batch_id: int, asked: AskedRetry) -> str:
    return f"/batches/{batch_id}/members/{asked.member}" if asked.member else f"/batches/{batch_id}"
