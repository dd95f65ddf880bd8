"""Many late batches at once: approved or cancelled, as `hold approve --late` and `hold cancel --late` do."""

from datetime import date, datetime, time
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query
from pydantic import AwareDatetime
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.late_batches import LateBatches, approve_late, cancel_late, late_batches
from matoolkit.errors import PreviewChanged
from matoolkit.web.forms import Choice, Reason
from matoolkit.web.previews import preview
from matoolkit.web.rendering import Frame, elsewhere
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import Changing, Deciding
from matoolkit.words import counted

router = APIRouter(prefix="/holds/late")

What = Literal["approve", "cancel"]
_DECIDED = {"approve": "approved", "cancel": "cancelled"}
_PURPOSE = "late"
_MOST_NAMED = 20


@router.get("")
def preview_late(
    request: Request,
    serving: Serving,
    viewer: Deciding,
    before: Annotated[date, Query()],
    what: What,
    runbook: Annotated[Choice[str], Query()] = None,
) -> Response:
    """Say which late batches would be approved or cancelled, and ask for the reason."""
    # A day begins in the zone of the page.
    at = datetime.combine(before, time(), viewer.say.zone)
    found = late_batches(serving.services.store, at, runbook)
    command = f"matoolkit hold {what} --late --before {at.isoformat()}{f' --runbook {runbook}' if runbook else ''}"
    frame = Frame(f"{what.capitalize()} late batches", "holds", command)
    return preview(
        request,
        viewer,
        "holds/late.html",
        frame,
        found=found,
        what=what,
        before=at,
        runbook=runbook,
        command=command,
        mark=serving.seal.mark(_PURPOSE, *_facts(what, at, runbook, found)),
        most_named=_MOST_NAMED,
    )


@router.post("/{what}")
def decide_late(
    request: Request,
    serving: Serving,
    viewer: Changing,
    what: What,
    before: Annotated[AwareDatetime, Form()],
    shown_as: Annotated[str, Form(max_length=100)],
    reason: Annotated[Reason, Form()],
    runbook: Annotated[Choice[str], Form()] = None,
) -> Response:
    """Approve or cancel exactly those that were shown."""
    services = serving.services
    with services.store.transaction() as tx:
        inside, who = services.store.within(tx), viewer.identity
        # Nobody signs a cancellation.
        decide = cancel_late if what == "cancel" else partial(approve_late, signer=who.signer)
        done = decide(inside, services.publisher, before, runbook, by=who.name, reason=reason)
        for refusal in done.refused.values():
            raise refusal
        # What is not what was shown is undone with the transaction.
        if not serving.seal.is_mark(shown_as, _PURPOSE, *_facts(what, before, runbook, done)):
            raise PreviewChanged
    serving.looks.forget()
    batches, signed = len(done.batch_ids), len(done.signed_ids)
    told = f"{batches:,} late {'batch' if batches == 1 else 'batches'} with {counted(done.member_count, 'member')}"
    more = f" {signed:,} signed off, and more sign-offs are missing." if signed else ""
    return elsewhere(request, "/holds", done=f"{told}: {_DECIDED[what]}.{more}")


def _facts(what: What, before: datetime, runbook: str | None, found: LateBatches) -> list[str]:
    return [what, before.isoformat(), runbook or "", ",".join(map(str, sorted([*found.batch_ids, *found.signed_ids])))]
