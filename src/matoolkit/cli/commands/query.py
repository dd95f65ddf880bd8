"""`matoolkit query` and `matoolkit template`: what a runbook's source returns, and a file to start from."""

from typing import Annotated, Any

import typer

from matoolkit.cli.answers import printable
from matoolkit.cli.client import path_of
from matoolkit.cli.files import name_of, write_file
from matoolkit.cli.options import Name, Replace, To
from matoolkit.cli.output import stdout, write_bytes
from matoolkit.cli.session import Session, asks_for_text, asks_the_api
from matoolkit.cli.tables import Column, Form, number, print_items, when

app = typer.Typer(no_args_is_help=True)
templates = typer.Typer(no_args_is_help=True)

_GROUPS = (when("BATCH TIME", "batchTime"), number("MEMBERS", "memberCount"))
_SET_ASIDE = (Column("REASON", "reason"), Column("KEY", "key"), Column("DETAIL", "detail"))
_PREVIEW = (number("TOTAL ROWS", "totalRows"), Column("SET ASIDE", "rowsSetAside"))


@app.command()
@asks_the_api
def preview(
    session: Session,
    name: Name,
    limit: Annotated[int, typer.Option(min=0, max=100, help="How many rows are shown.")] = 10,
) -> None:
    """Run a runbook's query and say which batches its rows would make; nothing is changed."""
    with session.busy("asking the source"):
        found = session.client.preview(path_of("runbooks", name, "query", "preview"), limit=limit)
    match session.form:
        case Form.TABLE | Form.WIDE:
            _print_preview(session, found)
        case Form.CSV | Form.JSONL:
            rows = found.get("sampleRows") or []
            session.show_all(rows, _columns(rows), nothing="the source has no rows")
        case _:
            session.show(found, _PREVIEW)


@templates.command()
@asks_for_text
def download(session: Session, name: Name, to: To = None, *, force: Replace = False) -> None:
    """Print a CSV file to start from: the query's columns, and a row that shows how several values are packed."""
    pieces = session.client.text(path_of("runbooks", name, "template"), "text/csv")
    if to is not None:
        write_file(to, pieces, replace=force)
        session.say(f"the template of {name} is in {name_of(to)}")
        return
    write_bytes(pieces)


def _print_preview(session: Session, found: dict[str, Any]) -> None:
    rows = found.get("sampleRows") or []
    if rows:
        print_items(rows, _columns(rows), session.form)
        stdout().print()
    print_items(found.get("batchGroups") or [], _GROUPS, session.form)
    aside = found.get("setAsideSamples") or []
    if aside:
        stdout().print()
        print_items(aside, _SET_ASIDE, session.form)
    count, total = sum((found.get("rowsSetAside") or {}).values()), found.get("totalRows", 0)
    session.say(f"{total:,} rows, {count:,} set aside; nothing was changed")


def _columns(rows: list[dict[str, Any]]) -> list[Column]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [Column(printable(name, 60), name, is_cut=True) for name in names]
