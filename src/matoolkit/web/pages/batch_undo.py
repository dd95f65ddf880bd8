"""Members of a batch are undone: everybody, those in a state, those with the same error, or those with certain keys."""

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.failing import group_like
from matoolkit.admin.planwords import NOT_UNDONE, NOTHING_RUNS, ROLLED_BACK
from matoolkit.admin.queries import existing_batch, member_history
from matoolkit.admin.undoing import MemberUndo, preview_undo, undo_members
from matoolkit.admin.undoplan import Wanted
from matoolkit.domain.retrying import VersionChoice
from matoolkit.domain.states import MemberState
from matoolkit.doors.services import Services
from matoolkit.store import Store
from matoolkit.store.failures import failures_by_error
from matoolkit.web.deciding import Act, Decision, TypedReason, carry_out, preview
from matoolkit.web.forms import Choice, Number
from matoolkit.web.pages.batch import BatchId
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding, Viewer
from matoolkit.words import counted

router = APIRouter(prefix="/batches/{batch_id}/undo")

_MOST_TYPED = 100_000
_MOST_GROUPS = 50
_STATES = (MemberState.WAITING, MemberState.UNDER_WAY, MemberState.DONE, MemberState.FAILED, MemberState.STOPPED)


class AskedUndo(BaseModel):
    """Whose undo is meant, by which version, and what was typed and shown."""

    model_config = ConfigDict(extra="ignore")

    member: Number = None
    like: Number = None
    who: Choice[MemberState | Literal["everybody"]] = None
    keys: Annotated[str, StringConstraints(strip_whitespace=True, max_length=_MOST_TYPED)] = ""
    version: Choice[VersionChoice] = None
    reason: TypedReason = ""
    shown: str = ""

    @property
    def state(self) -> MemberState | None:
        """The state of those who are meant, if it matters."""
        return self.who if isinstance(self.who, MemberState) else None

    def command(self, batch_id: int) -> str:
        """Return the command that shows the same; keys are left for the person to fill in."""
        flags = [
            f" --member {self.member}" if self.member else "",
            f" --like {self.like}" if self.like else "",
            f" --state {self.state}" if self.state else "",
            " --member KEY" if self.keys else "",
            f" --version {self.version}" if self.version else "",
        ]
        return f"matoolkit batch undo {batch_id}{''.join(flags)} --dry-run"


@router.get("")
def preview_undoing(
    request: Request, serving: Serving, viewer: Deciding, batch_id: BatchId, asked: Annotated[AskedUndo, Query()]
) -> Response:
    """Show what an undo would do, and ask for the reason."""
    return preview(request, viewer, serving, _act(serving, viewer, batch_id, asked), asked.reason)


@router.post("")
def undo(
    request: Request, serving: Serving, viewer: Changing, batch_id: BatchId, asked: Annotated[AskedUndo, Form()]
) -> Response:
    """Undo the members whose undo was shown."""
    act = _act(serving, viewer, batch_id, asked)
    return carry_out(request, viewer, serving, act, reason=asked.reason, shown=asked.shown)


def _act(site: Site, viewer: Viewer, batch_id: int, asked: AskedUndo) -> Act[Wanted]:
    services = site.services

    def decision(store: Store, meant: Wanted | None) -> Decision:
        plan = preview_undo(store, batch_id, meant, asked.version) if meant else None
        return _decision(store, batch_id, asked, plan)

    def work(store: Store, meant: Wanted) -> str:
        by, reason = viewer.identity.name, asked.reason
        done = undo_members(store, services.publisher, batch_id, meant, asked.version, by=by, reason=reason)
        running = f"for {len(done.running):,} something runs" if done.running else "nothing has to run"
        return f"{counted(done.undone, 'member')} of batch {batch_id} undone: {running}."

    return Act(lambda: _meant(services, batch_id, asked), decision, work)


def _meant(services: Services, batch_id: int, asked: AskedUndo) -> Wanted | None:
    """Say who is meant; nobody before a person has chosen, for a plan for everybody takes its time."""
    if asked.member is not None:
        history = member_history(services.store, batch_id, asked.member)
        return Wanted(member_keys=[history.member.row.member_key])
    keys = [line.strip() for line in asked.keys.splitlines() if line.strip()] or None
    if not (keys or asked.who or asked.like):
        return None
    if asked.like is None:
        return Wanted(keys, asked.state)
    with services.store.reading() as tx:
        group = group_like(tx, batch_id, asked.like)
    return Wanted(keys, asked.state, group.phase_name, group.step_name, None, group.fingerprint)


def _decision(store: Store, batch_id: int, asked: AskedUndo, plan: MemberUndo | None) -> Decision:
    with store.reading() as tx:
        existing_batch(tx, batch_id)
        groups = [] if asked.member else failures_by_error(tx, batch_id)[:_MOST_GROUPS]
    return Decision(
        f"Undo members of batch {batch_id}",
        f"/batches/{batch_id}/undo",
        "batch/undo.html",
        f"/batches/{batch_id}/members/{asked.member}" if asked.member else f"/batches/{batch_id}",
        asked.command(batch_id),
        (plan, asked.model_dump(exclude={"reason", "shown"})),
        f"Undo {counted(plan.undone, 'member')}" if plan else None,
        is_risk=True,
        asked={"member": asked.member},
        facts={
            "plan": plan,
            "asked": asked,
            "groups": groups,
            "states": _STATES,
            "nothing_runs": NOTHING_RUNS,
            "why": NOT_UNDONE,
            "rolled_back": ROLLED_BACK,
        },
    )
