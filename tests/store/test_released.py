"""What was released stays as it was: its migrations, and the data of those who upgrade."""

import hashlib
import json
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, inspect, text

import matoolkit.store.migrations
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.states import MOVED
from matoolkit.store import Store
from matoolkit.store.batches import batches_by_id, unfinished_batches
from matoolkit.store.counting import changes_of, differing_counts
from matoolkit.store.counts import member_counts
from matoolkit.store.enrolments import members_page
from matoolkit.store.gatekeeping import batches_behind, gates_to_sweep
from matoolkit.store.gates import gates_in_force
from matoolkit.store.members import members_by_id
from matoolkit.store.narrow_members import members_to_catch_up, members_to_see_off
from matoolkit.store.schema import metadata
from matoolkit.store.upgrade import require_current_schema, revisions, schema_differences, upgrade
from matoolkit.store.waking import count_wakes
from tests.databases import Database

VERSIONS = Path(matoolkit.store.migrations.__path__[0]) / "versions"
# A database of revision 0005 in which a demo ran, with a row in every table.
DATA_OF_0005 = Path(__file__).parents[1] / "golden" / "revision_0005.json"

RELEASED = {
    "0001_runbooks": "117c17d96826097a9a6a5d4159ddc21a2bc3d8fdab536e6be6b7945859051218",
    "0002_batches": "15127cd94e9ea9aadae425fdbf1cb45bb68ad18c5fb2f4b0d41e356b4cc6b94d",
    "0003_executions": "3eda697db6e130355b1d478e275b6639fac7e19adda28b20351d88717dc40211",
    "0004_messages": "f552ccd0d98864815d0453962df0656a07e9df74601a63f0f6aeb36e491a2cc0",
    "0005_administration": "bb8509748a0261a7070064cbc3b67058bdfcbca3c9593107c54bb373e3561732",
    "0006_membership": "fe309687d48e9c109e4d353f7f0595bbc402d2c034db4846c4ea777e8e70bc4a",
    "0007_retries": "5eaac4139084a9ad9e5cca82421fedce0d84526811bcb1cbfabb7ffbd0e7e651",
    "0008_leavers": "a016829b8e065f843edee77e564244ce190941637e8f87ebcc07ab0a040d7188",
    "0009_data_schema": "513136db8b150c7335a19a88e25b9e1289d2a83896f84f35188819cfee7eb195",
    "0010_pace": "871bbbdb51859ebe4c4471c21d00f0b78b0dd6bb3b5b068e04af2078b4ac05aa",
    "0011_causes": "d8201dd55cb1e8ce026c9f401797028b76de4cc091690ad94f1d6125319ab847",
    "0012_undo": "4d677ab69bce6a28fd65cf89464a15301ada132b908122060adfae816da1d7fb",
    "0013_undo_failures": "a2feb6311d4fce3abd84711e62a9f51275aaa0324f67bd987352c96e9d4694c0",
    "0014_gates": "fdb310dfd5307c9a5de940861674301230a9bfc69d11507d9d25318421ab50bc",
    "0015_counts": "131cd0639f377e95187bcac4788b14064bd8dfd2f031883bccde5dc59e389bd0",
    "0016_pulse": "5f2b4b290760cef88cee67c672b07c0b0954182e4a372fc97d19a0a87ab47362",
    "0017_doors": "068298944f0ee5d61b95c3802f55ca5efae80c9d35f6cc91d62aa5d7acda33b9",
}

# Columns whose values revision 0014 moves to a table of their own.
OF_HOLDS = {"held_at", "hold_reason", "hold_key", "hold_json"}
OF_HOLDS |= {"approved_hold_key", "approved_hold_by", "approved_hold_at"}

LEFT = "2026-11-16 15:14:33.443797"
COPY_OF_A_LEAVER = """
INSERT INTO batch_members (id, batch_id, member_key, member_key_fold, status, epoch, data_json, data_hash,
    worker_data_json, added_at, caught_up_at, removed_at, removed_by, remove_reason)
SELECT :id, batch_id, :key, :key, status, epoch, data_json, data_hash, worker_data_json, added_at, :at, removed_at,
    removed_by, :reason FROM batch_members WHERE id = 6
"""

Rows = dict[str, list[dict[str, Any]]]


def test_there_is_a_row_for_every_table_of_revision_0005(old: tuple[Store, Rows]) -> None:
    store, rows = old
    assert {*inspect(store.engine).get_table_names()} == {*rows, "alembic_version"}


def test_a_released_migration_is_never_edited() -> None:
    made = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in VERSIONS.glob("0*.py")}
    edited = [name for name, checksum in RELEASED.items() if made.get(name) != checksum]
    assert edited == [], "a released migration is never edited: add a new one that changes the tables"
    assert sorted(made) == sorted(RELEASED), "add the checksum of a new migration when it is released"


@pytest.fixture
def old(empty_database: Database) -> tuple[Store, Rows]:
    store = empty_database.open()
    assert upgrade(store, to="0005") == revisions()[:5]
    rows: Rows = json.loads(DATA_OF_0005.read_text(encoding="utf-8"))
    with store.engine.begin() as connection:
        for table, written in rows.items():
            names = list(written[0])
            values = ", ".join(f":{name}" for name in names)
            insert(connection, table, f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})", written)
    return store, rows


def insert(connection: Connection, table: str, statement: str, rows: list[dict[str, Any]]) -> None:
    """Insert rows with their numbers, which SQL Server wants to be told first."""
    numbered = connection.dialect.name == "mssql" and metadata.tables[table].autoincrement_column is not None
    if numbered:
        connection.exec_driver_sql(f"SET IDENTITY_INSERT {table} ON")
    connection.execute(text(statement), rows)
    if numbered:
        connection.exec_driver_sql(f"SET IDENTITY_INSERT {table} OFF")


def kept(names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in OF_HOLDS]


def read(store: Store, rows: Rows) -> dict[str, list[str]]:
    """Read all rows back, in the columns that they were written with."""
    with store.engine.begin() as connection:
        return {
            table: sorted(map(str, connection.execute(text(f"SELECT {', '.join(kept(written[0]))} FROM {table}"))))
            for table, written in rows.items()
        }


def test_an_upgrade_of_revision_0005_keeps_every_row(old: tuple[Store, Rows]) -> None:
    store, rows = old
    before = read(store, rows)
    assert {table: len(found) for table, found in before.items()} == {name: len(made) for name, made in rows.items()}
    upgrade(store)
    require_current_schema(store)
    after = read(store, rows)
    # Revision 0008 moves one value of the members that left; what becomes of it has a test of its own.
    members, before_members = after.pop("batch_members"), before.pop("batch_members")
    assert after == before
    assert len(members) == len(before_members)


def test_an_upgrade_of_revision_0005_makes_the_tables_that_the_code_expects(old: tuple[Store, Rows]) -> None:
    store, _ = old
    upgrade(store)
    assert schema_differences(store) == []


def test_revision_0015_counts_what_is_there(old: tuple[Store, Rows]) -> None:
    store, rows = old
    numbers = [one["id"] for one in rows["batches"]]
    upgrade(store)
    with store.transaction() as tx:
        assert differing_counts(tx, numbers) == []
        assert sum(one.count for one in member_counts(tx, numbers)) == len(rows["batch_members"])
        assert changes_of(tx, numbers) == dict.fromkeys(numbers, 1)


def test_what_was_under_way_before_an_upgrade_is_seen_after_it(old: tuple[Store, Rows]) -> None:
    store, _ = old
    upgrade(store)
    with store.transaction() as tx:
        batches = unfinished_batches(tx, "demo")
        assert [batch.id for batch in batches] == [2, 3]
        assert all(members_page(tx, batch.id) for batch in batches)


def test_revision_0008_parts_who_was_seen_off_from_who_has_caught_up(old: tuple[Store, Rows]) -> None:
    """In revision 0007 one column said both: of active and failed members the one, of removed members the other."""
    store, _ = old
    upgrade(store, to="0007")
    with store.engine.begin() as connection:
        # The demo has two members that caught up, one that failed, and one that was seen off.
        connection.execute(text("UPDATE batch_members SET caught_up_at = NULL WHERE id = 7"))
        leaving = {"id": 20, "key": "still-leaving", "reason": "a person", "at": None}
        moved = {"id": 21, "key": "moved", "reason": MOVED, "at": LEFT}
        for one in (leaving, moved):
            insert(connection, "batch_members", COPY_OF_A_LEAVER, [one])
    assert upgrade(store, to="0008") == ("0008",)
    upgrade(store)
    with store.transaction() as tx:
        members = {member.id: member for member in members_by_id(tx, [1, 3, 4, 6, 7, 20, 21])}
        unseen = [member.id for member in members_to_see_off(tx, members[6].added_at + timedelta(days=1))]
        waiting = [member.id for member in members_to_catch_up(tx)]
    assert [number for number, member in members.items() if member.caught_up_at is not None] == [1, 3, 4]
    assert [number for number, member in members.items() if member.seen_off_at is not None] == [6, 21]
    assert (unseen, waiting) == ([20], [7])


def test_g10_revision_0014_carries_the_holds_that_stand_over_and_no_others(old: tuple[Store, Rows]) -> None:
    store, _ = old
    upgrade(store, to="0013")
    held = "UPDATE batches SET held_at = :at, hold_reason = 'why', hold_key = 'k', hold_count = 1, hold_json = :shown"
    approved = ", approved_hold_key = 'k', approved_hold_by = 'anna', approved_hold_at = :at"
    over = "UPDATE batches SET hold_count = 1, approved_hold_key = 'old', approved_hold_by = 'ben', "
    with store.engine.begin() as connection:
        late = {"at": LEFT, "shown": '{"kind":"late","memberIds":[]}', "id": 2}
        connection.execute(text(f"{held}{approved} WHERE id = :id"), late)
        removals = {"at": LEFT, "shown": '{"kind":"removals","memberIds":[4,6]}', "id": 3}
        connection.execute(text(f"{held}, approved_hold_key = 'another' WHERE id = :id"), removals)
        connection.execute(text(f"{over} approved_hold_at = :at WHERE id = 1"), {"at": LEFT})
    upgrade(store)
    with store.transaction() as tx:
        ended, first, second = batches_by_id(tx, [1, 2, 3])
        assert {gate.batch_id: gate.kind for gate in gates_in_force(tx, tx.time())} == {2: "late", 3: "removals"}
    assert (ended.is_held, ended.hold_count) == (False, 1)
    assert (first.hold_kind, first.hold_reason, first.hold_key, first.hold_count) == (HoldKind.LATE, "why", "k", 1)
    assert (first.approved_hold_by, first.approved_hold_key, str(first.held_at)[:19]) == ("anna", "k", LEFT[:19])
    assert (second.hold_json, second.approved_hold_key) == ('{"kind":"removals","memberIds":[4,6]}', None)


def test_who_is_woken_after_the_upgrade_is_woken_under_a_new_id(old: tuple[Store, Rows]) -> None:
    """Revision 0017 counts where the number of the gate stood; the bus drops an id that it has seen lately."""
    store, _ = old
    upgrade(store, to="0016")
    paused = (
        "INSERT INTO gates (id, kind, reach, shut_from, shut_by, reason, opened_at)"
        " VALUES (:id, 'pause', 'send', :at, 'ann', 'legal hold', :at)"
    )
    with store.engine.begin() as connection:
        insert(connection, "gates", paused, [{"id": 70, "at": LEFT}, {"id": 71, "at": LEFT}])
    upgrade(store)
    with store.transaction() as tx:
        (gate, _) = gates_to_sweep(tx, tx.time())
        woken = count_wakes(tx, [batch.id for batch in batches_behind(tx, gate)])
    assert {batch.wake_count for batch in woken} == {72}
