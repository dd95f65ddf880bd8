"""Transactions that are part of a larger one."""

import pytest

from matoolkit.store import Store
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
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
