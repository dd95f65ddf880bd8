"""Rule U4: lists that people keep, read only when nobody writes them, and only below their folder."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from matoolkit.clock import SystemClock
from matoolkit.errors import SourceFailed
from tests.sources.lists import ALL, Lists

PEOPLE = "Id,Name,Wave\n00123,Zoë,1\nb,,2\n"


def refusal(lists: Lists, name: str = "people.csv", query: str = ALL) -> SourceFailed:
    with pytest.raises(SourceFailed) as failed:
        lists.read(name, query)
    assert failed.value.transient
    return failed.value


def test_u4_a_query_sees_a_csv_file_as_the_table_rows(lists: Lists) -> None:
    lists.write("people.csv", "\ufeff" + PEOPLE)
    assert lists.read("people.csv") == [("00123", "Zoë", "1"), ("b", None, "2")]
    query = "WITH first AS (SELECT * FROM rows WHERE Wave = '1') SELECT Id, upper(name) AS Who FROM first"
    (piece,) = lists.source("people.csv").pieces(query)
    assert (piece.columns, piece.rows) == (("Id", "Who"), [("00123", "ZOë")])


def test_u4_a_list_may_be_in_a_folder_below(lists: Lists) -> None:
    lists.write("hr/people.csv", PEOPLE)
    assert len(lists.read("hr/people.csv")) == 2


def test_u4_quoted_names_are_columns_and_never_taken_for_texts(lists: Lists) -> None:
    lists.write("people.csv", 'Id,Mail Address\na,"x, ""y"""\n')
    assert lists.read("people.csv", 'SELECT "Mail Address" AS Mail, \'"Id"\' AS Text FROM rows') == [('x, "y"', '"Id"')]
    said = refusal(lists, query='SELECT "Mail Adress" FROM rows')
    assert "no such column: Mail Adress" in str(said)
    assert said.hint == "did you mean 'Mail Address'?"


@pytest.mark.parametrize(
    ("query", "said", "hint"),
    [
        ("SELECT Upn FROM rows", "no such column: Upn", "the first row of the file names Id, Name, Wave"),
        ("SELECT * FROM people", "no such table: people", "the file is the table 'rows'"),
        ("DELETE FROM rows", "not authorized", None),
        ("ATTACH DATABASE 'other.db' AS other", "not authorized", None),
        ("SELECT 1; SELECT 2", "one statement at a time", None),
        ("SELECT zeroblob(500000000)", "too big", None),
    ],
)
def test_u4_a_query_that_cannot_be_run_says_why(lists: Lists, query: str, said: str, hint: str | None) -> None:
    lists.write("people.csv", PEOPLE)
    failed = refusal(lists, query=query)
    assert said in str(failed)
    assert failed.hint == hint


def test_u4_a_query_without_end_is_ended(lists: Lists) -> None:
    lists.write("people.csv", PEOPLE)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    looks = iter([0.0, 1.0, 400.0])
    lists.clock.monotonic = lambda: next(looks)  # type: ignore[method-assign]
    assert refusal(lists, query=endless).hint == "a query may take 300 seconds"


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        (b"", "is empty", "first row names the columns"),
        (b"\n\n", "is empty", "first row names the columns"),
        (b"Id;Name\na;b\n", "separated by semicolons", "(.xlsx)"),
        (b"Id\tName\na\tb\n", "separated by tabs", "(.xlsx)"),
        ("Id,Name\na,Zoë\n".encode("cp1252"), "is not UTF-8 text", "CSV UTF-8"),
        ("Id,Name\na,Zoë\n".encode("utf-16"), "is text in UTF-16, not CSV", "CSV UTF-8"),
        (b"PK\x03\x04...", "is an Excel workbook, not CSV", "name end in .xlsx"),
        (b"\xd0\xcf\x11\xe0...", "an old Excel workbook, or one with a password", "CSV UTF-8"),
        (b"Id,id\na,b\n", "has two columns 'id'", "another name"),
        (b'Id,Name\na,"b\n', "cannot be read after line", None),
        (b"Id,Name\na,b,c\n", "line 2 of the file 'people.csv' has 3 cells, and the first has 2", "quotes"),
        (b'Id,Name\n\n"a\n",b\nc', "line 5 of the file 'people.csv' has 1 cells", "quotes"),
        (",".join(f"c{number}" for number in range(400)).encode(), "as far as place 400", "at most 300"),
    ],
)
def test_u4_a_csv_file_that_cannot_be_used_says_why(lists: Lists, content: bytes, said: str, hint: str | None) -> None:
    lists.write("people.csv", content)
    failed = refusal(lists)
    assert "people.csv" in str(failed)
    assert said in str(failed)
    assert (hint or "") in (failed.hint or "")


def test_u4_a_file_that_was_changed_just_now_is_not_read(lists: Lists) -> None:
    changed = lists.write("people.csv", PEOPLE).stat().st_mtime
    now = SystemClock().now()
    lists.clock.jump(now + timedelta(seconds=changed - now.timestamp() + 9.5))
    assert "s ago; it is read once 10 s have passed" in str(refusal(lists))
    lists.clock.advance(timedelta(seconds=5))
    assert len(lists.read("people.csv")) == 2


def test_u4_a_time_of_change_that_was_set_back_hides_no_change(lists: Lists) -> None:
    os.utime(lists.write("people.csv", PEOPLE), (0, 0))
    lists.clock.jump(SystemClock().now())
    assert " s ago" in str(refusal(lists))


def test_u4_a_file_from_the_future_is_not_read(lists: Lists) -> None:
    lists.write("people.csv", PEOPLE)
    lists.clock.jump(SystemClock().now() - timedelta(hours=1))
    failed = refusal(lists)
    assert "in the future" in str(failed)
    assert "clocks" in (failed.hint or "")


def test_u4_a_file_that_is_changed_while_it_is_read_gives_nothing(
    lists: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists.write("people.csv", PEOPLE)
    opened = Path.open

    def opened_and_changed(self: Path, mode: str) -> Any:
        with opened(self, "ab") as file:
            file.write(b"c,Cid,3\n")
        return opened(self, mode)

    monkeypatch.setattr(Path, "open", opened_and_changed)
    assert "was changed while it was read" in str(refusal(lists))


@pytest.mark.parametrize("name", ["../outside.csv", "link.csv", "folder/outside.csv"])
def test_u4_nothing_outside_the_folder_is_read(lists: Lists, name: str) -> None:
    outside = lists.folder.parent / "outside.csv"
    outside.write_text(PEOPLE)
    (lists.folder / "link.csv").symlink_to(outside)
    (lists.folder / "folder").symlink_to(lists.folder.parent, target_is_directory=True)
    failed = refusal(lists, name)
    assert "is not below the folder that MATOOLKIT_FILES names" in str(failed)
    assert str(lists.folder) not in str(failed)


def test_u4_a_link_within_the_folder_is_followed(lists: Lists) -> None:
    lists.write("2026-11.csv", PEOPLE)
    (lists.folder / "people.csv").symlink_to("2026-11.csv")
    assert len(lists.read("people.csv")) == 2


def test_u4_a_file_that_is_not_there_is_told_with_the_nearest_name(lists: Lists) -> None:
    assert refusal(lists).hint == "put the file there"
    lists.write("people.xlsx", PEOPLE)
    failed = refusal(lists)
    assert "there is no file 'people.csv'" in str(failed)
    assert failed.hint == "did you mean 'people.xlsx'?"
    (lists.folder / "people.csv").mkdir()
    assert "there is no file" in str(refusal(lists))


def test_u4_a_folder_that_is_not_there_is_told(lists: Lists) -> None:
    lists.folder = lists.folder / "nowhere"
    assert "MATOOLKIT_FILES" in str(refusal(lists))


def test_u4_a_file_that_may_not_be_read_is_told(lists: Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lists.write("people.csv", PEOPLE)

    def locked(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", locked)
    failed = refusal(lists)
    assert "cannot be read: Permission denied" in str(failed)
    assert str(path) not in str(failed)
