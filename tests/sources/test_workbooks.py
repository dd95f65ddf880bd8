"""Rule U4: Excel workbooks as lists: cells as people see them, and files that mean harm."""

import re
import subprocess
import sys
from datetime import datetime, time, timedelta

import pytest
from openpyxl import Workbook
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from matoolkit.errors import SourceFailed
from tests.sources.lists import ALL, Lists

OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
SHEET = "xl/worksheets/sheet1.xml"


def refusal(lists: Lists, *, query: str = ALL, sheet: str | None = None) -> SourceFailed:
    with pytest.raises(SourceFailed) as failed:
        lists.read("people.xlsx", query, sheet)
    assert failed.value.transient
    return failed.value


@pytest.mark.parametrize("has_shared_texts", [False, True])
def test_u4_cells_keep_their_kinds(lists: Lists, has_shared_texts: bool) -> None:
    lists.workbook(
        ["Id", "Count", "Share", "Flag", "Note"], ["00123", 123, 1.5, True, None], ["b", 5, 0.1, False, " x "]
    )
    if has_shared_texts:
        lists.share_texts()
    assert lists.read() == [("00123", 123, 1.5, "TRUE", None), ("b", 5, 0.1, "FALSE", " x ")]


def test_u4_a_number_too_long_for_a_database_is_one_all_the_same(lists: Lists) -> None:
    lists.workbook(["Id"], [1])
    lists.change_part(SHEET, lambda text: text.replace(b"<v>1</v>", b"<v>123456789012345678901234567890</v>"))
    assert lists.read() == [(123456789012345678901234567890.0,)]


@pytest.mark.parametrize("is_mac", [False, True])
def test_u4_dates_are_written_as_people_see_them_in_both_date_systems(lists: Lists, is_mac: bool) -> None:
    def with_formats(book: Workbook) -> None:
        sheet = book.worksheets[0]
        for row, kind in enumerate(["dd/mm/yyyy", "dd/mm/yyyy hh:mm", "dd/mm/yyyy", "[$-409]d. mmmm yyyy;@"], start=2):
            sheet.cell(row, 2).number_format = kind

    book = Workbook()
    if is_mac:
        book.epoch = CALENDAR_MAC_1904
    sheet = book.worksheets[0]
    written = ["2026-11-20", "2026-11-20", "2026-11-20 18:30", "2026-02-01"]
    days = [datetime.fromisoformat(day) for day in written]
    sheet.append(["Id", "T"])
    for number, day in enumerate(days):
        sheet.append([f"p{number}", day])
    with_formats(book)
    book.save(lists.folder / "people.xlsx")
    assert [t for _, t in lists.read()] == ["2026-11-20", "2026-11-20 00:00:00", "2026-11-20 18:30:00", "2026-02-01"]


def test_u4_times_of_day_and_lengths_of_time_are_text(lists: Lists) -> None:
    lists.workbook(["At", "For"], [time(18, 30), timedelta(hours=26)])
    assert lists.read() == [("18:30:00", "1 day, 2:00:00")]


def test_u4_a_time_is_exact_to_the_second_though_a_number_is_not(lists: Lists) -> None:
    lists.workbook(["T"], [datetime.fromisoformat("2026-11-20 17:59:59.999700")])
    assert lists.read() == [("2026-11-20 18:00:00",)]


def test_u4_a_formula_is_the_value_that_was_saved_with_it(lists: Lists) -> None:
    lists.workbook(["Id"], ["=A1"])
    lists.change_part(SHEET, lambda text: text.replace(b"<v />", b"<v>42</v>"))
    assert lists.read() == [(42,)]


def test_u4_the_first_row_that_is_not_empty_names_the_columns(lists: Lists) -> None:
    lists.workbook([], ["Id", None, " Mail \n address "], [None, None, None], ["a", "a note", "x"], [None, "b"])
    (piece,) = lists.source().pieces(ALL)
    assert (piece.columns, piece.rows) == (("Id", "Mail address"), [("a", "x"), (None, None)])


def test_u4_what_a_sheet_says_of_its_size_is_not_believed(lists: Lists) -> None:
    lists.workbook(["Id", "Name"], ["a", "b"], ["c", "d"])
    lists.change_part(SHEET, lambda text: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1"', text))
    assert lists.read() == [("a", "b"), ("c", "d")]


def test_u4_a_sheet_is_chosen_by_its_name(lists: Lists) -> None:
    def more(book: Workbook) -> None:
        book.worksheets[0].title = "Notes"
        book.create_sheet("Wave 1").append(["Id"])
        book["Wave 1"].append(["a"])

    lists.workbook(["other"], change=more)
    assert lists.read(sheet="wave 1") == [("a",)]
    assert lists.read() == []
    failed = refusal(lists, sheet="Wave1")
    assert "has no sheet 'Wave1'" in str(failed)
    assert failed.hint == "did you mean 'Wave 1'?"
    assert refusal(lists, sheet="People").hint == "it has Notes, Wave 1"


def test_u4_two_columns_of_one_name_are_refused(lists: Lists) -> None:
    lists.workbook(["Id", "ID "], ["a", "b"])
    assert "has two columns 'ID'" in str(refusal(lists))


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        (b"", "is empty", "first row"),
        (b"Id,Name\na,b\n", "is no Excel workbook", "let its name end in .csv"),
        (b"PK\x03\x04 and then nothing", "is broken or not complete", "save it again"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "a password",
            "without a password",
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"Workbook",
            "is an old Excel workbook (.xls)",
            "'Excel Workbook (*.xlsx)'",
        ),
    ],
)
def test_u4_a_file_that_is_no_workbook_says_what_it_is(lists: Lists, content: bytes, said: str, hint: str) -> None:
    lists.write("people.xlsx", content)
    failed = refusal(lists)
    assert said in str(failed)
    assert hint in (failed.hint or "")


def test_u4_an_empty_sheet_is_refused(lists: Lists) -> None:
    lists.workbook()
    assert "is empty" in str(refusal(lists))


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9, 0.99])
def test_u4_half_of_a_workbook_is_refused(lists: Lists, kept: float) -> None:
    path = lists.workbook(["Id"], *([f"user{number}"] for number in range(2_000)))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    assert "people.xlsx" in str(refusal(lists))


@pytest.mark.parametrize("part", [SHEET, "xl/workbook.xml", "xl/styles.xml", "[Content_Types].xml"])
@pytest.mark.parametrize("change", ["cut", "empty"])
def test_u4_a_workbook_with_a_broken_part_is_refused(lists: Lists, part: str, change: str) -> None:
    lists.workbook(["Id"], ["a"], ["b"])
    lists.change_part(part, lambda text: text[: len(text) // 2] if change == "cut" else b"")
    assert "people.xlsx" in str(refusal(lists))


def test_u4_entities_are_not_expanded(lists: Lists) -> None:
    lists.workbook(["Id"], ["a"])
    entity = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    lists.change_part(SHEET, lambda text: entity + text.replace(b"<sheetData>", b"<sheetData>&b;"))
    assert "defines entities" in str(refusal(lists))


def test_u4_a_file_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(lists: Lists) -> None:
    lists.workbook(["Id"], ["a"])
    lists.change_part("xl/sharedStrings.xml", lambda _: b" " * (130 * 1024 * 1024))
    assert (lists.folder / "people.xlsx").stat().st_size < 1024 * 1024
    assert "unpacks to more than can be read" in str(refusal(lists))


def _far(text: bytes) -> bytes:
    far = (
        b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row><row r="999999999"><c r="A999999999"><v>1</v></c></row>'
    )
    return text.replace(b"</sheetData>", far + b"</sheetData>")


def test_u4_a_cell_at_the_far_end_takes_no_memory(lists: Lists) -> None:
    lists.workbook(["Id"], ["a"])
    lists.change_part(SHEET, _far)
    assert lists.read() == [("a",)]


def test_u4_a_header_at_the_far_end_is_refused(lists: Lists) -> None:
    lists.workbook(["Id"], change=lambda book: book.worksheets[0].cell(1, 16_384, "x"))
    assert "as far as place 16,384" in str(refusal(lists))


def test_u4_links_to_other_workbooks_are_not_followed(lists: Lists) -> None:
    lists.workbook(["Id"], ["=[1]Sheet1!A1"])
    assert lists.read() == []


def test_u4_the_library_is_imported_only_for_workbooks() -> None:
    code = "import sys, matoolkit.sources.files.source, matoolkit.cli.main; assert 'openpyxl' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
