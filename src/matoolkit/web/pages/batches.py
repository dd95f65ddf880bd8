"""All batches, newest first, with filters that work over all of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.queries import BatchView, batch_views, latest_runbook
from matoolkit.domain.states import BatchStatus, MemberState
from matoolkit.store.batches import BatchFilter, batches_page, count_batches
from matoolkit.store.runbooks import runbook_names
from matoolkit.web.files import csv_file
from matoolkit.web.forms import Choice, Number
from matoolkit.web.rendering import Frame, address, page
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import Looking

router = APIRouter()

_AT_ONCE = 50
_MOST_IN_A_FILE = 5000
PATH = "/batches"


class Wanted(BaseModel):
    """Which batches are wanted; an empty choice does not matter."""

    model_config = ConfigDict(extra="ignore")

    runbook: Choice[str] = None
    status: Choice[BatchStatus] = None
    held: Choice[bool] = None
    manual: Choice[bool] = None
    before: Number = None

    def address(self, path: str = PATH, **more: object) -> str:
        """Return the address of this list, or of another slice of it."""
        return address(path, {**self.model_dump(mode="json", exclude={"before"}), **more})

    @property
    def command(self) -> str:
        """The command that prints the same list."""
        flags = [
            f" --runbook {self.runbook}" if self.runbook else "",
            f" --status {self.status}" if self.status else "",
            " --held" if self.held else "",
            " --manual" if self.manual else "",
        ]
        return f"matoolkit batch list{''.join(flags)}"


@router.get(PATH)
def list_batches(request: Request, serving: Serving, viewer: Looking, wanted: Annotated[Wanted, Query()]) -> Response:
    """Show a slice of the list."""
    with serving.services.store.reading() as tx:
        asked = _filter(wanted, latest_runbook(tx, wanted.runbook).name if wanted.runbook else None)
        views = batch_views(tx, batches_page(tx, asked, before=wanted.before, limit=_AT_ONCE + 1))
        found, whole, names = count_batches(tx, asked), count_batches(tx), runbook_names(tx)
    shown = views[:_AT_ONCE]
    following = wanted.address(before=shown[-1].batch.id) if len(views) > _AT_ONCE else None
    frame = Frame("Batches", "batches", wanted.command, wanted.address(f"{PATH}.csv"))
    around: dict[str, Any] = {
        "views": shown,
        "found": found,
        "whole": whole,
        "names": names,
        "statuses": list(BatchStatus),
    }
    slices = {"first": wanted.address() if wanted.before else None, "next": following}
    return page(request, viewer, "batches.html", frame, wanted=wanted, slices=slices, **around)


@router.get(f"{PATH}.csv")
def list_as_file(serving: Serving, _: Looking, wanted: Annotated[Wanted, Query()]) -> Response:
    """Return the list as a file."""
    with serving.services.store.reading() as tx:
        asked = _filter(wanted, latest_runbook(tx, wanted.runbook).name if wanted.runbook else None)
        views = batch_views(tx, batches_page(tx, asked, before=None, limit=_MOST_IN_A_FILE))
    heading = ["batch", "runbook", "start", "status", "held", "manual", "members", *MemberState]
    return csv_file("batches", heading, map(_row, views))


def _filter(wanted: Wanted, runbook: str | None) -> BatchFilter:
    return BatchFilter(runbook, None, wanted.status, wanted.manual, wanted.held)


def _row(view: BatchView) -> list[object]:
    batch, states = view.batch, view.states
    facts = (batch.id, batch.runbook_name, batch.batch_start_time, batch.status, batch.is_held, batch.is_manual)
    return [*facts, sum(states.values()), *(states.get(state, 0) for state in MemberState)]
