"""CSV in and out (rule A4): what people upload, what they can start from, and exports that no spreadsheet executes."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

import orjson

from matoolkit.domain.cells import UnreadableCell, multi_valued_cell
from matoolkit.domain.keys import folded, is_usable_key
from matoolkit.errors import InvalidMembers
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.query import query_facts

_MOST_PROBLEMS = 100
_PACKED = {
    "semicolon_delimited": "first;second",
    "comma_delimited": "first,second",
    "json_array": '["first", "second"]',
}
# What a spreadsheet takes for a formula, full-width forms included; a plain number is none.
_FORMULA = re.compile("^\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]")
_NUMBER = re.compile(r"^[+-]?\d+(\.\d+)?$")


@dataclass(frozen=True, slots=True)
class CsvRows:
    """The rows of a file, ready to be members, and what is odd about its columns."""

    rows: Sequence[dict[str, Any]]
    warnings: tuple[str, ...]


def read_csv(file: BinaryIO, source: DataSource) -> CsvRows:
    """Read an uploaded file; row numbers are those of a spreadsheet, in which the header is row 1."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        return _read(csv.reader(text, strict=True), source)
    except UnicodeDecodeError:
        raise InvalidMembers(["the file is not UTF-8 text"]) from None
    finally:
        text.detach()


def template_csv(source: DataSource) -> str:
    """Return a file to start from: the header, and one row that shows how several values are packed."""
    multi = {folded(column.name): _PACKED[column.format] for column in source.multi_valued_columns}
    columns = _columns(source) or (source.primary_key, *(column.name for column in source.multi_valued_columns))
    samples = {**multi, folded(source.primary_key): "a-unique-key"}
    if source.batch_time_column:
        samples[folded(source.batch_time_column)] = "2030-01-31T18:00:00Z"
    return "".join(csv_lines(columns, [[samples.get(folded(name), "text") for name in columns]]))


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Write rows as CSV, line by line, with every cell made harmless."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    for row in chain([header], rows):
        writer.writerow([harmless(_cell(value)) for value in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def harmless(cell: str) -> str:
    """Let a spreadsheet show a cell that it would execute."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.match(cell) else cell


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode().strip('"')


def _read(lines: Iterator[list[str]], source: DataSource) -> CsvRows:
    header = _header(lines, source)
    reader = _RowChecks(header, source)
    number = 1
    while True:
        number += 1
        try:
            cells = next(lines, None)
        except csv.Error as broken:
            reader.problems.append(f"row {number}: {broken}")
            break
        if cells is None or len(reader.problems) >= _MOST_PROBLEMS:
            break
        if cells:
            reader.take(number, cells)
    if reader.problems:
        raise InvalidMembers(reader.problems)
    return CsvRows(reader.rows, _warnings(header, source))


def _header(lines: Iterator[list[str]], source: DataSource) -> list[str]:
    try:
        header = [name.strip() for name in next(lines, [])]
    except csv.Error as broken:
        raise InvalidMembers([f"row 1: {broken}"]) from None
    names = [folded(name) for name in header]
    if not any(header):
        raise InvalidMembers(["the file is empty; its first row names the columns"])
    if folded(source.primary_key) not in names:
        apart = "; cells are separated by commas" if ";" in header[0] else ""
        raise InvalidMembers([f"row 1: there is no column '{source.primary_key}', which holds the key{apart}"])
    doubled = sorted({name for name in header if names.count(folded(name)) > 1})
    if doubled or "" in header:
        raise InvalidMembers(
            [f"row 1: {f'column {doubled[0]!r} is there twice' if doubled else 'a column has no name'}"]
        )
    return header


class _RowChecks:
    """Takes rows one by one, and keeps all that is wrong with them."""

    def __init__(self, header: Sequence[str], source: DataSource) -> None:
        self._header = header
        self._key_place = [folded(name) for name in header].index(folded(source.primary_key))
        formats = {folded(column.name): column.format for column in source.multi_valued_columns}
        self._packed = [(name, formats[folded(name)]) for name in header if folded(name) in formats]
        self._first_seen: dict[str, int] = {}
        self.problems: list[str] = []
        self.rows: list[dict[str, Any]] = []

    def take(self, number: int, cells: Sequence[str]) -> None:
        if len(cells) != len(self._header):
            self.problems.append(f"row {number}: has {len(cells)} cells, the header has {len(self._header)}")
            return
        key = cells[self._key_place].strip()
        if not is_usable_key(key):
            self.problems.append(f"row {number}: '{self._header[self._key_place]}' holds no usable key")
        elif (first := self._first_seen.setdefault(folded(key), number)) != number:
            self.problems.append(f"row {number}: '{key}' stands in row {first} too")
        else:
            self._keep(number, dict(zip(self._header, cells, strict=True)))

    def _keep(self, number: int, row: dict[str, Any]) -> None:
        for name, packing in self._packed:
            try:
                row[name] = multi_valued_cell(row[name], packing)
            except UnreadableCell as why:
                self.problems.append(f"row {number}: '{name}': {why}")
        self.rows.append(row)


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
