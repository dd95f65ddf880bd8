"""`matoolkit audit`: who changed what, and why."""

from typing import Annotated

import typer

from matoolkit.cli.client import path_of
from matoolkit.cli.options import All, BatchOption, Limit, RunbookOption
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, number, when

app = typer.Typer(no_args_is_help=True)

_ENTRIES = (
    number("ID", "id"),
    when("AT", "at"),
    Column("WHO", "actor"),
    Column("DID", "action"),
    Column("TO", lambda item: f"{item.get('subjectType')} {item.get('subjectId')}"),
    Column("REASON", "reason"),
    Column("AFTER", "after", is_cut=True),
)


@app.command("list")
@asks_the_api
def list_(
    session: Session,
    batch: BatchOption = None,
    runbook: RunbookOption = None,
    subject_type: Annotated[
        str | None, typer.Option(help="Only changes to this kind of subject, such as `batch`.")
    ] = None,
    subject_id: Annotated[str | None, typer.Option(help="Only changes to the subject with this id.")] = None,
    who: Annotated[str | None, typer.Option(help="Only what this person changed.", show_default=False)] = None,
    limit: Limit = 100,
    *,
    all_: All = False,
) -> None:
    """List what people changed, newest first. Reads are not recorded."""
    query = {"batchId": batch, "runbook": runbook, "subjectType": subject_type, "subjectId": subject_id, "actor": who}
    found = session.client.pages(path_of("audit"), None if all_ else limit, **query)
    session.show_pages(found, _ENTRIES, nothing="nobody changed anything")
