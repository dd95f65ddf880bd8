"""A report as an Excel workbook, written row by row. Texts are texts: none of them is a formula."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import IO, Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter

from matoolkit.cli import wording

_TIME = "yyyy-mm-dd hh:mm:ss"
_BOLD = Font(bold=True)
_WIDTHS = {"key": 34, "state": 12, "error": 80, "error type": 24, "undo error": 60}
_TIME_WIDTH = 20
_PIECE = 1024 * 1024
# What XML cannot hold, and the longest text of a cell.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 32_767

_Item = Mapping[str, Any]


@contextmanager
def workbook_of(
    summary: _Item, people: Iterable[_Item], columns: Sequence[str], now: datetime
) -> Iterator[Iterable[bytes]]:
    """Make a workbook of two sheets, the sums and the people, and return it in pieces."""
    book = Workbook(write_only=True)
    _sums(book, summary, now)
    _people(book, people, columns)
    with tempfile.TemporaryFile() as file:
        book.save(file)
        file.seek(0)
        yield _pieces(file)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _sums(book: Workbook, summary: _Item, now: datetime) -> None:
    sheet: Any = book.create_sheet("Summary")
    sheet.column_dimensions["A"].width = 40
    sheet.column_dimensions["B"].width = 20
    sheet.append([_text(sheet, _timed("written at")), _cell(sheet, now)])
    sheet.append([_text(sheet, "people"), summary["people"]])
    for state, count in summary["states"].items():
        sheet.append([_text(sheet, state.replace("_", " ")), count])
    sheet.append([])
    sheet.append([_title(sheet, title) for title in ("phase", "people", "completed", "failed", "under way", "runbook")])
    for phase in summary["phases"]:
        numbers = [phase[name] for name in ("people", "completed", "failed", "underWay")]
        sheet.append([_text(sheet, phase["phaseName"]), *numbers, _text(sheet, phase["runbookName"])])
    sheet.append([])
    sheet.append([_title(sheet, title) for title in ("error", "people", "phase", "step", "error type", "runbook")])
    for failure in summary["failures"]:
        names = [failure[name] for name in ("phaseName", "stepName", "errorType", "runbookName")]
        sheet.append([_text(sheet, failure["error"]), failure["people"], *(_text(sheet, name) for name in names)])
    if summary["undoFailures"]:
        _not_undone(sheet, summary)


def _not_undone(sheet: Any, summary: _Item) -> None:
    sheet.append([])
    sheet.append([_text(sheet, "people for whom something could not be undone"), summary["peopleNotUndone"]])
    titles = ("error of an undo step", "people", "undoes", "step", "error type", "runbook")
    sheet.append([_title(sheet, title) for title in titles])
    for one in summary["undoFailures"]:
        names = [one[name] for name in ("sequenceName", "stepName", "errorType", "runbookName")]
        sheet.append([_text(sheet, one["error"]), one["people"], *(_text(sheet, name) for name in names)])


def _people(book: Workbook, people: Iterable[_Item], columns: Sequence[str]) -> None:
    sheet: Any = book.create_sheet("People")
    times = [_timed("since"), _timed("T")]
    header = ["key", *columns, "state", "phase", "step", "attempts", times[0], "error type", "error"]
    header += ["undo failed at", "undo error", "batch", "runbook", times[1]]
    for place, title in enumerate(header, start=1):
        sheet.column_dimensions[get_column_letter(place)].width = (
            _TIME_WIDTH if title in times else _WIDTHS.get(title, 18)
        )
    sheet.freeze_panes = "B2"
    sheet.append([_title(sheet, title) for title in header])
    count = 1
    for person in people:
        sheet.append([_cell(sheet, value) for value in _values(person, columns)])
        count += 1
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(header))}{count}"


def _values(person: _Item, columns: Sequence[str]) -> list[Any]:
    own = [person["columns"].get(name) for name in columns]
    step = [person[name] for name in ("phaseName", "stepName", "attempts")]
    error = [person[name] for name in ("errorType", "errorMessage", "undoStepName", "undoErrorMessage")]
    batch = [person["batchId"], person["runbookName"], wording.instant(person["batchStartTime"])]
    return [
        *(person["memberKey"], *own, person["state"].replace("_", " ")),
        *(*step, wording.instant(person["since"]), *error, *batch),
    ]


def _timed(title: str) -> str:
    """Say in which zone the times of a column are; a cell has none."""
    return f"{title} ({wording.times_are()})"


def _cell(sheet: Any, value: Any) -> Any:
    match value:
        case datetime():
            cell = WriteOnlyCell(sheet, wording.zoned(value).replace(tzinfo=None, microsecond=0))
            cell.number_format = _TIME
            return cell
        case None | bool() | int() | float():
            return value
        case str():
            return _text(sheet, value)
        case _:
            return _text(sheet, wording.text(value))


def _text(sheet: Any, value: str | None) -> Any:
    """Make a cell that is a text even if it begins with `=`."""
    if value is None:
        return None
    cell: Any = WriteOnlyCell(sheet, "")
    cell._value = _UNWRITABLE.sub("\ufffd", value)[:_LONGEST]  # noqa: SLF001 - setting `value` would make a formula of it
    cell.data_type = "s"
    return cell


def _title(sheet: Any, text: str) -> Any:
    cell = _text(sheet, text)
    cell.font = _BOLD
    return cell
