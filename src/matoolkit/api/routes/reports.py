"""Reports: who is done, who failed and why, across batches."""

from datetime import UTC, datetime
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from matoolkit.admin.csvfiles import csv_lines
from matoolkit.admin.reporting import Person, everybody, people_page, require_scope, summary_of
from matoolkit.api.paging import Count, Page, PageQuery, page, position
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.naming import RowId, Shape
from matoolkit.api.shapes.reports import PersonShape, SummaryShape, person_shape, summary_shape
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.domain.states import MemberState
from matoolkit.store import Transaction
from matoolkit.store.reporting import ReportFilter, count_report

router = APIRouter(prefix="/api", tags=["reports"])

_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
_MOST_COLUMNS = 50


class ScopeQuery(Shape):
    """Whose report it is: that of a batch, of a runbook's batches, or of everybody."""

    batch_id: RowId | None = None
    runbook: Annotated[str | None, Field(max_length=200)] = None

    @property
    def scope(self) -> ReportFilter:
        """What the store looks for."""
        return ReportFilter(self.batch_id, self.runbook)


class ReportedQuery(ScopeQuery):
    """Which people, and what of their rows."""

    state: MemberState | None = None
    key_contains: Annotated[
        str | None,
        Field(min_length=1, max_length=MAX_KEY_LENGTH, description="Part of the key; its case does not matter."),
    ] = None
    error_contains: Annotated[
        str | None,
        Field(min_length=1, max_length=1000, description="Part of the error with which the last step failed."),
    ] = None
    undo_failed: Annotated[
        bool, Field(description="Only people for whom a step that was to undo something failed.")
    ] = False
    columns: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1000)]],
        Field(
            default_factory=list,
            max_length=_MOST_COLUMNS,
            description="Columns of people's rows to show; may be repeated.",
        ),
    ]

    @property
    def scope(self) -> ReportFilter:
        """What the store looks for."""
        texts = (self.key_contains, self.error_contains)
        return ReportFilter(self.batch_id, self.runbook, self.state, *texts, self.undo_failed)


class ReportQuery(ReportedQuery, PageQuery):
    """A page of these people."""


@router.get("/report")
def report(serving: Serving, _: Reader, wanted: Annotated[ReportQuery, Query()]) -> Page[PersonShape]:
    """List people with their state and the last step that was tried, across batches, by batch."""
    after = position(wanted.cursor, "report") or 0
    with serving.store.reading() as tx:
        asked = require_scope(tx, wanted.scope)
        people = people_page(tx, asked, wanted.columns, after=after, limit=wanted.limit + 1)
        # Counting takes as long as the list is; who turns the page has been told.
        count = None if after else _count(tx, asked)
    return page(people, wanted.limit, "report", lambda person: person.row.id, person_shape, count)


@router.get("/report.csv", response_class=Response, responses=_CSV)
def report_as_csv(serving: Serving, _: Reader, wanted: Annotated[ReportedQuery, Query()]) -> StreamingResponse:
    """Return the report of these people as CSV, with times that a spreadsheet reads and cells that none executes."""
    with serving.store.reading() as tx:
        asked = require_scope(tx, wanted.scope)
    people = everybody(serving.store, asked, wanted.columns)
    # What is wrong with the request shows with the first row, before anything is answered.
    first = next(people, None)
    rows = (_cells(person) for person in chain([first], people) if person is not None)
    headers = {"Content-Disposition": 'attachment; filename="report.csv"'}
    lines = csv_lines(_header(wanted.columns), rows)
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/report/summary")
def summary(serving: Serving, _: Reader, wanted: Annotated[ScopeQuery, Query()]) -> SummaryShape:
    """Count people by state, by phase and by the error with which they failed."""
    return summary_shape(summary_of(serving.store, wanted.scope))


def _count(tx: Transaction, asked: ReportFilter) -> Count:
    everybody_of = count_report(tx, ReportFilter(asked.batch_id, asked.runbook_name))
    is_filtered = asked != ReportFilter(asked.batch_id, asked.runbook_name)
    return Count(count_report(tx, asked) if is_filtered else everybody_of, everybody_of)


def _header(columns: list[str]) -> list[str]:
    batch = ("batch", "runbook", "T (UTC)")
    failed = ("error type", "error", "undo failed at", "undo error")
    return ["key", *columns, "state", "phase", "step", "attempts", "since (UTC)", *failed, *batch]


def _cells(person: Person) -> list[Any]:
    shape = person_shape(person)
    step = (shape.phase_name, shape.step_name, shape.attempts, _time(shape.since), shape.error_type)
    batch = (shape.batch_id, shape.runbook_name, _time(shape.batch_start_time))
    return [
        *(shape.member_key, *shape.columns.values(), shape.state.replace("_", " ")),
        *(*step, shape.error_message, shape.undo_step_name, shape.undo_error_message, *batch),
    ]


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
