"""`matoolkit member`: one person in all batches, and all that was done for it."""

from typing import Annotated, Any

import typer

from matoolkit.cli.client import path_of
from matoolkit.cli.options import Batch, Member
from matoolkit.cli.output import stdout
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, Form, number, print_item, print_items, status, when

app = typer.Typer(help="Find members, and see all that was done for them.", no_args_is_help=True)

_ENROLMENTS = (
    number("BATCH", "batchId"),
    number("ID", "id"),
    Column("KEY", "memberKey"),
    status(),
    Column("RUNBOOK", "runbookName"),
    status("BATCH STATUS", "batchStatus"),
    when("T", "batchStartTime"),
)
_MEMBER = (
    number("MEMBER", "id"),
    Column("KEY", "memberKey"),
    status(),
    number("EPOCH", "epoch"),
    when("ADDED", "addedAt"),
    when("LEFT", "removedAt"),
    Column("REASON", "removeReason"),
    when("FAILED", "failedAt"),
    Column("DATA", "data"),
    Column("OUTPUTS", "outputs"),
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
    """Find every batch that somebody is or was in, newest first, at most 100."""
    found = session.client.whole_list(path_of("members"), key=key)
    session.show_all(found, _ENROLMENTS, nothing="nobody of that key is or was in a batch")


@app.command()
@asks_the_api
def history(session: Session, batch: Batch, member: Member) -> None:
    """Show a member with everything that was done for it."""
    found = session.client.get(path_of("batches", batch, "members", member))
    if session.is_for_people:
        _print_history(found)
    else:
        session.show(found, _MEMBER)


def _print_history(found: dict[str, Any]) -> None:
    print_item(found, _MEMBER, Form.TABLE)
    for steps, columns in ((found.get("steps"), _STEPS), (found.get("rollbacks"), _ROLLBACKS)):
        if steps:
            stdout().print()
            print_items(steps, columns, Form.TABLE)
