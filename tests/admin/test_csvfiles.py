"""CSV in and out (rule A4)."""

import io
import tracemalloc
from typing import Any

import pytest

from matoolkit.admin.csvfiles import csv_lines, harmless, read_csv, template_csv
from matoolkit.admin.uploads import Upload
from matoolkit.errors import InvalidMembers
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.parse import parse_runbook

SOURCE = """\
name: wave
data_source:
  type: sql
  connection: SOURCE_DB
  query: SELECT Email, Name, Groups FROM people
  primary_key: Email
  batch_time: immediate
  multi_valued_columns:
    - {name: Groups, format: semicolon_delimited}
phases:
  - {name: one, offset: T-0, steps: [{name: one, worker_id: w, function: Custom-One}]}
"""


@pytest.fixture(scope="module")
def source() -> DataSource:
    return parse_runbook(SOURCE).data_source


def rows_of(content: bytes, source: DataSource) -> list[Any]:
    upload = Upload(read_csv(io.BytesIO(content), source), source.primary_key)
    return [row for part in upload.parts() for row in part]


def problems(text: str | bytes, source: DataSource) -> tuple[str, ...]:
    with pytest.raises(InvalidMembers) as refused:
        rows_of(text if isinstance(text, bytes) else text.encode(), source)
    return refused.value.problems


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a4_a_file_is_read_with_and_without_byte_order_mark(source: DataSource, mark: bytes) -> None:
    text = 'EMAIL,Name,Groups\r\nann@x,"Ärmel, ""Ann""\nSmith",a; b\r\n\r\nbob@x,,\r\n'
    file = io.BytesIO(mark + text.encode())
    read = read_csv(file, source)
    assert [row.row for row in read] == [
        {"EMAIL": "ann@x", "Name": 'Ärmel, "Ann"\nSmith', "Groups": ["a", "b"]},
        {"EMAIL": "bob@x", "Name": "", "Groups": []},
    ]
    assert read.warnings == ()
    assert not file.closed


def test_a4_unknown_and_missing_columns_are_warnings(source: DataSource) -> None:
    read = read_csv(io.BytesIO(b"Email,Colour\na,red\n"), source)
    assert read.warnings == (
        "column 'Colour' is not one of the query's",
        "column 'Name' of the query is missing",
        "column 'Groups' of the query is missing",
    )


def test_a4_bad_keys_are_named_by_their_rows(source: DataSource) -> None:
    text = "Email,Name\nann@x,1\n ,2\nANN@X,3\nbob@x\neve@x,4,5\n"
    assert problems(text, source) == (
        "row 3: 'Email' holds no usable key",
        "row 4: 'ANN@X' is in row 2 too",
        "row 5: has 1 cells, the header has 2",
        "row 6: has 3 cells, the header has 2",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "the file is empty"),
        (b"\n", "the file is empty"),
        (b"Name,Groups\na,b\n", "row 1: there is no column 'Email'"),
        (b"Email;Name\na;b\n", "cells are separated by semicolons, and must be by commas"),
        (b"PK\x03\x04", "the file is an Excel workbook, not CSV; in Excel: Save As"),
        ("Email\nx\n".encode("utf-16"), "text in UTF-16, not CSV"),
        (b"Email,email\na,b\n", "is there twice"),
        (b"Email,\na,b\n", "a column has no name"),
        (b"Email" + b"".join(b",c%d" % number for number in range(84_000)), "84,001 columns, and at most 300"),
        (b"Email\n\xff\xfe\n", "not UTF-8"),
        (b'Email\n"a\n', "row 2: unexpected end of data"),
        (b"Email\n" + b"x" * 200_000, "row 2: field larger than field limit"),
    ],
)
def test_a4_a_file_that_cannot_be_used_is_refused_with_the_reason(source: DataSource, text: bytes, said: str) -> None:
    (problem,) = problems(text, source)
    assert said in problem


def test_a4_of_many_problems_the_first_hundred_are_said(source: DataSource) -> None:
    assert len(problems("Email\n" + '""\n' * 5000, source)) == 100


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-cmd", "@SUM(A1)", " =1", "\t=1", "\r=1", "\uff1d1"])
def test_a4_cells_that_a_spreadsheet_executes_are_neutralised(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "ann@x", "-5", "+4.25", "a=b", "2026-03-03"])
def test_a4_other_cells_stay_as_they_are(cell: str) -> None:
    assert harmless(cell) == cell


def test_a4_the_template_shows_how_several_values_are_packed(source: DataSource) -> None:
    assert template_csv(source) == "Email,Name,Groups\r\na-unique-key,text,first;second\r\n"


def test_a4_an_export_of_any_length_takes_the_memory_of_a_line() -> None:
    tracemalloc.start()
    length = sum(len(line) for line in csv_lines(["a", "b"], ((number, "x" * 100) for number in range(50_000))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert length > 5_000_000
    assert peak < 200_000


def test_a_file_that_is_closed_before_it_is_read_to_its_end_is_no_trouble(source: DataSource) -> None:
    file = io.BytesIO(b"Email\nanna@contoso.com\nben@contoso.com\n")
    rows = iter(read_csv(file, source))
    next(rows)
    file.close()
    rows.close()  # type: ignore[attr-defined]
