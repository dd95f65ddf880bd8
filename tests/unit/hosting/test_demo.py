"""The demo's people: made once, kept, and forgotten only on request."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from matoolkit.errors import UnreadableFile
from matoolkit.hosting.demo import begin_anew, demo_runbook, demo_source
from matoolkit.runbook.parse import parse_runbook
from matoolkit.sources.sql import SqlSource

NOW = datetime(2026, 5, 4, 12, 0, 30, tzinfo=UTC)
LATER = datetime(2026, 5, 4, 13, tzinfo=UTC)
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cutovers(url: str) -> list[str]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as people:
        return [when for (when,) in people.execute("SELECT cutover_at FROM people WHERE wave IS NOT NULL ORDER BY 1")]


def test_people_move_within_minutes_and_the_first_within_one() -> None:
    found = cutovers(demo_source(NOW))
    assert found[0] == "2026-05-04 12:01:00"
    assert len(found) == 6
    assert found[-1] <= "2026-05-04 12:06:00"


def test_the_runbook_finds_them() -> None:
    source = SqlSource(demo_source(NOW))
    query = parse_runbook((ROOT / "runbooks" / "demo.yaml").read_text(encoding="utf-8")).data_source.query
    assert sum(len(piece.rows) for piece in source.pieces(query)) == 6


def test_a_second_start_keeps_them_and_a_fresh_one_does_not(folder: Path) -> None:
    before = cutovers(demo_source(NOW))
    assert cutovers(demo_source(LATER)) == before
    begin_anew()
    assert not list((folder / ".matoolkit").iterdir())
    assert cutovers(demo_source(LATER)) != before


def test_without_its_runbook_the_demo_says_what_is_missing() -> None:
    with pytest.raises(UnreadableFile, match=r"demo\.yaml"):
        demo_runbook()
