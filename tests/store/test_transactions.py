from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, UnicodeText, select, text
from sqlalchemy.types import TypeEngine

from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.states import BatchStatus
from matoolkit.errors import NaiveTime, RowConflict, TimeOutOfRange
from matoolkit.store import Store, schema
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
from matoolkit.store.batches import NewBatch, batches_by_id, insert_batches, lock_batches
from matoolkit.store.dialect.types import Instant
from tests.databases import Database
from tests.store.world import World

pytestmark = pytest.mark.both_executions

ENTRY = NewAuditEntry("anna", "batch.cancel", "batch", "42")


def test_what_is_committed_is_there_afterwards(store: Store, world: World) -> None:
    with store.transaction() as tx:
        record_changes(tx, [ENTRY], world.now)
    with store.reading() as tx:
        assert [entry.actor for entry in audit_page(tx)] == ["anna"]


def test_an_error_undoes_the_whole_transaction(store: Store, world: World) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        record_changes(tx, [ENTRY], world.now)
        _ = 1 / 0
    with store.reading() as tx:
        assert audit_page(tx) == []


@pytest.mark.parametrize(("point", "kept"), [("store.before_commit", 0), ("store.after_commit", 1)])
def test_a_crash_keeps_exactly_what_was_committed(store: Store, world: World, point: str, kept: int) -> None:
    with pytest.raises(SimulatedCrash), crashing(point), store.transaction() as tx:
        record_changes(tx, [ENTRY], world.now)
    with store.reading() as tx:
        assert len(audit_page(tx)) == kept


def test_times_come_back_aware_and_in_utc_whatever_zone_they_were_given_in(store: Store) -> None:
    summer = datetime(2026, 7, 1, 14, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    with store.transaction() as tx:
        record_changes(tx, [ENTRY], summer)
    with store.reading() as tx:
        (entry,) = audit_page(tx)
    assert entry.at == summer
    assert entry.at.tzinfo is UTC


def test_a_time_without_zone_is_refused(store: Store) -> None:
    naive = datetime(2026, 7, 1, 14, 30)  # noqa: DTZ001
    with pytest.raises(NaiveTime), store.transaction() as tx:
        record_changes(tx, [ENTRY], naive)
    with pytest.raises(NaiveTime), store.transaction() as tx:
        insert_batches(tx, [NewBatch(1, "wave", naive, BatchStatus.ACTIVE)], datetime(2026, 1, 1, tzinfo=UTC))


def test_a_time_outside_the_years_of_utc_is_refused(store: Store) -> None:
    too_early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    with pytest.raises(TimeOutOfRange), store.transaction() as tx:
        record_changes(tx, [ENTRY], too_early)
    with pytest.raises(TimeOutOfRange), store.transaction() as tx:
        insert_batches(tx, [NewBatch(1, "wave", too_early, BatchStatus.ACTIVE)], datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("instant", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_first_and_the_last_time_come_back_whatever_zone_the_database_is_in(
    database: Database, zone: str, instant: datetime
) -> None:
    store = database.open()
    with store.transaction() as tx:
        if database.kind == "postgresql":  # the others have no zone
            name = tx.values(text("SELECT current_database()"))[0]
            tx.execute(text(f"ALTER DATABASE {name} SET timezone = '{zone}'"))
    store.close()
    with store.transaction() as tx:
        record_changes(tx, [ENTRY], instant)
    with store.reading() as tx:
        assert [entry.at for entry in audit_page(tx)] == [instant]


@pytest.mark.on("postgresql")
def test_the_zone_of_a_session_is_utc_even_if_the_address_asks_for_another(database: Database) -> None:
    elsewhere = replace(database, url=f"{database.url}{'&' if '?' in database.url else '?'}options=-ctimezone%3DJapan")
    with elsewhere.open().reading() as tx:
        assert tx.values(text("SHOW timezone")) == ["UTC"]


def test_d1_a_status_that_is_not_in_the_enum_cannot_be_stored(store: Store, world: World) -> None:
    world.batch()
    with pytest.raises(RowConflict) as refused, store.transaction() as tx:
        tx.execute(text("UPDATE batches SET status = 'lost'"))
    assert "status" in refused.value.message


def test_d1_every_status_column_has_its_check(store: Store) -> None:
    with store.engine.connect() as connection:
        for table in schema.metadata.sorted_tables:
            wanted = {str(check.name) for check in table.constraints if type(check).__name__ == "CheckConstraint"}
            assert set(store.dialect.checks(connection, table.name)) == wanted


def test_a_batch_needs_its_runbook(store: Store, world: World) -> None:
    orphan = NewBatch(999, "wave", world.now, BatchStatus.ACTIVE)
    with pytest.raises(RowConflict), store.transaction() as tx:
        insert_batches(tx, [orphan], world.now)


def test_the_virtual_clock_stands_in_for_the_databases_own(store: Store, clock: VirtualClock) -> None:
    with store.transaction() as tx:
        assert tx.time() == clock.now()
        assert tx.values(select(tx.now())) == [clock.now()]


def test_the_databases_own_clock_tells_aware_utc_and_does_not_stand_still(database: Database) -> None:
    with database.open().transaction() as tx:
        first, second = tx.time(), tx.time()
    assert first.tzinfo is UTC
    assert first <= second


def test_a_reader_sees_one_picture_while_others_write(database: Database, store: Store, world: World) -> None:
    batch = world.batch()
    other = database.open()
    with store.reading() as tx:
        before = batches_by_id(tx, [batch.id])
        with other.transaction() as writer:
            lock_batches(writer, [batch.id])
            record_changes(writer, [ENTRY], world.now)
        assert audit_page(tx) == []
        assert batches_by_id(tx, [batch.id]) == before


def test_values_of_every_kind_survive_being_handed_over_as_rows(store: Store) -> None:
    kinds: dict[str, TypeEngine[Any]] = {"id": BigInteger(), "text": UnicodeText(), "flag": Boolean(), "at": Instant()}
    summer = datetime(2026, 7, 1, 14, 30, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    rows = [
        (1, "x", True, summer),
        (2**62, None, False, None),
        (-(2**62), 'é "quoted" \\ {a,b} NULL 🧑‍💻', None, datetime(1, 1, 2, tzinfo=UTC)),
        (None, "", True, datetime(9999, 12, 30, tzinfo=UTC)),
    ]
    with store.transaction() as tx:
        for given in (rows, rows[1:2], []):
            assert tx.rows(lambda *row: row, select(*tx.table_of(kinds, given).c)) == given


def test_nothing_is_asked_of_the_database_for_an_empty_set(store: Store, statements: Callable[[], list[str]]) -> None:
    with store.transaction() as tx:
        assert batches_by_id(tx, []) == []
        assert lock_batches(tx, []) == []
        assert record_changes(tx, [], datetime(2026, 1, 1, tzinfo=UTC)) == []
    assert statements() == []
