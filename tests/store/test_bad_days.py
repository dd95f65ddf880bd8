"""A clear error, nothing half-done, and work resumes."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import event, text

from matoolkit.clock import VirtualClock
from matoolkit.errors import (
    SchemaMissing,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from matoolkit.store import Store, open_store
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
from matoolkit.store.batches import lock_batches
from matoolkit.store.upgrade import require_current_schema
from tests.databases import NOON, Database, PostgresServer
from tests.store.world import World
from tests.threads import in_threads

ENTRY = NewAuditEntry("anna", "batch.cancel", "batch", "42", reason="x" * 500)


def entries(store: Store) -> int:
    with store.reading() as tx:
        return len(audit_page(tx, limit=100_000))


def test_a_full_disk_undoes_the_transaction_and_work_resumes_with_room(migrated_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.db"
    path.write_bytes(migrated_file.read_bytes())
    store = open_store(f"sqlite:///{path}")
    pages = {"limit": 120}

    @event.listens_for(store.engine, "checkout")
    def _limit(connection: Any, *_: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages['limit']}")

    with store.transaction() as tx:
        record_changes(tx, [ENTRY], NOON)
    with pytest.raises(StoreFull, match="full") as full, store.transaction() as tx:
        record_changes(tx, [ENTRY] * 5000, NOON)
    assert full.value.transient
    assert entries(store) == 1
    pages["limit"] = 100_000
    with store.transaction() as tx:
        record_changes(tx, [ENTRY] * 5000, NOON)
    assert entries(store) == 5001
    store.close()


def test_a_locked_database_is_busy_after_a_while_and_free_again_later(
    database: Database, world: World, clock: VirtualClock
) -> None:
    batch = world.batch()
    impatient = database.open(clock, patience_seconds=0.05)
    locked, done = Event(), Event()

    def hold() -> None:
        with world.store.transaction() as tx:
            lock_batches(tx, [batch.id])
            locked.set()
            done.wait()

    def try_to_lock() -> None:
        locked.wait()
        try:
            with pytest.raises(StoreBusy) as busy, impatient.transaction() as tx:
                lock_batches(tx, [batch.id])
            assert busy.value.transient
            assert busy.value.hint
        finally:
            done.set()

    in_threads([hold, try_to_lock])
    with impatient.transaction() as tx:
        assert [row.id for row in lock_batches(tx, [batch.id])] == [batch.id]


def test_a_deadlock_ends_one_of_the_two_as_busy(postgres: PostgresServer) -> None:
    name = postgres.make_migrated()
    database = Database(postgres.url_of(name), "postgresql")
    stores = [database.open(), database.open()]
    with stores[0].transaction() as tx:
        tx.execute(text("INSERT INTO leases SELECT n::text, '', 0, now(), now() FROM generate_series(1, 2) n"))
    first_locked = [Event(), Event()]

    def cross(mine: int) -> str:
        statement = "UPDATE leases SET token = token + 1 WHERE name = '{}'"
        try:
            with stores[mine].transaction() as tx:
                tx.execute(text(statement.format(mine + 1)))
                first_locked[mine].set()
                first_locked[1 - mine].wait()
                tx.execute(text(statement.format(2 - mine)))
        except StoreBusy:
            return "busy"
        return "done"

    assert sorted(in_threads([lambda: cross(0), lambda: cross(1)])) == ["busy", "done"]
    database.close()
    postgres.drop(name)


@pytest.fixture
def cut_off(postgres: PostgresServer) -> Callable[[str], None]:
    def end_all_connections(database: str) -> None:
        statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        postgres.run(statement, name=database)

    return end_all_connections


def test_a_dropped_connection_undoes_the_transaction_and_the_next_one_works(
    postgres: PostgresServer, cut_off: Callable[[str], None]
) -> None:
    name = postgres.make_migrated()
    database = Database(postgres.url_of(name), "postgresql")
    store = database.open()
    with pytest.raises(StoreUnavailable) as lost, store.transaction() as tx:
        record_changes(tx, [ENTRY], NOON)
        cut_off(name)
        record_changes(tx, [ENTRY], NOON)
    assert lost.value.transient
    assert entries(store) == 0
    with pytest.raises(StoreUnavailable), store.transaction() as tx:
        record_changes(tx, [ENTRY], NOON)
        cut_off(name)
    assert entries(store) == 0
    cut_off(name)
    with store.transaction() as tx:
        record_changes(tx, [ENTRY], NOON)
    assert entries(store) == 1
    database.close()
    postgres.drop(name)


def test_nothing_more_is_done_on_a_connection_that_dropped(
    postgres: PostgresServer, cut_off: Callable[[str], None]
) -> None:
    name = postgres.make_migrated()
    database = Database(postgres.url_of(name), "postgresql")
    store = database.open()
    with pytest.raises(StoreUnavailable, match="broke during the transaction"), store.transaction() as tx:
        cut_off(name)
        with pytest.raises(StoreUnavailable, match="PostgreSQL: "):
            record_changes(tx, [ENTRY], NOON)
        record_changes(tx, [ENTRY], NOON)
    assert entries(store) == 0
    database.close()
    postgres.drop(name)


def test_an_outage_is_one_line_when_it_begins_one_a_minute_and_one_when_it_ends(
    postgres: PostgresServer,
    cut_off: Callable[[str], None],
    clock: VirtualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = postgres.make_migrated()
    database = Database(postgres.url_of(name), "postgresql")
    store = database.open(clock)
    assert entries(store) == 0
    cut_off(name)
    postgres.run(f"ALTER DATABASE {name} RENAME TO {name}_away")
    for _ in range(130):
        with pytest.raises(StoreUnavailable), store.transaction():
            pass
        clock.sleep(1)
    postgres.run(f"ALTER DATABASE {name}_away RENAME TO {name}")
    assert entries(store) == entries(store) == 0
    first, *reminders, last = caplog.messages
    assert first.startswith("the database fails, and is tried again: PostgreSQL: ")
    assert [told.split(":")[0] for told in reminders] == [
        f"the database still fails after {seconds} seconds" for seconds in (60, 120)
    ]
    assert last == "the database works again after 130 seconds"
    database.close()
    postgres.drop(name)


def test_a_full_disk_is_told_once_though_reading_works(
    migrated_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "small.db"
    path.write_bytes(migrated_file.read_bytes())
    store = open_store(f"sqlite:///{path}")
    pages = {"limit": 120}

    @event.listens_for(store.engine, "checkout")
    def _limit(connection: Any, *_: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages['limit']}")

    with store.transaction() as tx:
        record_changes(tx, [ENTRY], NOON)
    for _ in range(3):
        with pytest.raises(StoreFull), store.transaction() as tx:
            record_changes(tx, [ENTRY] * 5000, NOON)
        assert entries(store) == 1
    pages["limit"] = 100_000
    with store.transaction() as tx:
        record_changes(tx, [ENTRY], NOON)
    store.close()
    began, ended = caplog.messages
    assert began == "writing to the database fails, and is tried again: SQLite: database or disk is full"
    assert ended.startswith("writing to the database works again")


def test_a_server_that_is_not_there_is_unavailable_and_its_password_is_not_told() -> None:
    store = open_store("postgresql://anna:hunter2secret@127.0.0.1:1/state")
    with pytest.raises(StoreUnavailable) as refused:
        require_current_schema(store)
    assert "hunter2secret" not in f"{refused.value} {refused.value.hint} {refused.value.__cause__}"
    assert "MATOOLKIT_DATABASE_URL" in str(refused.value.hint)


def test_a_database_that_does_not_exist_is_unavailable(postgres: PostgresServer) -> None:
    store = open_store(postgres.url_of("nowhere"))
    with pytest.raises(StoreUnavailable, match="nowhere"):
        require_current_schema(store)


def test_a_file_that_is_no_database_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is a shopping list, not a database\n" * 50)
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(StoreDamaged):
        require_current_schema(store)
    assert path.read_text().startswith("this is a shopping list")


def test_a_file_in_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/nowhere/state.db")
    with pytest.raises(StoreUnavailable), store.transaction():
        pass


@pytest.mark.parametrize(("may_write", "error"), [(True, StoreUnavailable), (False, StoreReadOnly)])
def test_a_file_in_a_folder_that_may_only_be_read_is_told_so(
    migrated_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_write: bool, error: type[StoreError]
) -> None:
    shutil.copy(migrated_file, tmp_path / "state.db")
    # The tests may run as root, who may write everywhere. So SQLite is kept from its log in another way.
    (tmp_path / "state.db-wal").mkdir()
    monkeypatch.setattr(os, "access", lambda *_: may_write)
    with pytest.raises(error) as refused, open_store(f"sqlite:///{tmp_path}/state.db").transaction():
        pass
    assert type(refused.value) is error


def test_looking_for_a_database_that_is_not_there_does_not_make_one(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/nowhere/state.db")
    with pytest.raises(SchemaMissing):
        require_current_schema(store)
    assert list(tmp_path.iterdir()) == []


def test_writing_while_only_reading_was_promised_is_refused(store: Store) -> None:
    with pytest.raises(StoreReadOnly), store.reading() as tx:
        record_changes(tx, [ENTRY], NOON)
    with store.transaction() as tx:
        record_changes(tx, [ENTRY], NOON)
    assert entries(store) == 1


def test_a_missing_table_is_an_error_with_the_databases_own_words(store: Store) -> None:
    with pytest.raises(StoreError, match="nothing_here") as refused, store.transaction() as tx:
        tx.execute(text("SELECT * FROM nothing_here"))
    assert type(refused.value) is StoreError
    assert not refused.value.transient
