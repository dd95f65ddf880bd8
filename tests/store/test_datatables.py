from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b

import pytest
from sqlalchemy import inspect, text

from matoolkit.domain.cells import MOST_COLUMNS
from matoolkit.errors import TooManyColumns, UnusableKey
from matoolkit.store import Store
from matoolkit.store.datatables import (
    DataRow,
    DataTable,
    current_keys,
    data_rows,
    known_fingerprints,
    mark_gone,
    open_data_table,
    upsert_rows,
)
from matoolkit.store.sql.transaction import Transaction
from tests.databases import full_name, place_of
from tests.store.world import World

pytestmark = pytest.mark.both_executions

# What databases call columns of their own: PostgreSQL's cannot be made a second time, SQLite's can be.
SYSTEM = [
    "ctid",
    "xmin",
    "CMIN",
    "xmax",
    "cmax",
    "TableOid",
    "ctid_2",
    "rowid",
    "oid",
    "_rowid_",
    "$identity",
    "rowguid",
]
HOSTILE = 'x"; DROP TABLE batches; --'
NAMES = [
    HOSTILE,
    "x'); DELETE FROM batches; --",
    "c" * 200,
    "c" * 199 + "d",
    "🧑‍💻",
    "Name",
    "name",
    "NAME ",
    "a b",
    "a_b",
    "select",
    "%s %(x)s :x ?",
    "Prénom",
    "_row_id",
    "",
]


def row(key: str, values: Sequence[str | None], batch_time: datetime | None = None) -> DataRow:
    fingerprint = blake2b(repr((key, values, batch_time)).encode(), digest_size=16).digest()
    return DataRow(key, batch_time, fingerprint, values)


def rows(count: int, value: str = "v") -> list[DataRow]:
    return [row(f"User{number}", [f"{value}{number}", None]) for number in range(count)]


def gone(tx: Transaction, table: DataTable, present: Collection[str], at: datetime) -> int:
    missing = [row_id for row_id, key in current_keys(tx, table, after=0, limit=1000) if key not in present]
    return mark_gone(tx, table, missing, at)


@pytest.fixture
def table(store: Store) -> DataTable:
    with store.transaction() as tx:
        return open_data_table(tx, place_of(store, "runbook_wave_v1"), ["Email", "Aliases"])


def test_d2_hostile_column_names_are_stored_and_never_executed(store: Store, world: World) -> None:
    world.batch()
    with store.transaction() as tx:
        table = open_data_table(tx, place_of(store, "runbook_wave_v1"), NAMES)
        values = [f"value of {name!r}" for name in NAMES]
        upsert_rows(tx, table, [row("anna", values, world.now)], world.now)
    columns = list(table.columns.values())
    assert len({column.casefold() for column in columns}) == len(NAMES)
    assert all(len(column.encode()) <= 63 for column in columns)
    with store.reading() as tx:
        ((_, key, batch_time, *stored),) = data_rows(tx, table)
        assert (key, batch_time, stored) == ("anna", world.now, values)
        assert tx.values(text("SELECT count(*) FROM batches")) == [1]
    assert set(columns) <= {
        column["name"] for column in inspect(store.engine).get_columns("runbook_wave_v1", store.dialect.data_schema)
    }


@pytest.mark.parametrize("first", [SYSTEM, []], ids=["at once", "later"])
def test_d2_columns_may_be_called_like_a_databases_own(store: Store, world: World, first: list[str]) -> None:
    with store.transaction() as tx:
        open_data_table(tx, place_of(store, "runbook_wave_v1"), ["Email", *first])
        table = open_data_table(tx, place_of(store, "runbook_wave_v1"), ["Email", *SYSTEM])
    for value in ("old", "new"):
        with store.transaction() as tx:
            values = [f"{value} {name}" for name in table.columns]
            upsert_rows(tx, table, [row("anna", values)], world.now)
        with store.reading() as tx:
            ((_, _, _, *stored),) = data_rows(tx, table)
        assert stored == values
    assert table.columns["ctid"] == "ctid_2"
    assert table.columns["ctid_2"] == "ctid_2_2"


def test_d2_a_column_that_appears_later_is_added_and_the_others_keep_their_names(store: Store, world: World) -> None:
    with store.transaction() as tx:
        before = open_data_table(tx, place_of(store, "runbook_wave_v1"), ["a b"])
        upsert_rows(tx, before, [row("anna", ["1"])], world.now)
    with store.transaction() as tx:
        after = open_data_table(tx, place_of(store, "runbook_wave_v1"), ["a_b", "a b", HOSTILE])
        assert dict(list(after.columns.items())[:1]) == dict(before.columns)
        assert upsert_rows(tx, after, [row("anna", ["1", "2", "3"])], world.now).changed == 1
    with store.reading() as tx:
        ((_, _, _, *values),) = data_rows(tx, after)
        assert values == ["1", "2", "3"]


def test_d2_a_column_name_that_cannot_be_stored_is_known_again(store: Store, world: World) -> None:
    for _ in range(3):
        with store.transaction() as tx:
            table = open_data_table(tx, place_of(store, "runbook_wave_v1"), ["a\0b", "half \ud83d"])
            upsert_rows(tx, table, [row("anna", ["1", "2"])], world.now)
        assert list(table.columns.values()) == ["a_b", "half"]


def test_d2_opening_a_table_again_changes_nothing(
    store: Store, table: DataTable, statements: Callable[[], list[str]]
) -> None:
    statements()
    with store.transaction() as tx:
        again = open_data_table(tx, place_of(store, "runbook_wave_v1"), ["Email", "Aliases"])
    assert again.columns == table.columns
    assert all(statement.lstrip().startswith(("SELECT", "PRAGMA")) for statement in statements())


def test_t4_an_unchanged_row_is_known_by_its_fingerprint(store: Store, world: World, table: DataTable) -> None:
    with store.transaction() as tx:
        assert upsert_rows(tx, table, rows(100), world.now).inserted == 100
    with store.reading() as tx:
        assert known_fingerprints(tx, table) == {row.fingerprint for row in rows(100)}


def test_t4_only_what_changed_is_written_and_the_time_with_it(store: Store, world: World, table: DataTable) -> None:
    start = world.now
    with store.transaction() as tx:
        upsert_rows(tx, table, rows(3), start)
    world.clock.advance(timedelta(minutes=5))
    with store.transaction() as tx:
        done = upsert_rows(tx, table, [row("USER1", ["v1", None], start), rows(4)[3]], world.now)
        assert (done.inserted, done.changed) == (1, 1)
        assert gone(tx, table, {"user0", "user1", "user3"}, world.now) == 1
    with store.reading() as tx:
        columns = "_member_key, _first_seen_at, _last_seen_at, _is_current"
        query = f"SELECT {columns} FROM {full_name(store, 'runbook_wave_v1')} ORDER BY _row_id"
        stored = tx.rows(lambda key, first, last, current: (key, first == last, bool(current)), text(query))
    assert stored == [
        ("User0", True, True),
        ("User1", False, True),
        ("User2", False, False),
        ("User3", True, True),
    ]


def test_d2_a_row_that_comes_back_is_current_again(store: Store, world: World, table: DataTable) -> None:
    with store.transaction() as tx:
        upsert_rows(tx, table, rows(1), world.now)
        assert gone(tx, table, set(), world.now) == 1
        assert data_rows(tx, table) == []
        assert known_fingerprints(tx, table) == set()
        assert gone(tx, table, set(), world.now) == 0
        assert upsert_rows(tx, table, rows(1), world.now).changed == 1
        assert len(data_rows(tx, table)) == 1


def test_d2_the_statements_of_an_upsert_do_not_grow_with_its_rows(
    store: Store, world: World, table: DataTable, statements: Callable[[], list[str]]
) -> None:
    counts = []
    for size in (10, 1000):
        with store.transaction() as tx:
            statements()
            upsert_rows(tx, table, rows(size, value=str(size)), world.now)
            counts.append(len(statements()))
    assert counts == [2, 3]


def test_d2_rows_are_looked_through_slice_by_slice(store: Store, world: World, table: DataTable) -> None:
    with store.transaction() as tx:
        upsert_rows(tx, table, rows(5), world.now)
        first = current_keys(tx, table, after=0, limit=3)
        assert [key for _, key in first] == ["user0", "user1", "user2"]
        assert [key for _, key in current_keys(tx, table, after=first[-1][0], limit=3)] == ["user3", "user4"]


def test_d2_a_table_takes_as_many_columns_as_every_database_allows_and_no_more(store: Store, world: World) -> None:
    names = [f"column {number} " + "x" * 5000 for number in range(MOST_COLUMNS)]
    with store.transaction() as tx:
        wide = open_data_table(tx, place_of(store, "runbook_wide_v1"), names)
        upsert_rows(tx, wide, [row("anna", names)], world.now)
        ((_, _, _, *values),) = data_rows(tx, wide)
        assert values == names
    with pytest.raises(TooManyColumns), store.transaction() as tx:
        open_data_table(tx, place_of(store, "runbook_wide_v1"), [*names, "one more"])


def test_t4_what_no_database_stores_is_replaced_in_values(store: Store, world: World, table: DataTable) -> None:
    strange = [row("anna", ["a\0b", "c\ud800d"]), row("ben", ["é", None])]
    with store.transaction() as tx:
        upsert_rows(tx, table, strange, world.now)
        assert [values for _, _, _, *values in data_rows(tx, table)] == [["a\ufffdb", "c\ufffdd"], ["é", None]]


@pytest.mark.parametrize("key", ["x" * 401, "half \ud83d"])
def test_a_key_that_cannot_be_stored_is_refused(store: Store, world: World, table: DataTable, key: str) -> None:
    with pytest.raises(UnusableKey), store.transaction() as tx:
        upsert_rows(tx, table, [DataRow(key, None, bytes(16), ["", ""])], world.now)
