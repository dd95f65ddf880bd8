from collections.abc import Callable
from datetime import timedelta, timezone

import pytest
from sqlalchemy import inspect, text

from matoolkit.domain.keys import folded
from matoolkit.errors import TooManyColumns, UnusableKey
from matoolkit.store import Store
from matoolkit.store.datatables import (
    MOST_COLUMNS,
    DataRow,
    DataTable,
    KnownRows,
    data_rows,
    known_rows,
    mark_gone,
    open_data_table,
    upsert_rows,
)
from tests.conformance.store.world import World

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


def rows(count: int, value: str = "v") -> list[DataRow]:
    return [DataRow(f"User{number}", None, [f"{value}{number}", None]) for number in range(count)]


@pytest.fixture
def table(store: Store) -> DataTable:
    with store.transaction() as tx:
        return open_data_table(tx, "runbook_wave_v1", ["Email", "Aliases"])


def test_d2_hostile_column_names_are_stored_and_never_executed(store: Store, world: World) -> None:
    world.batch()
    with store.transaction() as tx:
        table = open_data_table(tx, "runbook_wave_v1", NAMES)
        values = [f"value of {name!r}" for name in NAMES]
        upsert_rows(tx, table, [DataRow("anna", world.now, values)], KnownRows([]), world.now)
    columns = list(table.columns.values())
    assert len({column.casefold() for column in columns}) == len(NAMES)
    assert all(len(column.encode()) <= 63 for column in columns)
    with store.reading() as tx:
        ((_, key, batch_time, *stored),) = data_rows(tx, table)
        assert (key, batch_time, stored) == ("anna", world.now, values)
        assert tx.values(text("SELECT count(*) FROM batches")) == [1]
    assert set(columns) <= {column["name"] for column in inspect(store.engine).get_columns("runbook_wave_v1")}


def test_d2_a_column_that_appears_later_is_added_and_the_others_keep_their_names(store: Store, world: World) -> None:
    with store.transaction() as tx:
        before = open_data_table(tx, "runbook_wave_v1", ["a b"])
        upsert_rows(tx, before, [DataRow("anna", None, ["1"])], KnownRows([]), world.now)
    with store.transaction() as tx:
        after = open_data_table(tx, "runbook_wave_v1", ["a_b", "a b", HOSTILE])
        assert dict(list(after.columns.items())[:1]) == dict(before.columns)
        known = known_rows(tx, after)
        assert upsert_rows(tx, after, [DataRow("anna", None, ["1", "2", "3"])], known, world.now).changed == 1
    with store.reading() as tx:
        ((_, _, _, *values),) = data_rows(tx, after)
        assert values == ["1", "2", "3"]


def test_d2_a_column_name_that_cannot_be_stored_is_known_again(store: Store, world: World) -> None:
    for _ in range(3):
        with store.transaction() as tx:
            table = open_data_table(tx, "runbook_wave_v1", ["a\0b", "half \ud83d"])
            upsert_rows(tx, table, [DataRow("anna", None, ["1", "2"])], known_rows(tx, table), world.now)
        assert list(table.columns.values()) == ["a_b", "half"]


def test_d2_opening_a_table_again_changes_nothing(
    store: Store, table: DataTable, statements: Callable[[], list[str]]
) -> None:
    statements()
    with store.transaction() as tx:
        again = open_data_table(tx, "runbook_wave_v1", ["Email", "Aliases"])
    assert again.columns == table.columns
    assert all(statement.lstrip().startswith(("SELECT", "PRAGMA")) for statement in statements())


def test_t4_an_unchanged_row_costs_no_write(
    store: Store, world: World, table: DataTable, statements: Callable[[], list[str]]
) -> None:
    with store.transaction() as tx:
        assert upsert_rows(tx, table, rows(100), KnownRows([]), world.now).inserted == 100
    statements()
    with store.transaction() as tx:
        known = known_rows(tx, table)
        done = upsert_rows(tx, table, rows(100), known, world.now + timedelta(minutes=5))
        assert (done.inserted, done.changed, done.unchanged) == (0, 0, 100)
        assert mark_gone(tx, table, known, {folded(row.member_key) for row in rows(100)}, world.now) == 0
    assert len(statements()) == 1


def test_t4_the_same_instant_in_another_zone_is_no_change(store: Store, world: World, table: DataTable) -> None:
    there = world.now.astimezone(timezone(timedelta(hours=2)))
    with store.transaction() as tx:
        upsert_rows(tx, table, [DataRow("anna", world.now, ["1", "2"])], KnownRows([]), world.now)
        known = known_rows(tx, table)
        assert upsert_rows(tx, table, [DataRow("anna", there, ["1", "2"])], known, world.now).unchanged == 1


def test_t4_a_new_column_is_written_only_for_rows_with_a_value_in_it(store: Store, world: World) -> None:
    with store.transaction() as tx:
        before = open_data_table(tx, "runbook_wave_v1", ["a", "b"])
        old = [DataRow("anna", None, ["1", "2"]), DataRow("ben", None, ["1", None]), DataRow("cleo", None, ["1", "2"])]
        upsert_rows(tx, before, old, KnownRows([]), world.now)
        after = open_data_table(tx, "runbook_wave_v1", ["a", "b", "c"])
        new = [row._replace(values=[*row.values, None]) for row in old[:2]] + [DataRow("cleo", None, ["1", "2", "3"])]
        done = upsert_rows(tx, after, new, known_rows(tx, after), world.now)
        assert (done.changed, done.unchanged) == (1, 2)
        emptied = [DataRow("cleo", None, ["1", "2", None])]
        assert upsert_rows(tx, after, emptied, known_rows(tx, after), world.now).changed == 1
        assert [values for _, _, _, *values in data_rows(tx, after)][-1] == ["1", "2", None]


def test_t4_only_what_changed_is_written_and_the_time_with_it(store: Store, world: World, table: DataTable) -> None:
    start = world.now
    with store.transaction() as tx:
        upsert_rows(tx, table, rows(3), KnownRows([]), start)
    world.clock.advance(timedelta(minutes=5))
    with store.transaction() as tx:
        known = known_rows(tx, table)
        moved = DataRow("USER1", start, ["v1", None])
        done = upsert_rows(tx, table, [rows(3)[0], moved, rows(4)[3]], known, world.now)
        assert (done.inserted, done.changed, done.unchanged) == (1, 1, 1)
        gone = mark_gone(tx, table, known, {"user0", "user1", "user3"}, world.now)
        assert gone == 1
    with store.reading() as tx:
        columns = "_member_key, _first_seen_at, _last_seen_at, _is_current"
        query = f"SELECT {columns} FROM runbook_wave_v1 ORDER BY _row_id"
        stored = tx.rows(lambda key, first, last, current: (key, first == last, bool(current)), text(query))
    assert stored == [
        ("User0", True, True),
        ("User1", False, True),
        ("User2", False, False),
        ("User3", True, True),
    ]


def test_d2_a_row_that_comes_back_is_current_again(
    store: Store, world: World, table: DataTable, statements: Callable[[], list[str]]
) -> None:
    with store.transaction() as tx:
        upsert_rows(tx, table, rows(1), KnownRows([]), world.now)
        mark_gone(tx, table, known_rows(tx, table), set(), world.now)
        assert data_rows(tx, table) == []
        known = known_rows(tx, table)
        statements()
        assert mark_gone(tx, table, known, set(), world.now) == 0
        assert statements() == []
        assert upsert_rows(tx, table, rows(1), known, world.now).changed == 1
        assert len(data_rows(tx, table)) == 1


def test_d2_the_statements_of_an_upsert_do_not_grow_with_its_rows(
    store: Store, world: World, table: DataTable, statements: Callable[[], list[str]]
) -> None:
    counts = []
    for size in (10, 1000):
        with store.transaction() as tx:
            known = known_rows(tx, table)
            statements()
            upsert_rows(tx, table, rows(size, value=str(size)), known, world.now)
            counts.append(len(statements()))
    assert counts == [1, 2]


def test_d2_a_table_takes_as_many_columns_as_every_database_allows_and_no_more(store: Store, world: World) -> None:
    names = [f"column {number} " + "x" * 5000 for number in range(MOST_COLUMNS)]
    with store.transaction() as tx:
        wide = open_data_table(tx, "runbook_wide_v1", names)
        upsert_rows(tx, wide, [DataRow("anna", None, names)], KnownRows([]), world.now)
        ((_, _, _, *values),) = data_rows(tx, wide)
        assert values == names
    with pytest.raises(TooManyColumns), store.transaction() as tx:
        open_data_table(tx, "runbook_wide_v1", [*names, "one more"])


def test_t4_what_no_database_stores_is_replaced_in_values_and_is_no_change(
    store: Store, world: World, table: DataTable
) -> None:
    strange = [DataRow("anna", None, ["a\0b", "c\ud800d"]), DataRow("ben", None, ["é", None])]
    with store.transaction() as tx:
        upsert_rows(tx, table, strange, KnownRows([]), world.now)
        assert [values for _, _, _, *values in data_rows(tx, table)] == [["a\ufffdb", "c\ufffdd"], ["é", None]]
        assert upsert_rows(tx, table, strange, known_rows(tx, table), world.now).unchanged == 2


@pytest.mark.parametrize("key", ["x" * 401, "half \ud83d"])
def test_a_key_that_cannot_be_stored_is_refused(store: Store, world: World, table: DataTable, key: str) -> None:
    with pytest.raises(UnusableKey), store.transaction() as tx:
        upsert_rows(tx, table, [DataRow(key, None, ["", ""])], KnownRows([]), world.now)
