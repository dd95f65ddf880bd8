"""`matoolkit batch`: members of batches and their steps."""

from enum import StrEnum
from typing import Annotated

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.commands.batch import upload
from matoolkit.cli.files import name_of, write_file
from matoolkit.cli.options import All, Batch, Limit, Reason, Replace, To, Yes
from matoolkit.cli.output import write_bytes
from matoolkit.cli.session import Session, asks_for_text, asks_the_api, confirm
from matoolkit.cli.tables import Column, number, status, when
from matoolkit.cli.whom import Who, member_meant
from matoolkit.domain.states import MemberState, MemberStatus, StepStatus
from matoolkit.words import counted

app = typer.Typer()


def _if_so(value: object) -> str:
    return "yes" if value else ""


_MEMBERS = (
    number("ID", "id"),
    Column("KEY", "memberKey"),
    status("STATE", "state"),
    Column("COMPLETED", "lastCompletedPhase"),
    when("ADDED", "addedAt"),
    when("LEFT", "removedAt"),
    when("FAILED", "failedAt"),
    Column("REASON", "removeReason"),
    Column("PILOT", "isPilot", _if_so),
)
_STEPS = (
    number("ID", "id"),
    Column("MEMBER", "memberKey"),
    Column("PHASE", "phaseName"),
    Column("STEP", "stepName"),
    status(),
    number("TRY", "attempt"),
    Column("ERROR", "errorMessage", is_cut=True),
)
_ADDED = (number("BATCH", "batchId"), number("ADDED", "addedCount"), number("SKIPPED", "skippedCount"))
_REMOVED = (number("BATCH", "batchId"), number("MEMBER", "memberId"), Column("KEY", "memberKey"))


class Export(StrEnum):
    """What is exported."""

    MEMBERS = "members"
    STEPS = "steps"


@app.command()
@asks_the_api
def members(
    session: Session,
    batch: Batch,
    wanted: Annotated[
        MemberState | None, typer.Option("--state", help="Only in this state.", show_default=False)
    ] = None,
    stored: Annotated[
        MemberStatus | None, typer.Option("--status", help="Only with this status in its batch.", show_default=False)
    ] = None,
    key: Annotated[str | None, typer.Option(help="Only members whose key contains this.", show_default=False)] = None,
    limit: Limit = 100,
    *,
    all_: All = False,
) -> None:
    """List the members of a batch."""
    query = {"state": wanted and wanted.value, "status": stored and stored.value, "keyContains": key}
    found = session.client.pages(path_of("batches", batch, "members"), None if all_ else limit, **query)
    session.show_pages(found, _MEMBERS, nothing="there is no such member")


@app.command()
@asks_the_api
def steps(
    session: Session,
    batch: Batch,
    phase: Annotated[str | None, typer.Option(help="Only of this phase.", show_default=False)] = None,
    wanted: Annotated[
        StepStatus | None, typer.Option("--status", help="Only in this state.", show_default=False)
    ] = None,
    limit: Limit = 100,
    *,
    all_: All = False,
) -> None:
    """List the steps of the members of a batch."""
    query = {"phase": phase, "status": wanted and wanted.value}
    found = session.client.pages(path_of("batches", batch, "steps"), None if all_ else limit, **query)
    session.show_pages(found, _STEPS, nothing="there is no such step")


@app.command("add-members")
@asks_the_api
def add_members(
    session: Session,
    batch: Batch,
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV with the members; - is standard input.")],
    reason: Reason = None,
) -> None:
    """Add the rows of a CSV file to a manual batch; members of an unfinished batch are skipped."""
    done = upload(session, path_of("batches", batch, "members"), {"reason": reason} if reason else {}, file)
    if session.is_for_people:
        session.say(f"{counted(int(done.get('addedCount') or 0), 'member')} joined batch {batch}")
    else:
        session.show(done, _ADDED)


@app.command("remove-member")
@asks_the_api
def remove_member(session: Session, batch: Batch, who: Who, reason: Reason = None, *, yes: Yes = False) -> None:
    """Remove a member from a manual batch; the steps of `on_member_removed` run."""
    member = member_meant(session, batch, who)
    confirm(f"take {wording.text(member.get('memberKey'))} out of batch {batch}?", yes=yes)
    done = session.client.delete(path_of("batches", batch, "members", member["id"]), reason=reason)
    if session.is_for_people:
        session.say(f"{wording.text(done.get('memberKey'))} left batch {batch}")
    else:
        session.show(done, _REMOVED)


@app.command()
@asks_for_text
def export(
    session: Session,
    batch: Batch,
    what: Annotated[Export, typer.Argument(help="What to export.")] = Export.MEMBERS,
    to: To = None,
    *,
    force: Replace = False,
) -> None:
    """Print all members or steps of a batch as CSV, with cells that no spreadsheet executes."""
    pieces = session.client.text(path_of("batches", batch, f"{what}.csv"), "text/csv")
    if to is None:
        write_bytes(pieces)
        return
    with session.busy("exporting"):
        size = write_file(to, pieces, replace=force)
    session.say(f"the {what} of batch {batch} are in {name_of(to)}, {size:,} bytes")
