"""Inits that were not approved in time: they wait for a person, like a phase that is late (rule S7)."""

import logging

from matoolkit.announcing.signoffs import sign_offs_of_init
from matoolkit.runbook.parse import parse_runbook
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.batches import NarrowBatch, lock_narrow_batches
from matoolkit.store.gatekeeping import open_gates
from matoolkit.store.inits import has_init_begun, latest_init_version
from matoolkit.store.runbooks import RunbookRow, runbook_version, runbooks_by_id
from matoolkit.store.signoffs import batches_before_init, has_late_init, late_inits, shut_late_init
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


def look_after_late_inits(store: Store, confirm: Confirm) -> int:
    """Shut a gate for each init whose time to be signed off has ended, and return how many were shut.

    If the batch has another T since, the gate opens by itself.
    """
    _open_moved(store, confirm)
    with store.reading() as tx:
        waiting = batches_before_init(tx)
        versions = {row.id: row for row in runbooks_by_id(tx, {batch.runbook_id for batch in waiting})}
        late = [batch.id for batch in waiting if _why_late(tx, batch, versions[batch.runbook_id]) is not None]
    if not late:
        return 0
    with store.transaction() as tx:
        confirm(tx)
        shut = 0
        for batch in lock_narrow_batches(tx, late):
            (version,) = runbooks_by_id(tx, [batch.runbook_id])
            if (why := _why_late(tx, batch, version)) is not None:
                shut_late_init(tx, batch, why, tx.time())
                log.warning("late, and waits for a person: %s", why, extra={"batch": batch.id})
                shut += 1
        return shut


def _open_moved(store: Store, confirm: Confirm) -> None:
    with store.reading() as tx:
        moved = [gate.id for gate in late_inits(tx) if gate.is_moved]
    if moved:
        with store.transaction() as tx:
            confirm(tx)
            open_gates(tx, moved, tx.time(), "system", "the batch has another T now")


def _why_late(tx: Transaction, batch: NarrowBatch, current: RunbookRow) -> str | None:
    # An unfinished init goes on under its own version (rule V5).
    number = latest_init_version(tx, batch.id) or current.version
    version = runbook_version(tx, batch.runbook_name, number) or current
    asked = sign_offs_of_init(tx, batch, version.version, parse_runbook(version.yaml_content), tx.time())
    if asked is None or asked.ends_at is None or not asked.is_over or asked.is_met:
        return None
    if has_init_begun(tx, batch.id, version.version, batch.init_count) or has_late_init(tx, batch.id):
        return None
    return f"init was not approved until {asked.ends_at:%Y-%m-%d %H:%M} UTC: {asked.progress()}"
