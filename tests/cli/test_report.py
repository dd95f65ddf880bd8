"""`matoolkit report`: for a terminal, for programs, for Excel, and as a page for a manager (rules U1 and A4)."""

import csv
import io
import re
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from openpyxl import load_workbook

from matoolkit.cli.reports.page import People, page_of
from matoolkit.clock import VirtualClock
from tests.cli.conftest import Cli
from tests.orchestrator.runbooks import WITH_ROLLBACK
from tests.stage import Failing, Stage

pytestmark = pytest.mark.on("sqlite")

ALL_UNDONE = {"peopleNotUndone": 0, "undoFailures": []}
FORMULA = '=HYPERLINK("http://x","<script>alert(\'x\')</script>")'


@pytest.fixture
def moved(cli: Cli, stage: Stage) -> Cli:
    """A batch of which one failed, one is done and one has left, and a batch that has not begun."""
    answers = iter([Failing(FORMULA)])
    stage.answers["Custom-Two"] = lambda _: next(answers, None)
    cli.published()
    cli.created("ann@x", "bob@x", "eve@x")
    for _ in range(3):
        cli("batch", "advance", "1")
        stage.run()
    cli.created("dan@x")
    return cli


def test_u1_a_report_says_of_each_person_how_far_it_is(moved: Cli) -> None:
    out = moved("report", "1", "--columns", "Name")
    assert [line.split()[:3] for line in out.splitlines()] == [
        ["KEY", "Name", "STATE"],
        ["ann@x", "ANN@X", "failed"],
        ["bob@x", "BOB@X", "done"],
        ["eve@x", "EVE@X", "done"],
    ]
    assert FORMULA in out
    assert "dan@x" not in out
    assert [one["memberKey"] for one in moved.json("report", "--all")] == ["ann@x", "bob@x", "eve@x", "dan@x"]
    assert "BATCH" in moved("report", "--runbook", "wave")
    (ann,) = moved.json("report", "--runbook", "wave", "--state", "failed", "--error", "hyperlink", "--key", "ann")
    assert (ann["phaseName"], ann["stepName"], ann["attempts"]) == ("first", "two", 1)


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ("report", 2, "say whose report it is"),
        ("report 1 --all", 2, "say whose report it is"),
        ("report 99", 3, "AD404"),
        ("report --runbook wavs", 3, "did you mean 'wave'?"),
        ("report 1 --columns Nmae", 2, "did you mean 'Name'?"),
        ("report 1 --state asleep", 2, "asleep"),
    ],
)
def test_a_report_on_nothing_says_what_is_wrong(moved: Cli, asked: str, code: int, said: str) -> None:
    moved(*asked.split(), code=code)
    assert said in " ".join(moved.err.split())


def test_a_report_on_nobody_says_so(moved: Cli) -> None:
    assert moved("report", "1", "--state", "waiting") == ""
    assert "there is nobody like that" in moved.err


def test_a4_a_report_as_csv_opens_in_a_spreadsheet(moved: Cli) -> None:
    text = moved("report", "--all", "-o", "csv", "--columns", "Name", "--bom")
    assert text.startswith("\ufeffkey,Name,state")
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert rows[0]["error"] == f"'{FORMULA}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", rows[0]["since (UTC)"])
    assert [row["state"] for row in rows] == ["failed", "done", "done", "waiting"]
    assert not moved("report", "1", "-o", "csv").startswith("\ufeff")
    assert len(moved("report", "1", "-o", "csv", "--limit", "2").splitlines()) == 3


def test_a_report_as_a_workbook_holds_texts_and_times(moved: Cli, tmp_path: Path) -> None:
    file = tmp_path / "report.xlsx"
    assert moved("report", "--all", "--columns", "Name", "--xlsx", str(file)) == ""
    assert "the report is in" in moved.err
    book = load_workbook(file)
    assert book.sheetnames == ["Summary", "People"]
    header, ann, *others = book["People"].iter_rows()
    found = {title.value: cell for title, cell in zip(header, ann, strict=True)}
    assert (found["error"].value, found["error"].data_type) == (FORMULA, "s")
    assert isinstance(found["since (UTC)"].value, datetime)
    assert (found["key"].value, found["Name"].value, found["attempts"].value) == ("ann@x", "ANN@X", 1)
    assert len(others) == 3
    sums = [tuple(cell.value for cell in row) for row in book["Summary"].iter_rows(max_col=2)]
    assert {("people", 4), ("done", 2), ("failed", 1), ("waiting", 1)} <= set(sums)
    assert "already exists" in _refusal(moved, "report", "1", "--xlsx", str(file))
    moved("report", "1", "--xlsx", str(file), "--force")


def _refusal(cli: Cli, *arguments: str) -> str:
    cli(*arguments, code=2)
    return cli.err


def test_o9_a_report_says_for_whom_something_could_not_be_undone(cli: Cli, stage: Stage, tmp_path: Path) -> None:
    made = stage.batch(stage.publish(WITH_ROLLBACK), 3)
    batch = str(made.id)
    asked = iter([Failing("u0 cannot"), Failing("u1 cannot")])
    stage.answers.update(Create={"Id": "1"}, License=Failing("no licence"), Unlicense=lambda _: next(asked, None))
    stage.due(made, "prepare")
    stage.run()
    told = [(one["memberKey"], one["undoFailures"], one["undoErrorMessage"]) for one in cli.json("report", batch)]
    assert told == [("u0", 1, "u0 cannot"), ("u1", 1, "u1 cannot"), ("u2", 0, None)]
    assert [one["memberKey"] for one in cli.json("report", batch, "--undo-failed")] == ["u0", "u1"]
    first, _, last = cli("report", batch).splitlines()[1:]
    assert "no licence; undo failed at unlicense: " in first
    assert "undo" not in last
    rows = list(csv.DictReader(io.StringIO(cli("report", batch, "-o", "csv"))))
    assert [(row["undo failed at"], row["undo error"]) for row in rows][1:] == [("unlicense", "u1 cannot"), ("", "")]
    cli("report", batch, "--html", str(tmp_path / "report.html"), "--xlsx", str(tmp_path / "report.xlsx"))
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "for 2 something could not be undone" in page
    assert "u1 cannot" in page.partition("For whom something could not be undone")[2]
    sheets = load_workbook(tmp_path / "report.xlsx")
    sums = [tuple(cell.value for cell in row) for row in sheets["Summary"].iter_rows(max_col=4)]
    assert ("people for whom something could not be undone", 2, None, None) in sums
    assert sum(row[2:] == ("undo", "unlicense") and row[1] == 2 for row in sums) == 1
    header, *people = sheets["People"].iter_rows(values_only=True)
    assert [row[header.index("undo error")] for row in people] == ["u0 cannot", "u1 cannot", None]


class Page(HTMLParser):
    """What a page has: its elements, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_for_a_manager_stands_alone_and_executes_nothing(moved: Cli, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    moved("report", "1", "--html", str(file))
    assert "the report on 3 people is in" in moved.err
    page = Page(file.read_text(encoding="utf-8"))
    assert "script" not in page.tags
    names = {name for name, _ in page.attributes}
    assert not names & {"src", "href", "onclick", "onload"}
    assert FORMULA in page.text
    assert "2 of 3 people are done, 1 failed." in page.text
    assert "2 of 3 completed, 1 failed" in page.text
    assert {"th", "main", "h1", "h2"} <= set(page.tags)
    assert page.tags.count("h1") == 1


def test_a_page_about_nobody_is_a_page(clock: VirtualClock) -> None:
    summary = {"people": 0, "states": {}, "batches": [], "phases": [], "failures": [], **ALL_UNDONE}
    assert "0 of 0" in Page(page_of(summary, People(), clock.now())).text
    assert "time runs 1,440 times as fast" in page_of(summary, People(), clock.now(), 1440)


def test_a_page_about_people_who_are_all_gone_says_so(clock: VirtualClock) -> None:
    summary = {
        "people": 3,
        "states": {"undone": 2, "left": 1},
        "batches": [],
        "phases": [],
        "failures": [],
        **ALL_UNDONE,
    }
    text = Page(page_of(summary, People(), clock.now())).text
    assert "people were undone or have left." in text
    text = Page(page_of({**summary, "peopleNotUndone": 2}, People(), clock.now())).text
    assert "have left, for 2 something could not be undone." in text
    assert "0 of 0" not in text


def test_local_times_are_in_a_workbook_and_csv_says_that_it_has_none(moved: Cli, tmp_path: Path) -> None:
    file = tmp_path / "report.xlsx"
    moved("report", "--all", "--xlsx", str(file), "--local")
    header = [cell.value for cell in next(load_workbook(file)["People"].iter_rows())]
    assert {"since (local time)", "T (local time)"} <= set(header)
    assert "since (UTC)" in moved("report", "--all", "-o", "csv", "--local")
    assert "times in CSV are UTC" in moved.err


def test_control_characters_are_written_out_on_a_page(clock: VirtualClock) -> None:
    one = {"runbookName": "w", "phaseName": "p", "stepName": "s", "errorType": None, "people": 1, "exampleKey": "k"}
    failures = [{**one, "error": "a\x1b[2J\u202eb"}]
    summary = {"people": 1, "states": {"failed": 1}, "batches": [], "phases": [], "failures": failures, **ALL_UNDONE}
    assert "a\\x1b[2J\\u202eb" in page_of(summary, People(), clock.now())
