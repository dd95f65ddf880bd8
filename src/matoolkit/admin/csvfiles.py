"""CSV in and out (rule A4): what people upload, what they can start from, and exports that no spreadsheet executes."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, BinaryIO

import orjson

from matoolkit.admin.uploads import UploadedRow
from matoolkit.domain.cells import MOST_COLUMNS, UnreadableCell, multi_valued_cell
from matoolkit.domain.keys import folded
from matoolkit.domain.spreadsheets import SAVE_AS_CSV, other_separator, other_than_csv
from matoolkit.errors import InvalidMembers
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.query import query_facts

_PACKED = {
    "semicolon_delimited": "first;second",
    "comma_delimited": "first,second",
    "json_array": '["first", "second"]',
}
# What a spreadsheet takes for a formula, full-width forms included; a plain number is not one.
_FORMULA = re.compile("^\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]")
_NUMBER = re.compile(r"^[+-]?\d+(\.\d+)?$")


@dataclass(frozen=True, slots=True)
class CsvRows:
    """The rows of a file, read from its beginning at each iteration, and warnings about its columns."""

    file: BinaryIO
    source: DataSource
    warnings: tuple[str, ...]

    def __iter__(self) -> Iterator[UploadedRow]:
        text, lines, header = _begun(self.file, self.source)
        return _rows(text, lines, header, self.source)


def read_csv(file: BinaryIO, source: DataSource) -> CsvRows:
    """Look at the header of an uploaded file; row numbers are those of a spreadsheet, in which the header is row 1."""
    text, _, header = _begun(file, source)
    text.detach()
    return CsvRows(file, source, _warnings(header, source))


def template_csv(source: DataSource) -> str:
    """Return a file to start from: the header, and one row that shows how several values are packed."""
    multi = {folded(column.name): _PACKED[column.format] for column in source.multi_valued_columns}
    columns = _columns(source) or (source.primary_key, *(column.name for column in source.multi_valued_columns))
    samples = {**multi, folded(source.primary_key): "a-unique-key"}
    if source.batch_time_column:
        samples[folded(source.batch_time_column)] = "2030-01-31T18:00:00Z"
    return "".join(csv_lines(columns, [[samples.get(folded(name), "text") for name in columns]]))


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Write rows as CSV, line by line, with every cell made safe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    for row in chain([header], rows):
        writer.writerow([harmless(_cell(value)) for value in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def harmless(cell: str) -> str:
    """Change a cell that a spreadsheet would execute so that it is only shown."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.match(cell) else cell


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode().strip('"')


def _begun(file: BinaryIO, source: DataSource) -> tuple[io.TextIOWrapper, Iterator[list[str]], list[str]]:
    file.seek(0)
    if what := other_than_csv(file.read(8)):
        raise InvalidMembers([f"the file is {what}, not CSV; {SAVE_AS_CSV}"])
    file.seek(0)
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    lines = csv.reader(text, strict=True)
    try:
        return text, lines, _header(lines, source)
    except UnicodeDecodeError:
        text.detach()
        raise _not_text() from None
    except InvalidMembers:
        text.detach()
        raise


def _rows(
    text: io.TextIOWrapper, lines: Iterator[list[str]], header: Sequence[str], source: DataSource
) -> Iterator[UploadedRow]:
    formats = {folded(column.name): column.format for column in source.multi_valued_columns}
    packed = [(name, formats[folded(name)]) for name in header if folded(name) in formats]
    try:
        for number in count(2):
            try:
                cells = next(lines, None)
            except csv.Error as broken:
                yield UploadedRow(number, None, (str(broken),))
                return
            if cells is None:
                return
            if cells:
                yield _row(number, cells, header, packed)
    except UnicodeDecodeError:
        raise _not_text() from None
    finally:
        # The caller closes the file, and may have done so if it stopped reading early.
        if not text.closed:
            text.detach()


def _row(number: int, cells: Sequence[str], header: Sequence[str], packed: Iterable[tuple[str, str]]) -> UploadedRow:
    if len(cells) != len(header):
        return UploadedRow(number, None, (f"has {len(cells)} cells, the header has {len(header)}",))
    row: dict[str, Any] = dict(zip(header, cells, strict=True))
    problems: list[str] = []
    for name, packing in packed:
        try:
            row[name] = multi_valued_cell(row[name], packing)
        except UnreadableCell as why:
            problems.append(f"'{name}': {why}")
    return UploadedRow(number, row, tuple(problems))


def _not_text() -> InvalidMembers:
    return InvalidMembers([f"the file is not UTF-8 text; {SAVE_AS_CSV}"])


def _header(lines: Iterator[list[str]], source: DataSource) -> list[str]:
    try:
        header = [name.strip() for name in next(lines, [])]
    except csv.Error as broken:
        raise InvalidMembers([f"row 1: {broken}"]) from None
    if len(header) > MOST_COLUMNS:
        raise InvalidMembers([f"row 1: there are {len(header):,} columns, and at most {MOST_COLUMNS} can be used"])
    if not any(header):
        raise InvalidMembers(["the file is empty; its first row names the columns"])
    names = [folded(name) for name in header]
    if folded(source.primary_key) not in names:
        separator = other_separator(header)
        apart = f"; cells are separated by {separator}, and must be by commas" if separator else ""
        raise InvalidMembers([f"row 1: there is no column '{source.primary_key}', which holds the key{apart}"])
    times = Counter(names)
    doubled = sorted(name for name, fold in zip(header, names, strict=True) if times[fold] > 1)
    if doubled or "" in header:
        raise InvalidMembers(
            [f"row 1: {f'column {doubled[0]!r} is there twice' if doubled else 'a column has no name'}"]
        )
    return header


def _warnings(header: Sequence[str], source: DataSource) -> tuple[str, ...]:
    expected = _columns(source)
    if expected is None:
        return ()
    there, wanted = {folded(name) for name in header}, {folded(name) for name in expected}
    unknown = [f"column '{name}' is not one of the query's" for name in header if folded(name) not in wanted]
    missing = [f"column '{name}' of the query is missing" for name in expected if folded(name) not in there]
    return (*unknown, *missing)


def _columns(source: DataSource) -> tuple[str, ...] | None:
    return query_facts(source.query, source.type).columns
