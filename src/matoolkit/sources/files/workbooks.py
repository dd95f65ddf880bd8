"""An Excel workbook as a list: the values that were saved last, and nothing executed or fetched (rule U4).

Whatever a hostile file claims about itself, only so many bytes are unpacked, and a sheet is read row by row.
"""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.etree.ElementTree import ParseError

from matoolkit.errors import SourceFailed, did_you_mean
from matoolkit.sources.files.header import Header, read_header

if TYPE_CHECKING:
    from openpyxl import Workbook

# Some two million cells take a quarter of it.
MOST_UNPACKED = 512 * 1024 * 1024
# Kept in memory while a sheet is read, unlike the sheet.
MOST_SHARED = 128 * 1024 * 1024
MOST_ROWS = 1_048_576

# The library has no error of its own: a broken part shows as any of these.
_BROKEN = (
    *(zipfile.BadZipFile, ParseError, zlib.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
)
_SHEETS = "xl/worksheets/"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def read_workbook(file: BinaryIO, name: str, sheet: str | None) -> tuple[Header, Iterator[list[Any]]]:
    """Return the header, which is the first row that is not empty, and the rows of a sheet."""
    _require_workbook(file, name)
    with _told_in_our_words(name):
        # It takes a third of a second to import, and most processes never read a workbook.
        from openpyxl import load_workbook

        workbook = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        page: Any = _sheet(workbook, name, sheet)
        # What the sheet says of its own size may be wrong; rows beyond it would be missed.
        page.reset_dimensions()
        row = next(filter(_has_cells, page.iter_rows(max_row=MOST_ROWS)), ())
        header = read_header(name, [_value(cell) for cell in row])
    return header, _rows(page, name, header, after=max(getattr(cell, "row", 0) for cell in row))


def _rows(page: Any, name: str, header: Header, after: int) -> Iterator[list[Any]]:
    with _told_in_our_words(name):
        for row in filter(_has_cells, page.iter_rows(after + 1, MOST_ROWS, max_col=header.width)):
            yield [_value(row[place]) for place in header.places]


def _has_cells(row: Any) -> bool:
    return any(cell.value is not None for cell in row)


def _sheet(workbook: "Workbook", name: str, sheet: str | None) -> Any:
    sheets = {page.title.casefold(): page for page in workbook.worksheets}
    if sheet is None and sheets:
        return next(iter(sheets.values()))
    if found := sheets.get((sheet or "").casefold()):
        return found
    titles = [page.title for page in workbook.worksheets]
    hint = did_you_mean(sheet or "", titles) or f"it has {', '.join(titles[:10]) or 'none with cells'}"
    raise SourceFailed(f"the workbook '{name}' has no sheet '{sheet or ''}'", hint=hint)


def _value(cell: Any) -> Any:
    """Return a cell as a query sees it: dates as text that says whether there is a time, numbers as numbers."""
    match value := cell.value:
        case datetime():
            return _date_and_time(value, cell.number_format)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if not -(2**63) <= value < 2**63:
            return float(value)
        case _:
            return value


def _date_and_time(value: datetime, number_format: str) -> str:
    """Write a date as people see it: a day alone, unless the cell has a time or shows one.

    A number is not exact enough for more than seconds.
    """
    rounded = (value + timedelta(milliseconds=500)).replace(microsecond=0)
    shows_time = "h" in number_format.casefold()
    if rounded.time() == time() and not shows_time:
        return rounded.date().isoformat()
    return rounded.isoformat(sep=" ")


def _require_workbook(file: BinaryIO, name: str) -> None:
    beginning = file.read(8)
    if beginning.startswith(b"\xd0\xcf\x11\xe0"):
        is_protected = _ENCRYPTED in file.read(4 * 1024 * 1024)
        what = "is protected by a password" if is_protected else "is an old Excel workbook (.xls)"
        hint = "in Excel: Save As, 'Excel Workbook (*.xlsx)', without a password"
        raise SourceFailed(f"the file '{name}' {what}", hint=hint)
    if not beginning:
        raise SourceFailed(f"the file '{name}' is empty", hint="its first row names the columns")
    if not beginning.startswith(b"PK\x03\x04"):
        message = f"the file '{name}' is no Excel workbook, whatever its name says"
        raise SourceFailed(message, hint="if it is CSV, let its name end in .csv, here and in the runbook")
    _require_bounded(file, name)


def _require_bounded(file: BinaryIO, name: str) -> None:
    """Refuse a file that unpacks to too much; no more is ever unpacked of a part than it claims to have."""
    try:
        parts = zipfile.ZipFile(file).infolist()
    except _BROKEN as fault:
        raise _broken(name) from fault
    kept = sum(part.file_size for part in parts if not part.filename.startswith(_SHEETS))
    if kept > MOST_SHARED or sum(part.file_size for part in parts) > MOST_UNPACKED:
        message = f"the workbook '{name}' unpacks to more than can be read"
        raise SourceFailed(message, hint="save only the list in it, or save it as CSV")
    file.seek(0)


@contextmanager
def _told_in_our_words(name: str) -> Iterator[None]:
    try:
        yield
    except _BROKEN as fault:
        # The library's own words repeat where the file is.
        raise _broken(name, has_entities=_is_about_entities(fault)) from fault


def _is_about_entities(fault: BaseException | None) -> bool:
    from defusedxml import DefusedXmlException

    while fault is not None and not isinstance(fault, DefusedXmlException):
        fault = fault.__cause__ or fault.__context__
    return fault is not None


def _broken(name: str, *, has_entities: bool = False) -> SourceFailed:
    if has_entities:
        message = f"the workbook '{name}' defines entities, which no spreadsheet does"
        return SourceFailed(message, hint="do not open it, and ask who made it")
    message = f"the workbook '{name}' is broken or not complete"
    return SourceFailed(message, hint="open it in Excel and save it again")
