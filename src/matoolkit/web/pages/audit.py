"""What people changed, and why (rule A5)."""

from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.store.audit import AuditEntry, audit_page
from matoolkit.store.runbooks import runbook_names
from matoolkit.web.differences import differences
from matoolkit.web.files import csv_file
from matoolkit.web.forms import Choice, Number
from matoolkit.web.rendering import Frame, address, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Looking

router = APIRouter()

PATH = "/audit"
_AT_ONCE = 50
_IN_A_FILE_AT_ONCE = 500
_SUBJECTS = ("batch", "dead_letter", "member", "runbook")


class WantedChanges(BaseModel):
    """Which changes are wanted; an empty choice does not matter."""

    model_config = ConfigDict(extra="ignore")

    batch: Number = None
    runbook: Choice[str] = None
    subject_type: Choice[str] = None
    subject_id: Choice[str] = None
    who: Choice[str] = None
    before: Number = None

    def address(self, path: str = PATH, **more: object) -> str:
        """Return the address of this list, or of another slice of it."""
        return address(path, {**self.model_dump(mode="json", exclude={"before"}), **more})

    @property
    def command(self) -> str:
        """The command that prints the same list."""
        given = self.model_dump(mode="json", exclude={"before"})
        flags = [f" --{name.replace('_', '-')} {_quoted(value)}" for name, value in given.items() if value is not None]
        return f"matoolkit audit list{''.join(flags)}"

    def slice(self, site: Site, before: int | None, limit: int) -> list[AuditEntry]:
        """Return so many of them, newest first, from before an id."""
        with site.services.store.reading() as tx:
            return audit_page(
                tx,
                batch_id=self.batch,
                runbook_name=self.runbook,
                subject_type=self.subject_type,
                subject_id=self.subject_id,
                actor=self.who,
                before=before,
                limit=limit,
            )


@router.get(PATH)
def list_changes(
    request: Request, serving: Serving, viewer: Looking, wanted: Annotated[WantedChanges, Query()]
) -> Response:
    """Show a slice of what people changed."""
    found = wanted.slice(serving, wanted.before, _AT_ONCE + 1)
    with serving.services.store.reading() as tx:
        names = runbook_names(tx)
    shown = found[:_AT_ONCE]
    slices = {
        "first": wanted.address() if wanted.before else None,
        "next": wanted.address(before=shown[-1].id) if len(found) > _AT_ONCE else None,
    }
    around: dict[str, Any] = {"names": names, "subjects": sorted({*_SUBJECTS, *(one.subject_type for one in shown)})}
    entries = [(one, differences(one.before_json, one.after_json), _place_of(one)) for one in shown]
    frame = Frame("Audit", "audit", wanted.command, wanted.address(f"{PATH}.csv"), styles=("matters.css",))
    return page(request, viewer, "audit.html", frame, wanted=wanted, entries=entries, slices=slices, **around)


@router.get(f"{PATH}.csv")
def list_as_file(serving: Serving, _: Looking, wanted: Annotated[WantedChanges, Query()]) -> Response:
    """Return all that people changed as a file."""
    names = ["id", "at", "actor", "action", "subject_type", "subject_id", "runbook_name", "batch_id", "reason"]
    names += ["before_json", "after_json"]
    rows = _everything(serving, wanted)
    return csv_file("audit", names, ([getattr(row, name) for name in names] for row in rows))


def _everything(site: Site, wanted: WantedChanges) -> Iterator[AuditEntry]:
    before: int | None = None
    while True:
        rows = wanted.slice(site, before, _IN_A_FILE_AT_ONCE)
        yield from rows
        if len(rows) < _IN_A_FILE_AT_ONCE:
            return
        before = rows[-1].id


def _place_of(entry: AuditEntry) -> str | None:
    """Return the page of what was changed, if it has one."""
    match entry.subject_type:
        case "batch" if entry.subject_id.isdecimal():
            return f"/batches/{entry.subject_id}"
        case "dead_letter" if entry.subject_id.isdecimal():
            return f"/dead-letters/{entry.subject_id}"
        case "runbook":
            return f"/runbooks/{quote(entry.subject_id, safe='')}"
        case _:
            return None


def _quoted(value: object) -> str:
    text = str(value)
    return text if text.replace("-", "").replace("_", "").isalnum() else "'" + text.replace("'", "'\\''") + "'"
