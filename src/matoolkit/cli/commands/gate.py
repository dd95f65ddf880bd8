"""`matoolkit gate`: what keeps work from going on, and why."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.options import All, BatchOption, Limit, Reason, Watch, given
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, number, when
from matoolkit.cli.watching import watch_items

app = typer.Typer(no_args_is_help=True)

GATES = (
    number("ID", "id"),
    Column("KIND", "kind"),
    Column("KEEPS", "subject"),
    Column("DOOR", "reach"),
    when("SINCE", "shutFrom"),
    when("UNTIL", "shutUntil"),
    Column("BY", "shutBy"),
    Column("REASON", "reason"),
)
GATE = (
    *GATES,
    Column("SWEPT", "isSwept"),
    when("OPENED", "openedAt"),
    Column("OPENED BY", "openedBy"),
    Column("WHY OPENED", "openedReason"),
    number("MAY FAIL", "allowed"),
)

Allow = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="Too many had failed: shut it again after N more. Without it, after the next one.",
    ),
]
Gate = Annotated[int, typer.Argument(metavar="N", min=1, help="Number of the gate.")]


@app.command("list")
@asks_the_api
def list_(
    session: Session, batch: BatchOption = None, limit: Limit = 100, *, all_: All = False, watch: Watch = False
) -> None:
    """List the gates that stand, freezes that are to come too, newest first; with `--all` those that were opened."""
    named = {} if batch is None else {"batchId": batch}
    found = session.client.pages(path_of("gates"), limit, inForce=not all_, **named)
    if watch:
        watch_items(session, lambda: list(found), GATES)
    else:
        session.show_pages(found, GATE if all_ else GATES, nothing="no gate is shut")


@app.command()
@asks_the_api
def show(session: Session, gate: Gate) -> None:
    """Show one gate."""
    session.show(session.client.get(path_of("gates", gate)), GATE)


@app.command("open")
@asks_the_api
def open_(session: Session, gate: Gate, reason: Reason = None, allow: Allow = None) -> None:
    """Open a gate, so that what waited goes on; a hold is approved instead."""
    open_one(session, gate, reason, allow)


def open_one(session: Session, gate: int, reason: str | None, allow: int | None = None) -> None:
    """Open the gate of a number, and say what is still shut."""
    asked = {"reason": given(reason)} | ({} if allow is None else {"allow": allow})
    done = session.client.post(path_of("gates", gate, "open"), asked)
    told(session, done)
    # Windows, sign-offs and pilots are no stored gates, and may keep for long what this gate kept.
    for batch in {one["batchId"] for one in done["opened"] if one.get("batchId") is not None}:
        session.say(f"`matoolkit explain batch {batch}` says whether anything else keeps it")


def told(session: Session, done: Mapping[str, Any]) -> None:
    """Show what was opened, and say what is still shut."""
    session.show_all(done["opened"], GATES, nothing="nothing was opened")
    for gate in done["still"]:
        session.say(f"gate {gate['id']} keeps it still ({wording.text(gate['kind'])}): {gate['reason']}")
