"""`matoolkit hold`: batches that wait for a person's approval."""

from typing import Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.commands.batch import BATCHES
from matoolkit.cli.options import HeldBatch, Reason, Watch, Yes
from matoolkit.cli.output import counted
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, number, when
from matoolkit.cli.watching import watch_items

app = typer.Typer(help="Approve what batches are held for.", no_args_is_help=True)

_HOLDS = (*BATCHES[:-1], Column("HELD FOR", "holdReason"))
_HOLD = (
    number("BATCH", "batchId"),
    Column("RUNBOOK", "runbookName"),
    Column("KIND", "kind"),
    Column("REASON", "reason"),
    when("HELD SINCE", "heldAt"),
    when("NEW T", "newStart"),
    Column("MEMBERS", "members"),
    Column("APPROVED", "isApproved"),
    Column("BY", "approvedBy"),
    Column("KEY", "holdKey"),
)


@app.command("list")
@asks_the_api
def list_(session: Session, *, watch: Watch = False) -> None:
    """List the batches that wait for a person's approval, newest first."""

    def ask() -> list[dict[str, Any]]:
        return list(session.client.items(path_of("holds")))

    if watch:
        watch_items(session, ask, _HOLDS)
    else:
        session.show_all(ask(), _HOLDS, nothing="nothing is held")


@app.command()
@asks_the_api
def show(session: Session, batch: HeldBatch) -> None:
    """Show exactly what a batch is held for: who would leave, or when it would start."""
    session.show(session.client.get(path_of("batches", batch, "hold")), _HOLD)


@app.command()
@asks_the_api
def approve(
    session: Session,
    batch: HeldBatch,
    key: str | None = typer.Option(None, "--key", help="Approve only if it is still this hold; `show` prints it."),
    reason: Reason = None,
    *,
    yes: Yes = False,
) -> None:
    """Approve what a batch is held for, if it is still what was shown."""
    hold = session.client.get(path_of("batches", batch, "hold"))
    if not yes:
        confirm(f"batch {batch}: {_in_words(hold)}. Approve?", yes=yes)
    asked = {"holdKey": key or hold.get("holdKey"), "reason": reason}
    done = session.client.post(path_of("batches", batch, "hold", "approve"), asked)
    if session.is_for_people:
        session.say(f"batch {batch}: {_in_words(hold)}: approved")
    else:
        session.show(done, BATCHES)


def _in_words(hold: dict[str, Any]) -> str:
    members = hold.get("members") or []
    if members:
        more = f" and {len(members) - 5:,} more" if len(members) > 5 else ""
        return f"{counted(len(members), 'member')} would leave ({wording.text(members[:5])}{more})"
    start = wording.moment(hold.get("newStart"))
    return f"it would start at {start}" if start else wording.text(hold.get("reason"))
