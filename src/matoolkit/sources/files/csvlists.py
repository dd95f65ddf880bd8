"""CSV as a list: UTF-8, with or without BOM, cells separated by commas (rules A4 and U4)."""

import csv
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from matoolkit.domain.spreadsheets import SAVE_AS_CSV, other_separator, other_than_csv
from matoolkit.errors import SourceFailed
from matoolkit.sources.files.header import Header, read_header

_OR_WORKBOOK = f"{SAVE_AS_CSV}, or as a workbook (.xlsx), and name that in the runbook"


def read_csv_list(file: BinaryIO, name: str) -> tuple[Header, Iterator[list[Any]]]:
    """Return the header and the rows; an empty cell is null."""
    if what := other_than_csv(file.read(8)):
        hint = "let its name end in .xlsx, here and in the runbook" if what == "an Excel workbook" else _OR_WORKBOOK
        raise SourceFailed(f"the file '{name}' is {what}, not CSV", hint=hint)
    file.seek(0)
    rows = _rows(file, name)
    _, header = next(rows, (0, []))
    if separator := other_separator(header):
        message = f"the cells of the file '{name}' are separated by {separator}, not by commas"
        raise SourceFailed(message, hint="the computer's region decides that in Excel: save it as a workbook (.xlsx)")
    found = read_header(name, header)
    return found, _cells(rows, found, len(header), name)


def _rows(file: BinaryIO, name: str) -> Iterator[tuple[int, list[str]]]:
    """Read rows that are not empty, each with the number of its last line."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    lines = csv.reader(text, strict=True)
    try:
        yield from ((lines.line_num, row) for row in lines if any(row))
    except UnicodeDecodeError:
        message = f"the file '{name}' is not UTF-8 text, after line {lines.line_num}"
        raise SourceFailed(message, hint=_OR_WORKBOOK) from None
    except csv.Error as broken:
        raise SourceFailed(f"the file '{name}' cannot be read after line {lines.line_num}: {broken}") from None
    finally:
        if not file.closed:
            text.detach()


def _cells(rows: Iterator[tuple[int, list[str]]], header: Header, width: int, name: str) -> Iterator[list[Any]]:
    for line, row in rows:
        if len(row) != width:
            message = f"line {line} of the file '{name}' has {len(row)} cells, and the first has {width}"
            raise SourceFailed(message, hint="put quotes around cells with commas in them")
        yield [row[place] or None for place in header.places]
