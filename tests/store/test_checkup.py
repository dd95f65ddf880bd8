"""Whether a database will do, found out on the database itself."""

import os
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest
from sqlalchemy import event, inspect, text

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.store import Store
from matoolkit.store.checkup import Checked, Outcome, check_database
from matoolkit.store.checkup.check import check_clock, check_properties
from matoolkit.store.checkup.competing import check_competition
from matoolkit.store.checkup.statements import check_statements
from matoolkit.store.checkup.texts import check_texts
from matoolkit.store.schema import metadata
from tests.databases import Database


def opened(database: Database) -> tuple[Store, Callable[[float], Store]]:
    """Open a database as a command does, with its own clock; and what opens it once more."""
    return database.open(), lambda patience: database.open(patience_seconds=patience)


def failed(checks: Any) -> dict[tuple[str, str], Checked]:
    return {(one.kind, one.name): one for one in checks if one.outcome is Outcome.FAILED}


def contents(store: Store) -> dict[str, Any]:
    with store.engine.connect() as connection:
        return {
            name: connection.exec_driver_sql(f"SELECT COUNT(*) FROM {name}").scalar()
            for name in inspect(connection).get_table_names()
        }


def change(store: Store, statement: str) -> None:
    with store.transaction() as tx:
        tx.execute(text(statement))


@pytest.mark.on("sqlite", "postgresql")
def test_a_database_that_will_do_passes_and_is_left_as_it_was(database: Database) -> None:
    store, reopen = opened(database)
    before = contents(store)
    checks = list(check_database(store, reopen))
    assert failed(checks) == {}
    assert {one.kind for one in checks} == {"server", "clock", "schema", "statement", "text", "together"}
    assert contents(store) == before
    assert set(before) >= set(metadata.tables)


@pytest.mark.on("sqlite", "postgresql")
def test_every_statement_is_run_with_values_that_no_row_has(database: Database) -> None:
    store = database.open()
    sent: list[str] = []
    event.listen(store.engine, "rollback_savepoint", lambda *_: sent.append("undone"))
    (checked,) = check_statements(store)
    assert checked.said == f"{len(sent)} statements were understood"
    assert len(sent) > 200


@pytest.mark.on("postgresql")
def test_a_statement_that_the_database_does_not_understand_is_named(database: Database) -> None:
    store = database.open()
    change(store, "ALTER TABLE leases DROP COLUMN holder")
    found = failed(check_statements(store))
    assert set(found) >= {("statement", "store.leases.acquire_lease"), ("statement", "store.leases.held_leases")}
    assert ("statement", "store.leases.release_lease") not in found
    assert "holder" in found["statement", "store.leases.held_leases"].said


@pytest.mark.on("postgresql")
def test_who_may_not_make_data_tables_is_told_who_must(database: Database) -> None:
    store = database.open()
    role = f"checker_{os.getpid()}"
    change(store, f"CREATE ROLE {role}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    store.close()
    event.listen(store.engine, "begin", lambda connection: connection.exec_driver_sql(f"SET LOCAL ROLE {role}"))
    (checked,) = check_statements(store)
    assert (checked.outcome, checked.name) == (Outcome.FAILED, "data table")
    assert "only the scheduler" in checked.todo


@pytest.mark.on("sqlite", "postgresql")
def test_what_is_missing_in_a_table_is_named_with_what_to_do(database: Database) -> None:
    store, reopen = opened(database)
    change(store, "DROP INDEX ix_outbox_unclaimed")
    found = failed(check_database(store, reopen))
    assert set(found) == {("schema", "index outbox ix_outbox_unclaimed")}
    assert found["schema", "index outbox ix_outbox_unclaimed"].said == "missing"
    assert "db upgrade --sql" in found["schema", "index outbox ix_outbox_unclaimed"].todo


@pytest.mark.on("postgresql")
def test_without_tables_server_and_clock_are_checked_and_the_rest_is_not_tried(empty_database: Database) -> None:
    checks = list(check_database(*opened(empty_database)))
    assert set(failed(checks)) == {("schema", "version")}
    assert [one.name for one in checks if one.outcome is Outcome.UNKNOWN] == ["all"]
    assert {one.kind for one in checks} == {"server", "clock", "schema", "statement"}


@pytest.mark.on("postgresql")
def test_a_clock_that_is_wrong_is_told_with_the_difference(database: Database) -> None:
    store, now = database.open(), SystemClock().now()
    for apart, said in ((timedelta(hours=1), "behind"), (timedelta(hours=-1), "ahead")):
        (checked,) = check_clock(store, VirtualClock(now + apart))
        assert checked.outcome is Outcome.FAILED
        assert said in checked.said
        assert "3600." in checked.said or "3599." in checked.said
    (checked,) = check_clock(store, SystemClock())
    assert checked.outcome is Outcome.OK


@pytest.mark.on("postgresql")
def test_a_database_that_may_only_be_read_is_found(database: Database) -> None:
    store = database.open()
    with store.transaction() as tx:
        name = tx.values(text("SELECT current_database()"))[0]
        tx.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    store.close()
    found = failed(check_properties(store))
    assert "name the primary" in found["server", "read only"].todo


@pytest.mark.on("postgresql")
def test_a_text_that_is_cut_is_found(database: Database) -> None:
    store = database.open()
    change(store, "ALTER TABLE leases ALTER COLUMN name TYPE text")
    assert set(failed(check_texts(store))) == {("text", "too long")}


@pytest.mark.on("sqlite")
def test_a_database_that_takes_two_names_for_one_is_found(database: Database) -> None:
    store = database.open()
    change(store, "DROP TABLE leases")
    change(store, "CREATE TABLE leases (name TEXT COLLATE NOCASE, holder, token, acquired_at, expires_at)")
    found = failed(check_texts(store))
    assert set(found) == {("text", "names")}
    assert "Latin1_General_100_BIN2" in found["text", "names"].todo


@pytest.mark.on("postgresql")
def test_who_waits_where_nobody_should_is_found(database: Database) -> None:
    store, reopen = opened(database)
    event.listen(
        store.engine, "begin", lambda connection: connection.exec_driver_sql("LOCK TABLE leases, bus_messages")
    )
    found = failed(islice(check_competition(store, reopen), 4))
    assert set(found) == {("together", "reader beside a writer"), ("together", "claim beside a claim")}
    assert "waits" in found["together", "claim beside a claim"].said
    assert "READ_COMMITTED_SNAPSHOT" in found["together", "reader beside a writer"].todo


@pytest.mark.on("mssql")
def test_an_engine_that_is_not_sql_server_is_found_out(database: Database) -> None:
    """Babelfish says what it is, and its default collation takes two names for one."""
    store, reopen = opened(database)
    found = failed(check_database(store, reopen))
    assert ("server", "version") in found
    assert "130" in found["server", "compatibility level"].todo
    assert "Latin1_General_100_BIN2" in found["server", "collation"].todo
    assert ("text", "names") in found
    assert [name for kind, name in found if kind in ("statement", "together", "clock")] == []


@pytest.mark.on("mssql")
def test_a_session_whose_conflicts_end_the_transaction_is_found(database: Database) -> None:
    store, reopen = opened(database)
    event.listen(store.engine, "begin", lambda connection: connection.exec_driver_sql("SET XACT_ABORT ON"))
    found = failed(check_competition(store, reopen))
    assert set(found) == {("together", "part that fails")}
    assert "XACT_ABORT must be off" in found["together", "part that fails"].todo
