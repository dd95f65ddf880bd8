"""What every change by a person needs: the locked batch, and an entry in the audit log (rules A5 and M5)."""

from collections.abc import Mapping
from typing import Any

import orjson

from matoolkit.errors import UnknownBatch
from matoolkit.store.audit import NewAuditEntry, record_changes
from matoolkit.store.batches import BatchRow, lock_batches
from matoolkit.store.sql.transaction import Transaction


def locked_batch(tx: Transaction, batch_id: int) -> BatchRow:
    """Lock a batch and return it as it is now."""
    batches = lock_batches(tx, [batch_id])
    if not batches:
        raise UnknownBatch(batch_id)
    return batches[0]


def record(
    tx: Transaction,
    batch: BatchRow,
    action: str,
    by: str,
    reason: str | None,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> int:
    """Record what a person did to a batch, and return the number of the entry."""
    entry = NewAuditEntry(
        actor=by,
        action=action,
        subject_type="batch",
        subject_id=str(batch.id),
        runbook_name=batch.runbook_name,
        batch_id=batch.id,
        before_json=None if before is None else orjson.dumps(before).decode(),
        after_json=None if after is None else orjson.dumps(after).decode(),
        reason=reason,
    )
    return record_changes(tx, [entry], tx.time())[0]
