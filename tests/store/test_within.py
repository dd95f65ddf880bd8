"""Transactions that are part of a larger one."""

import pytest
from sqlalchemy import insert

from matoolkit.errors import RowConflict
from matoolkit.store import Store, Transaction
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
from matoolkit.store.schema import leases
from tests.databases import NOON

pytestmark = pytest.mark.both_executions


def entry(action: str) -> list[NewAuditEntry]:
    return [NewAuditEntry("anna", action, "thing", "1")]


def recorded(store: Store) -> list[str]:
    with store.reading() as tx:
        return [found.action for found in audit_page(tx)]


def test_a_part_is_undone_by_itself(store: Store) -> None:
    happened: list[str] = []
    with store.transaction() as tx:
        within = store.within(tx)
        with pytest.raises(ValueError, match="no"), within.transaction() as part:
            record_changes(part, entry("undone"), NOON)
            raise ValueError("no")
        with within.transaction() as part:
            record_changes(part, entry("done"), NOON)
            part.on_commit.append(lambda: happened.append("after"))
        with within.reading() as part:
            assert [found.action for found in audit_page(part)] == ["done"]
        assert happened == []
    assert recorded(store) == ["done"]
    assert happened == ["after"]


def test_a_part_is_undone_with_the_whole(store: Store) -> None:
    with pytest.raises(ValueError, match="no"), store.transaction() as tx:
        with store.within(tx).transaction() as part:
            record_changes(part, entry("undone"), NOON)
        raise ValueError("no")
    assert recorded(store) == []


def take_the_name(tx: Transaction) -> None:
    tx.execute(insert(leases).values(name="one", holder="anna", token=1, acquired_at=NOON, expires_at=NOON))


def test_a_conflict_undoes_its_part_and_nothing_else(store: Store) -> None:
    with store.transaction() as tx:
        record_changes(tx, entry("before"), NOON)
        take_the_name(tx)
        with pytest.raises(RowConflict), store.within(tx).transaction() as part:
            record_changes(part, entry("undone"), NOON)
            take_the_name(part)
        record_changes(tx, entry("after"), NOON)
    assert sorted(recorded(store)) == ["after", "before"]


def test_a_text_that_is_too_long_undoes_its_part_and_nothing_else(store: Store) -> None:
    if store.dialect.is_file:
        pytest.skip("SQLite's texts have no limit")
    with store.transaction() as tx:
        with pytest.raises(RowConflict), store.within(tx).transaction() as part:
            record_changes(part, entry("x" * 101), NOON)
        record_changes(tx, entry("x" * 100), NOON)
    assert recorded(store) == ["x" * 100]
