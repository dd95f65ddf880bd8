"""The demo's people, its tenant and its runbook: made once, kept, and forgotten only on request."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.rows import RowReader
from matoolkit.errors import AlreadyUp
from matoolkit.hosting.demo import RUNBOOK, make_source
from matoolkit.hosting.folder import FOLDER, SOURCE, TENANT, alone_in, forget_all
from matoolkit.hosting.trial import begin, open_tenant
from matoolkit.runbook.parse import parse_runbook
from matoolkit.sources.sql import SqlSource
from matoolkit.store import Store, open_store
from matoolkit.store.upgrade import upgrade

NOW = datetime(2026, 5, 4, 12, 0, 30, tzinfo=UTC)
LATER = datetime(2026, 5, 4, 13, tzinfo=UTC)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    FOLDER.mkdir()
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    store = open_store("sqlite:///.matoolkit/matoolkit.db")
    upgrade(store)
    yield store
    store.close()


def cutovers() -> list[str]:
    with closing(sqlite3.connect(SOURCE)) as people:
        return [when for (when,) in people.execute("SELECT cutover_at FROM people ORDER BY 1")]


def test_the_first_move_within_half_a_minute_and_the_last_within_a_quarter_of_an_hour() -> None:
    make_source(SOURCE, NOW)
    _unreadable, first, *_, last = cutovers()
    assert first == "2026-05-04 12:00:40"
    assert last <= "2026-05-04 12:15:00"


def test_the_runbook_finds_everybody_who_is_approved_by_now_and_one_row_is_set_aside() -> None:
    make_source(SOURCE, NOW)
    description = parse_runbook(RUNBOOK.read_text(encoding="utf-8")).data_source
    reader = RowReader(description, lambda _: False)
    for piece in SqlSource(f"sqlite:///{SOURCE}").pieces(description.query):
        reader.take(piece.columns, piece.rows)
    reading = reader.reading()
    # By the real clock, which the view asks, Emmy has joined and Hedy has left.
    assert len(reading.candidates) == 8
    assert "emmy@contoso.com" in reading.candidates
    assert "hedy@contoso.com" not in reading.candidates
    assert [sample.key for sample in reading.samples] == ["joan@contoso.com"]


def test_a_second_start_keeps_people_and_runbook_as_they_are(store: Store) -> None:
    assert begin(store, None, NOW)
    before = cutovers()
    assert not begin(store, None, LATER)
    assert cutovers() == before


def test_another_database_begins_with_people_and_a_tenant_of_its_own(store: Store, tmp_path: Path) -> None:
    begin(store, None, NOW)
    before = cutovers()
    open_tenant(VirtualClock(NOW)).directory.add_group("left over")
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    upgrade(other)
    assert begin(other, None, LATER)
    other.close()
    assert cutovers() != before
    assert not TENANT.exists()


def test_the_tenant_has_the_group_and_keeps_what_becomes_of_it() -> None:
    tenant = open_tenant(VirtualClock(NOW))
    (group,) = tenant.directory.groups.values()
    assert group.display_name == "Fabrikam staff"
    assert open_tenant(VirtualClock(LATER)).directory.groups == tenant.directory.groups


def test_a_fresh_start_forgets_everything(store: Store) -> None:
    begin(store, None, NOW)
    open_tenant(VirtualClock(NOW))
    store.close()
    forget_all()
    assert not list(FOLDER.iterdir())


def test_one_process_at_a_time_uses_a_folder(folder: Path) -> None:
    with alone_in(folder / "state"), pytest.raises(AlreadyUp, match="already runs"), alone_in(folder / "state"):
        pass
    with alone_in(folder / "state"):
        pass


def test_s11_only_the_owner_can_look_into_the_folder_and_its_files(store: Store) -> None:
    FOLDER.chmod(0o755)
    (FOLDER / "of-an-older-version.db").touch(0o644)
    with alone_in(FOLDER), store.transaction() as tx:
        begin(store.within(tx), None, NOW)
        open_tenant(VirtualClock(NOW))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in FOLDER.iterdir()}
    assert stat.S_IMODE(FOLDER.stat().st_mode) == 0o700
    assert {"matoolkit.db", "matoolkit.db-wal", "demo-source.db", "tenant.json", "up.lock"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_a_folder_that_cannot_be_written_is_told(folder: Path) -> None:
    (folder / "state" / "up.lock").mkdir(parents=True)
    with pytest.raises(OSError, match=r"up\.lock cannot be written"), alone_in(folder / "state"):
        pass
