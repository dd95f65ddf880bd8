"""Tables that fit, and that lose nothing when somebody reads them by program."""

import time
from typing import Any

import pytest
from rich.text import Text

from matoolkit.cli import wording
from matoolkit.cli.tables import Column, number, status, table, when

COLUMNS = (number("ID", "id"), Column("KEY", "key"), status(), when("AT", "at"), Column("NOTE", "note", is_cut=True))
ROW = {"id": 7, "key": "ann@x", "status": "failed", "at": "2026-03-05T12:00:00Z", "note": "n" * 100}


def lines(items: list[dict[str, Any]], width: int | None, **options: Any) -> list[str]:
    return [line.plain for line in table(items, COLUMNS, width, **options)]


def test_a_table_without_a_limit_is_whole_and_has_no_glyphs() -> None:
    head, row = lines([ROW], None)
    assert head.split() == ["ID", "KEY", "STATUS", "AT", "NOTE"]
    assert row == f" 7  ann@x  failed  2026-03-05 12:00 UTC  {'n' * 100}"


@pytest.mark.parametrize("width", [64, 80, 120])
def test_a_table_fits_and_cuts_only_what_nobody_decides_by(width: int) -> None:
    head, row, *more = lines([{**ROW, "key": "k" * 90}], width)
    assert all(len(line) <= width for line in (head, row, *more))
    assert "✖ failed  2026-03-05 12:00 UTC" in row
    assert row.endswith("…")
    assert "".join([row, *more]).count("k") == 90


def test_in_a_narrow_table_times_take_two_lines_before_it_becomes_blocks() -> None:
    head, row, more = lines([{**ROW, "note": ""}], 36)
    assert head.split() == ["ID", "KEY", "STATUS", "AT"]
    assert row.endswith("2026-03-05")
    assert more.endswith("12:00 UTC")


def test_a_table_that_does_not_fit_becomes_blocks_with_nothing_cut() -> None:
    first, *others = lines([{**ROW, "key": "word " * 20}, ROW], 30)
    assert first == "id      7"
    assert all(len(line) <= 30 for line in others)
    assert "".join(others).count("word") == 20
    assert "".join(others).count("n" * 22) == 8
    assert others.count("") == 1


def test_a_wide_table_has_one_line_for_each_item_and_looks_as_on_a_terminal() -> None:
    head, row = lines([ROW], None, plain=False)
    assert "✖ failed" in row
    assert row.endswith("n" * 100)
    assert head.split() == ["ID", "KEY", "STATUS", "AT", "NOTE"]


def test_times_are_told_in_the_zone_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    with wording.local_times(wanted=True):
        assert wording.moment("2026-03-05T12:00:00Z") == "2026-03-05 17:30 IST"
    assert wording.moment("2026-03-05T12:00:00Z") == "2026-03-05 12:00 UTC"
    monkeypatch.undo()
    time.tzset()


def test_a_column_that_holds_nothing_is_not_shown_to_people() -> None:
    head, _ = lines([{**ROW, "note": None}], 80)
    assert "NOTE" not in head
    head, _ = lines([{**ROW, "note": None}], None)
    assert "NOTE" in head


def test_a_terminal_that_has_only_letters_gets_letters() -> None:
    assert "x failed" in lines([ROW], 80, letters=True)[1]


def test_wide_letters_take_two_columns() -> None:
    rows = [{**ROW, "key": "漢字", "note": ""}, {**ROW, "key": "ab", "note": ""}]
    _, wide, narrow = table(rows, COLUMNS, None)
    assert wide.cell_len == narrow.cell_len


def test_what_came_from_elsewhere_cannot_steer_a_terminal() -> None:
    row = lines([{**ROW, "key": "a\x1b[2Jb\nc", "status": "\x1b[0m", "note": {"\x07": ["\x1b", None, True]}}], 200)[1]
    assert row.isprintable()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, ""),
        (True, "yes"),
        (5, "5"),
        (["a", 1], "a, 1"),
        ({"a": {"b": False}}, "a=b=no"),
        ("x" * 3000, "x" * 1999 + "…"),
    ],
)
def test_every_value_is_written_in_one_line(value: Any, told: str) -> None:
    assert wording.text(value) == told


def test_a_state_is_a_colour_a_glyph_and_a_word() -> None:
    assert wording.state("poll_timeout") == Text("✖ poll timeout", style="bold red")
    assert wording.state("never heard of").plain == "? never heard of"
    assert wording.counts({"active": 1200, "failed": 0, "removed": 3}).plain == "1,200 ● active · 3 ⊘ removed"


@pytest.mark.parametrize("nonsense", [None, 5, "soon", "2026-03-05T12:00:00", [], "9999-99-99"])
def test_a_time_that_is_none_is_nothing(nonsense: Any) -> None:
    assert wording.moment(nonsense) == ""
