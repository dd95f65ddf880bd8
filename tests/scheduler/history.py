"""All that ticks have made of a calendar, told without the numbers of rows, which a rolled back transaction uses up."""

import re
from typing import Any

from sqlalchemy import text

from matoolkit.store import Store, Transaction
from tests.databases import full_name

_BATCH = "coalesce(b.batch_start_time, b.detected_at)"
_NAMED = {
    "batch-init": f"SELECT b.id, {_BATCH} FROM batches b",
    "phase-due": f"SELECT p.id, {_BATCH}, p.runbook_version, p.phase_name"
    " FROM phase_executions p JOIN batches b ON b.id = p.batch_id",
    "member-": f"SELECT m.id, {_BATCH}, m.member_key FROM batch_members m JOIN batches b ON b.id = m.batch_id",
}
_STATE = {
    "batches": f"SELECT {_BATCH}, b.status, r.version, b.init_count, b.hold_count FROM batches b"
    " JOIN runbooks r ON r.id = b.runbook_id",
    "gates": f"SELECT {_BATCH}, g.kind, g.shut_from, g.reason, g.hold_key, g.shown_json, g.approved_by, g.opened_at,"
    " g.opened_by FROM gates g JOIN batches b ON b.id = g.batch_id",
    "members": f"SELECT {_BATCH}, m.member_key, m.status, m.epoch, m.data_json, m.data_hash, m.worker_data_json,"
    " m.added_at, m.add_dispatched_at, m.caught_up_at, m.left_source_at, m.removed_at, m.removed_by, m.remove_reason,"
    " m.remove_dispatched_at, m.seen_off_at, m.failed_at FROM batch_members m JOIN batches b ON b.id = m.batch_id",
    "phases": f"SELECT {_BATCH}, p.runbook_version, p.phase_name, p.due_at, p.status, p.dispatched_at,"
    " p.dispatch_count, p.completed_at FROM phase_executions p JOIN batches b ON b.id = p.batch_id",
    "steps": "SELECT id, status, job_id, lost_at FROM step_executions",
    "runbooks": "SELECT name, version, is_active, last_error, ignore_overdue_applied FROM runbooks",
}


def told(store: Store, *data_tables: str) -> dict[str, list[Any]]:
    """Tell everything, sorted."""
    with store.reading() as tx:
        found = {name: _rows(tx, query) for name, query in _STATE.items()}
        for name in data_tables:
            columns = "_member_key, _batch_time, _first_seen_at, _last_seen_at, _is_current, _row_hash, city"
            found[name] = _rows(tx, f"SELECT {columns} FROM {full_name(store, name)}")
        found["messages"] = _messages(tx)
    return found


def _rows(tx: Transaction, query: str) -> list[Any]:
    return sorted(tx.rows(lambda *row: row, text(query)), key=repr)


def _messages(tx: Transaction) -> list[Any]:
    facts = {
        kind: {number: fact for number, *fact in tx.rows(lambda *row: row, text(query))}
        for kind, query in _NAMED.items()
    }
    told = []
    for message_id in tx.values(text("SELECT message_id FROM bus_messages")):
        kind, number, rest = re.fullmatch(r"([a-z-]+?)-(\d+)(.*)", message_id).groups()  # type: ignore[union-attr]
        known = next((some for prefix, some in facts.items() if kind.startswith(prefix)), {})
        told.append((kind, known.get(int(number), number), rest))
    return sorted(told, key=repr)
