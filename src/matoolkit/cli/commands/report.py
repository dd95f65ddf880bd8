"""`matoolkit report`: who is done, who failed and why, in every form that people pass on."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.answers import printable
from matoolkit.cli.client import path_of
from matoolkit.cli.files import name_of, write_file
from matoolkit.cli.options import OneBatch, Replace, RunbookOption
from matoolkit.cli.output import write_bytes
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, Form, number, status, when
from matoolkit.domain.states import MemberState

_BOM = b"\xef\xbb\xbf"
# Who would read more of them on a page?
_MOST_FAILED = 200
_OF_BATCH = (number("BATCH", "batchId"), Column("RUNBOOK", "runbookName"), when("T", "batchStartTime"))
_ALL = "All batches of all runbooks."
_FILE = {"metavar": "FILE", "show_default": False}


@asks_the_api
def report(
    session: Session,
    batch: OneBatch = None,
    runbook: RunbookOption = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns of people's rows to show.", show_default=False)
    ] = None,
    state: Annotated[MemberState | None, typer.Option(help="Only in this state.", show_default=False)] = None,
    key: Annotated[str | None, typer.Option(help="Only people whose key contains this.", show_default=False)] = None,
    error: Annotated[str | None, typer.Option(help="Only errors that contain this.", show_default=False)] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many at most; all if left out.")] = None,
    xlsx: Annotated[str | None, typer.Option("--xlsx", help="Write an Excel workbook.", **_FILE)] = None,
    html: Annotated[str | None, typer.Option("--html", help="Write a page for a manager.", **_FILE)] = None,
    *,
    undo_failed: Annotated[bool, typer.Option("--undo-failed", help="Only if an undo step failed.")] = False,
    everybody: Annotated[bool, typer.Option("--all", help=_ALL)] = False,
    bom: Annotated[bool, typer.Option("--bom", help="Begin CSV with a byte order mark, for Excel.")] = False,
    force: Replace = False,
) -> None:
    """Say who is done, who failed and why; for people, Excel or a manager."""
    _require_one(batch, runbook, everybody=everybody)
    scope = {"batchId": batch, "runbook": runbook}
    chosen = [name.strip() for name in (columns or "").split(",") if name.strip()]
    query = {
        **scope,
        "state": state and state.value,
        "keyContains": key,
        "errorContains": error,
        "undoFailed": undo_failed or None,
        "columns": chosen or None,
    }
    if html is not None:
        _write_page(session, html, scope, replace=force)
    if xlsx is not None:
        _write_workbook(session, xlsx, scope, query, limit, replace=force)
    if html is None and xlsx is None:
        _print(session, query, chosen, limit, bom=bom, of_one_batch=batch is not None)


def _require_one(batch: int | None, runbook: str | None, *, everybody: bool) -> None:
    if sum((batch is not None, runbook is not None, everybody)) != 1:
        raise typer.BadParameter("say whose report it is: the number of a batch, --runbook NAME, or --all")


def _print(
    session: Session, query: dict[str, Any], chosen: list[str], limit: int | None, *, bom: bool, of_one_batch: bool
) -> None:
    if session.form is Form.CSV and limit is None:
        pieces = session.client.text(path_of("report.csv"), "text/csv", **query)
        write_bytes(chain([_BOM] if bom else [], pieces))
        if wording.times_are() != "UTC":
            session.say("times in CSV are UTC, as its header says; --xlsx and --html take --local")
        return
    found = session.client.pages(path_of("report"), limit, **query)
    session.show_pages(found, _columns(chosen, of_one_batch=of_one_batch), nothing="there is nobody like that")


def _columns(chosen: list[str], *, of_one_batch: bool) -> list[Column]:
    own = [Column(printable(name, 60), _value_of(name)) for name in chosen]
    return [
        *(() if of_one_batch else _OF_BATCH),
        Column("KEY", "memberKey"),
        *own,
        status("STATE", "state"),
        Column("PHASE", "phaseName"),
        Column("STEP", "stepName"),
        number("TRIES", "attempts"),
        when("SINCE", "since"),
        Column("ERROR", _error),
    ]


def _value_of(name: str) -> Callable[[Any], Any]:
    return lambda item: item["columns"].get(name)


def _error(item: Any) -> str | None:
    told = [_typed(item.get("errorType"), item["errorMessage"])] if item.get("errorMessage") is not None else []
    if many := int(item.get("undoFailures") or 0):
        more = f" (and {many - 1} more)" if many > 1 else ""
        what = _typed(item.get("undoErrorType"), item.get("undoErrorMessage") or "no error was kept")
        told.append(f"undo failed at {item.get('undoStepName')}{more}: {what}")
    return "; ".join(told) or None


def _typed(kind: str | None, text: str) -> str:
    return f"{kind}: {text}" if kind else text


def _write_page(session: Session, file: str, scope: dict[str, Any], *, replace: bool) -> None:
    from matoolkit.cli.reports.page import People, page_of

    with session.busy("writing the page"):
        summary = session.client.get(path_of("report", "summary"), **scope)
        failed = session.client.pages(path_of("report"), _MOST_FAILED, **scope, state=MemberState.FAILED.value)
        not_undone = session.client.pages(path_of("report"), _MOST_FAILED, **scope, undoFailed=True)
        people = People(list(failed), list(not_undone) if summary["peopleNotUndone"] else [])
        text = page_of(summary, people, session.now(), session.client.speed)
        size = write_file(file, [text.encode()], replace=replace)
    whom = "1 person" if summary["people"] == 1 else f"{summary['people']:,} people"
    session.say(f"the report on {whom} is in {name_of(file)}, {size:,} bytes")


def _write_workbook(
    session: Session, file: str, scope: dict[str, Any], query: dict[str, Any], limit: int | None, *, replace: bool
) -> None:
    from matoolkit.cli.reports.workbook import workbook_of

    with session.busy("writing the workbook"):
        summary = session.client.get(path_of("report", "summary"), **scope)
        people: Iterator[Any] = iter(session.client.pages(path_of("report"), limit, **query))
        with workbook_of(summary, people, query["columns"] or [], session.now()) as pieces:
            size = write_file(file, pieces, replace=replace)
    session.say(f"the report is in {name_of(file)}, {size:,} bytes")
