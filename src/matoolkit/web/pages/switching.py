"""Switching the automation of a runbook on and off, and putting its active version out of use."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.publishing import deactivate, set_automation
from matoolkit.admin.queries import RunbookStatus, one_version, runbook_status
from matoolkit.domain.states import UNFINISHED_BATCHES
from matoolkit.errors import NoActiveVersion, PreviewChanged, VersionNotActive
from matoolkit.store.runbooks import RunbookRow
from matoolkit.web.forms import Reason
from matoolkit.web.pages.runbook import RunbookName, VersionNumber
from matoolkit.web.previews import preview
from matoolkit.web.rendering import Frame, elsewhere
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import Changing, Deciding
from matoolkit.words import out_of_use_told, switch_told

router = APIRouter(prefix="/runbooks/{name}")

_AUTOMATION = "automation"
_STYLES = ("runbook.css",)


@router.get("/automation")
def preview_switch(request: Request, serving: Serving, viewer: Deciding, name: RunbookName) -> Response:
    """Show what begins or stops when the automation is switched to the other side."""
    status = runbook_status(serving.services.store, name)
    turns_on = not status.automation.automation_enabled
    if turns_on and not status.runbook.is_active:
        raise NoActiveVersion(status.runbook.name)
    word = "enable" if turns_on else "disable"
    frame = Frame(
        f"Turn automation {'on' if turns_on else 'off'}",
        "runbooks",
        f"matoolkit automation {word} {status.runbook.name}",
        styles=_STYLES,
    )
    mark = serving.seal.mark(_AUTOMATION, *_facts(status, turns_on=turns_on))
    return preview(
        request,
        viewer,
        "runbook/automation.html",
        frame,
        seen=status,
        turns_on=turns_on,
        unfinished=_unfinished(status),
        mark=mark,
    )


@router.post("/automation")
def switch(
    request: Request,
    serving: Serving,
    viewer: Changing,
    name: RunbookName,
    on: Annotated[bool, Form()],
    seen: Annotated[str, Form()],
) -> Response:
    """Switch the automation, if things still are as they were shown."""
    services, by = serving.services, viewer.identity.name
    with services.store.transaction() as tx:
        inside = services.store.within(tx)
        status = runbook_status(inside, name)
        is_there = status.automation.automation_enabled == on
        if is_there or not serving.seal.is_mark(seen, _AUTOMATION, *_facts(status, turns_on=on)):
            raise PreviewChanged
        set_automation(inside, name, enabled=on, by=by, now=services.clock.now())
    serving.looks.forget()
    return elsewhere(request, f"/runbooks/{status.runbook.name}", switch_told(status.runbook.name, enabled=on))


@router.get("/versions/{version}/deactivate")
def preview_end(
    request: Request, serving: Serving, viewer: Deciding, name: RunbookName, version: VersionNumber
) -> Response:
    """Show what ends when the active version is put out of use, and ask for the reason."""
    row = one_version(serving.services.store, name, version)
    status = runbook_status(serving.services.store, name)
    if not row.is_active:
        raise VersionNotActive(row.name, version, _active(status.runbook))
    frame = Frame(
        f"Put {row.name} v{version} out of use",
        "runbooks",
        f"matoolkit runbook delete {row.name} {version}",
        styles=_STYLES,
    )
    return preview(
        request, viewer, "runbook/deactivate.html", frame, seen=status, row=row, unfinished=_unfinished(status)
    )


@router.post("/versions/{version}/deactivate")
def put_out_of_use(
    request: Request,
    serving: Serving,
    viewer: Changing,
    name: RunbookName,
    version: VersionNumber,
    reason: Annotated[Reason, Form()],
) -> Response:
    """Put the active version out of use."""
    services = serving.services
    row = deactivate(services.store, name, version, by=viewer.identity.name, reason=reason, now=services.clock.now())
    serving.looks.forget()
    return elsewhere(request, f"/runbooks/{row.name}", out_of_use_told(row.name, version))


def _unfinished(status: RunbookStatus) -> int:
    return sum(count.count for count in status.batches if count.status in UNFINISHED_BATCHES)


def _active(runbook: RunbookRow) -> int | None:
    return runbook.version if runbook.is_active else None


def _facts(status: RunbookStatus, *, turns_on: bool) -> tuple[str, ...]:
    """List what a confirmation is about: which version would be at work, and who decided before."""
    runbook, before = status.runbook, status.automation
    return (runbook.name, str(turns_on), str(_active(runbook)), str(before.enabled_at), str(before.disabled_at))
