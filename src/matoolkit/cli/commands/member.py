"""`matoolkit member`: one person in all batches, and all that was done for it."""

from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.options import All, BatchOption, Limit, Name, Reason
from matoolkit.cli.output import stdout
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, Form, number, print_item, print_items, status, when
from matoolkit.cli.whom import Who, key_meant, member_meant

app = typer.Typer(no_args_is_help=True)

_ENROLMENTS = (
    number("BATCH", "batchId"),
    number("ID", "id"),
    Column("KEY", "memberKey"),
    status("STATE", "state"),
    Column("RUNBOOK", "runbookName"),
    status("BATCH STATUS", "batchStatus"),
    when("T", "batchStartTime"),
)
_MEMBER = (
    number("MEMBER", "id"),
    Column("KEY", "memberKey"),
    number("BATCH", "batchId"),
    Column("RUNBOOK", "runbookName"),
    status("BATCH STATUS", "batchStatus"),
    when("T", "batchStartTime"),
    status("STATE", "state"),
    Column("COMPLETED", "lastCompletedPhase"),
    number("EPOCH", "epoch"),
    when("ADDED", "addedAt"),
    when("LEFT", "removedAt"),
    Column("REASON", "removeReason"),
    when("FAILED", "failedAt"),
    Column("DATA", "data"),
    Column("OUTPUTS", "outputs"),
)
_INCLUDED = (
    Column("RUNBOOK", "runbookName"),
    Column("KEY", "memberKey"),
    when("T", "batchTime"),
    number("BATCH", "batchId"),
    Column("WAITS FOR", "waitsFor"),
)
_STEPS = (
    number("EPOCH", "epoch"),
    Column("PHASE", "phaseName"),
    Column("STEP", "stepName"),
    status(),
    number("TRY", "attempt"),
    when("ENDED", "completedAt"),
    Column("ERROR", "errorMessage"),
)
_ROLLBACKS = (number("EPOCH", "epoch"), Column("UNDOES", "sequenceName"), Column("BECAUSE", "cause"), *_STEPS[2:])


@app.command()
@asks_the_api
def find(
    session: Session,
    part: Annotated[str, typer.Argument(metavar="PART", help="The key of the member or a part of it, in any case.")],
    limit: Limit = 100,
    *,
    all_: All = False,
) -> None:
    """Find people by a part of their key, in every batch in which they are or were, newest first."""
    found = session.client.pages(path_of("members"), None if all_ else limit, keyContains=part)
    session.show_pages(found, _ENROLMENTS, nothing="no batch has or had such a member")


@app.command()
@asks_the_api
def include(
    session: Session,
    name: Name,
    key: Annotated[str, typer.Argument(help="Key of the member, in any case.")],
    reason: Reason = None,
) -> None:
    """Include a row that the scheduler keeps outside because T has passed or the member is done."""
    asked = {"memberKey": key, "reason": reason}
    done = session.client.post(path_of("runbooks", name, "members", "include"), asked)
    if not session.is_for_people:
        session.show(done, _INCLUDED)
        return
    where = f"batch {done['batchId']}" if done.get("batchId") else "a new batch"
    waits_for = wording.text(done.get("waitsFor"))
    ending = f"; it waits, {waits_for}" if waits_for else " with the next tick"
    start = wording.moment(done.get("batchTime"))
    session.say(f"{wording.text(done.get('memberKey'))} joins {where} of {start}{ending}")


@app.command()
@asks_the_api
def history(session: Session, who: Who, batch: BatchOption = None) -> None:
    """Show everything that was done for a person, in all its batches, newest first, at most 20."""
    if batch is not None:
        member = member_meant(session, batch, who)["id"]
        places = [session.client.get(path_of("batches", batch, "members", member))]
    else:
        places = session.client.whole_list(path_of("members", "history"), key=key_meant(session, who))
    if not session.is_for_people:
        session.show_all(places, _MEMBER, nothing="")
        return
    for at, place in enumerate(places):
        if at:
            stdout().print()
        _print_history(place, session.form)


def _print_history(found: dict[str, Any], form: Form) -> None:
    print_item(found, _MEMBER, form)
    for steps, columns in ((found.get("steps"), _STEPS), (found.get("rollbacks"), _ROLLBACKS)):
        if steps:
            stdout().print()
            print_items(steps, columns, form)
