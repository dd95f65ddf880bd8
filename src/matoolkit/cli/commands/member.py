"""`matoolkit member`: one person in all batches, and all that was done for it."""

from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.options import Batch, Member, Name, Reason
from matoolkit.cli.output import stdout
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, Form, number, print_item, print_items, status, when

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
def find(session: Session, key: Annotated[str, typer.Argument(help="Key of the member, in any case.")]) -> None:
    """Find every batch that a person is or was in, newest first, at most 100."""
    found = session.client.whole_list(path_of("members"), key=key)
    session.show_all(found, _ENROLMENTS, nothing="no batch has or had a member with that key")


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
def history(session: Session, batch: Batch, member: Member) -> None:
    """Show a member with everything that was done for it."""
    found = session.client.get(path_of("batches", batch, "members", member))
    if session.is_for_people:
        _print_history(found, session.form)
    else:
        session.show(found, _MEMBER)


def _print_history(found: dict[str, Any], form: Form) -> None:
    print_item(found, _MEMBER, form)
    for steps, columns in ((found.get("steps"), _STEPS), (found.get("rollbacks"), _ROLLBACKS)):
        if steps:
            stdout().print()
            print_items(steps, columns, form)
