import multiprocessing
from collections.abc import Callable
from functools import partial

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Unicode, inspect, text

from matoolkit.crashpoints import SimulatedCrash, arm, crashing, kill_process
from matoolkit.errors import RowConflict, SchemaDamaged, SchemaMissing, SchemaTooNew, SchemaTooOld
from matoolkit.store import Store, open_store, schema
from matoolkit.store.batches import batches_by_id
from matoolkit.store.enrolments import members_page
from matoolkit.store.sql.connections import changing_tables
from matoolkit.store.upgrade import (
    SchemaState,
    require_current_schema,
    revisions,
    schema_differences,
    schema_status,
    upgrade,
)
from tests.databases import Database
from tests.store.world import World
from tests.threads import in_threads


def run(store: Store, statement: str) -> None:
    with store.transaction() as tx:
        tx.execute(text(statement))


def drop_index(store: Store, table: str, name: str) -> None:
    with store.transaction() as tx:
        tx.operations().drop_index(name, table)


def constrain(store: Store, table: str, constraint: str, definition: str | None = None) -> None:
    """Give a table, in place of a constraint, another of that name or none."""
    added = f"CONSTRAINT {constraint} {definition}" if definition else None
    if not store.dialect.is_file:
        run(store, f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {constraint}")
        if added:
            run(store, f"ALTER TABLE {table} ADD {added}")
        return
    with store.transaction() as tx:
        made = f"SELECT sql FROM sqlite_master WHERE tbl_name = '{table}' AND sql <> '' ORDER BY type DESC"
        whole, *indexes = tx.values(text(made))
        first, *lines, last = filter(str.strip, whole.splitlines())
        kept = [line.strip().removesuffix(",") for line in lines if f"CONSTRAINT {constraint} " not in line]
    body = ", ".join([*kept, added] if added else kept)
    for statement in (f"DROP TABLE {table}", f"{first}{body}{last}", *indexes):
        run(store, statement)


def tables(store: Store) -> set[str]:
    return set(inspect(store.engine).get_table_names())


def test_the_migrations_make_exactly_the_tables_that_the_code_expects(store: Store) -> None:
    require_current_schema(store)
    assert schema_differences(store) == []
    assert tables(store) == {*schema.metadata.tables, "alembic_version"}


def test_an_upgrade_applies_what_is_missing_and_nothing_the_second_time(empty_database: Database) -> None:
    store = empty_database.open()
    assert schema_status(store).state is SchemaState.MISSING
    assert upgrade(store) == revisions()
    assert upgrade(store) == ()
    assert schema_status(store).state is SchemaState.CURRENT


def test_a_service_refuses_a_database_without_tables_and_names_the_command(empty_database: Database) -> None:
    with pytest.raises(SchemaMissing) as refused:
        require_current_schema(empty_database.open())
    assert "matoolkit db upgrade" in str(refused.value.hint)


def test_a_service_refuses_an_older_schema_and_names_the_command(store: Store) -> None:
    *_, older, newest = revisions()
    run(store, f"UPDATE alembic_version SET version_num = '{older}'")
    with pytest.raises(SchemaTooOld, match=f"at schema {older}, this version of matoolkit needs {newest}") as refused:
        require_current_schema(store)
    assert "matoolkit db upgrade" in str(refused.value.hint)


def test_a_newer_schema_is_refused_by_services_and_by_the_upgrade(store: Store) -> None:
    run(store, "UPDATE alembic_version SET version_num = '9999'")
    for attempt in (require_current_schema, upgrade):
        with pytest.raises(SchemaTooNew, match="newer than this version") as refused:
            attempt(store)
        assert "install" in str(refused.value.hint)


def test_tables_of_unknown_version_are_left_alone(store: Store) -> None:
    run(store, "DROP TABLE alembic_version")
    for attempt in (require_current_schema, upgrade):
        with pytest.raises(SchemaDamaged, match="no record of their version"):
            attempt(store)


def test_differences_are_named_and_tables_of_others_are_not(store: Store) -> None:
    drop_index(store, "outbox", "ix_outbox_unclaimed")
    run(store, "ALTER TABLE leases DROP COLUMN acquired_at")
    run(store, "CREATE TABLE runbook_wave_v1 (id INTEGER)")
    assert schema_differences(store) == [
        "column leases acquired_at: missing",
        "index outbox ix_outbox_unclaimed: missing",
    ]


@pytest.mark.on("postgresql")
def test_a_missing_schema_for_data_tables_is_named(store: Store) -> None:
    run(store, "DROP SCHEMA matoolkit_data")
    assert schema_differences(store) == ["schema matoolkit_data: missing"]


@pytest.mark.parametrize(
    ("index", "where"),
    [
        ("ix_phase_executions_due ON phase_executions (due_at, id)", "WHERE status = 'failed'"),
        ("ix_phase_executions_due ON phase_executions (due_at, id)", ""),
        ("ix_phase_executions_open ON phase_executions (batch_id)", "WHERE status IN ('dispatched')"),
        ("ix_phase_executions_running ON phase_executions (id)", "WHERE status = 'dispatched' AND id > 5"),
        ("ix_batch_members_waiting ON batch_members (batch_id, status)", "WHERE caught_up_at IS NOT NULL"),
        ("ix_batch_members_batch_id ON batch_members (batch_id, id)", "WHERE id > 5"),
    ],
    ids=["another state", "all", "fewer states", "one more part", "the opposite", "some for all"],
)
def test_an_index_over_other_rows_is_a_difference(store: Store, index: str, where: str) -> None:
    name, _, table, _ = index.split(maxsplit=3)
    drop_index(store, table, name)
    run(store, f"CREATE INDEX {index} {where}")
    assert schema_differences(store) == [f"condition {table} {name}: different"]


def test_a_unique_index_over_other_rows_is_a_difference(store: Store) -> None:
    drop_index(store, "runbooks", "uq_runbooks_active")
    off = "0" if store.dialect.name == "mssql" else "false"
    run(store, f"CREATE UNIQUE INDEX uq_runbooks_active ON runbooks (name_key) WHERE is_active = {off}")
    assert schema_differences(store) == ["condition runbooks uq_runbooks_active: different"]


def test_a_check_that_is_gone_is_a_difference(store: Store) -> None:
    constrain(store, "dead_letters", "ck_dead_letters_status")
    assert schema_differences(store) == ["check dead_letters ck_dead_letters_status: missing"]


def test_a_check_that_allows_something_else_is_a_difference(store: Store) -> None:
    constrain(store, "dead_letters", "ck_dead_letters_status", "CHECK (status IN ('open', 'lost'))")
    assert schema_differences(store) == ["check dead_letters ck_dead_letters_status: different"]


def test_a_check_of_somebody_else_is_a_difference(store: Store) -> None:
    constrain(store, "leases", "ck_leases_mine", "CHECK (token < 9)")
    assert schema_differences(store) == ["check leases ck_leases_mine: not expected"]


def test_a_primary_key_that_is_gone_is_a_difference(store: Store) -> None:
    constrain(store, "leases", "pk_leases")
    assert schema_differences(store) == ["primary key leases: missing"]


def test_a_primary_key_over_other_columns_is_a_difference(store: Store) -> None:
    constrain(store, "leases", "pk_leases", "PRIMARY KEY (name, holder)")
    assert schema_differences(store) == ["primary key leases: different"]


@pytest.mark.parametrize("revision", [1, 3, 5])
def test_an_upgrade_that_dies_in_the_middle_leaves_nothing_behind_and_can_be_repeated(
    empty_database: Database, revision: int
) -> None:
    store = empty_database.open()
    with pytest.raises(SimulatedCrash), crashing("store.revision_applied", on_hit=revision):
        upgrade(store)
    assert tables(store) == set()
    assert upgrade(store) == revisions()
    require_current_schema(store)


def test_an_upgrade_whose_process_is_killed_leaves_nothing_behind(empty_database: Database) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_upgrade_and_be_killed, args=(empty_database.url,))
    process.start()
    process.join(timeout=60)
    assert process.exitcode == -9
    store = empty_database.open()
    assert tables(store) == set()
    assert upgrade(store) == revisions()


def test_two_upgrades_at_once_do_the_work_once(empty_database: Database) -> None:
    stores = [empty_database.open(), empty_database.open()]
    tasks: list[Callable[[], tuple[str, ...]]] = [partial(upgrade, store) for store in stores]
    assert sorted(len(applied) for applied in in_threads(tasks)) == [0, len(revisions())]


def alter_batches(store: Store) -> None:
    with changing_tables(store) as connection:
        operations = Operations(MigrationContext.configure(connection, opts={"target_metadata": schema.metadata}))
        with operations.batch_alter_table("batches") as table:
            table.alter_column("created_by", type_=Unicode(300), existing_type=Unicode(200), existing_nullable=True)
            table.add_column(Column("colour", Unicode(20)))


def test_a_table_that_others_refer_to_can_be_altered_and_loses_nothing(store: Store, world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 3)
    alter_batches(store)
    with store.transaction() as tx:
        assert batches_by_id(tx, [batch.id]) == [batch]
        assert [member.id for member in members_page(tx, batch.id)] == members
    with pytest.raises(RowConflict):
        run(store, "DELETE FROM batches")


def test_another_column_and_another_type_are_differences(store: Store) -> None:
    alter_batches(store)
    assert schema_differences(store) == ["column batches colour: not expected", "type batches created_by: different"]


def test_a_folder_that_does_not_exist_is_made(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("new") / "100% new" / "state.db"
    store = open_store(f"sqlite:///{path}")
    upgrade(store)
    store.close()
    assert path.exists()


def _upgrade_and_be_killed(url: str) -> None:
    arm("store.revision_applied", on_hit=3, crash=kill_process)
    upgrade(open_store(url))
