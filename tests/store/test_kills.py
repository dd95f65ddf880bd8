"""A process that dies at a boundary of a transaction leaves all of it or nothing."""

import multiprocessing
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from matoolkit.crashpoints import arm, kill_process
from matoolkit.store import Store, Transaction, open_store
from matoolkit.store.audit import NewAuditEntry, record_changes
from matoolkit.store.outbox import NewMessage, add_messages
from tests.databases import Database

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
KILLED = -9


@pytest.mark.parametrize(("point", "kept"), [("store.before_commit", 2), ("store.after_commit", 3)])
def test_m1_a_killed_process_leaves_state_and_messages_together(database: Database, point: str, kept: int) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_work_until_killed, args=(database.url, point))
    process.start()
    process.join(timeout=60)
    assert process.exitcode == KILLED
    store = database.open()
    assert _counts(store) == (kept, kept)
    with store.transaction() as tx:
        _change_and_tell(tx, 99)
    assert _counts(store) == (kept + 1, kept + 1)


def _work_until_killed(url: str, point: str) -> None:
    arm(point, on_hit=3, crash=kill_process)
    store = open_store(url)
    for number in range(5):
        with store.transaction() as tx:
            _change_and_tell(tx, number)


def _change_and_tell(tx: Transaction, number: int) -> None:
    record_changes(tx, [NewAuditEntry("anna", "batch.cancel", "batch", str(number))], NOW)
    add_messages(tx, [NewMessage("orchestrator-events", f"m-{number}", "member-removed", "{}")], NOW)


def _counts(store: Store) -> tuple[int, int]:
    with store.reading() as tx:
        counted = [tx.values(text(f"SELECT count(*) FROM {table}"))[0] for table in ("audit_log", "outbox")]
    return counted[0], counted[1]
