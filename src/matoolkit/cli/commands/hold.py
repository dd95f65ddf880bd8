"""`matoolkit hold`: batches that wait for a person's approval."""

from typing import Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.commands.batch import BATCHES
from matoolkit.cli.options import All, HeldBatch, Limit, Reason, Watch, Yes
from matoolkit.cli.output import counted
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, number, when
from matoolkit.cli.watching import watch_items

app = typer.Typer(help="Approve what batches are held for.", no_args_is_help=True)

_MOST_NAMED = 5
_HOLDS = (*BATCHES[:-1], Column("HELD FOR", "holdReason"))
_HOLD = (
    number("BATCH", "batchId"),
    Column("RUNBOOK", "runbookName"),
    Column("KIND", "kind"),
    Column("REASON", "reason"),
    when("HELD SINCE", "heldAt"),
    when("NEW T", "newStart"),
    number("COUNT", "memberCount"),
    Column("MEMBERS", "members"),
    Column("APPROVED", "isApproved"),
    Column("BY", "approvedBy"),
    Column("WAITS FOR", "waitsFor"),
    Column("KEY", "holdKey"),
)
_MEMBERS = (number("ID", "id"), Column("KEY", "memberKey"))


@app.command("list")
@asks_the_api
def list_(session: Session, *, watch: Watch = False) -> None:
    """List the batches that wait for a person's approval, newest first."""
    found = session.client.pages(path_of("holds"))
    if watch:
        watch_items(session, lambda: list(found), _HOLDS)
    else:
        session.show_pages(found, _HOLDS, nothing="nothing is held")


@app.command()
@asks_the_api
def show(session: Session, batch: HeldBatch) -> None:
    """Show what a batch is held for: how many would leave and the first 100 of them, or when it would start."""
    hold = session.client.get(path_of("batches", batch, "hold"))
    session.show(hold, _HOLD)
    named, count = len(hold.get("members") or []), int(hold.get("memberCount") or 0)
    if named < count:
        session.say(f"the first {named:,} of {count:,}; `matoolkit hold members {batch} --all` lists all")


@app.command()
@asks_the_api
def members(session: Session, batch: HeldBatch, limit: Limit = 100, *, all_: All = False) -> None:
    """List exactly the members that a hold is about."""
    found = session.client.pages(path_of("batches", batch, "hold", "members"), None if all_ else limit)
    session.show_pages(found, _MEMBERS, nothing="the hold is about no member")


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
        waits_for = wording.text(done.get("waitsFor"))
        session.say(f"batch {batch}: {_in_words(hold)}: approved" + (f"; it waits, {waits_for}" if waits_for else ""))
    else:
        session.show(done, BATCHES)


def _in_words(hold: dict[str, Any]) -> str:
    members = hold.get("members") or []
    if members:
        count = max(int(hold.get("memberCount") or 0), len(members))
        more = f" and {count - _MOST_NAMED:,} more" if count > _MOST_NAMED else ""
        return f"{counted(count, 'member')} would leave ({wording.text(members[:_MOST_NAMED])}{more})"
    start = wording.moment(hold.get("newStart"))
    return f"it would start at {start}" if start else wording.text(hold.get("reason"))
