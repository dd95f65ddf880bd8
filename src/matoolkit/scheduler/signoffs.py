"""Inits that were not approved in time: they wait for a person, like a phase that is late (rule S7)."""

import logging
from collections.abc import Collection, Iterator

from matoolkit.announcing.doors import readable_runbooks
from matoolkit.announcing.signoffs import sign_offs_of_inits
from matoolkit.domain.signoff import SignOffs
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.batches import NarrowBatch, lock_narrow_batches
from matoolkit.store.gatekeeping import open_gates
from matoolkit.store.inits import begun_inits, latest_init_versions
from matoolkit.store.runbooks import runbooks_by_id
from matoolkit.store.signoffs import NewLateInit, batches_before_init, late_inits, shut_late_inits
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


def look_after_late_inits(store: Store, confirm: Confirm) -> int:
    """Shut a gate for each init whose time to be signed off has ended, and return how many were shut.

    If the batch has another T since, the gate opens by itself.
    """
    _open_moved(store, confirm)
    with store.reading() as tx:
        late = _late(tx, batches_before_init(tx))
    if not late:
        return 0
    with store.transaction() as tx:
        confirm(tx)
        # Asked again under the lock: somebody may have signed since.
        late = _late(tx, lock_narrow_batches(tx, [one.batch_id for one in late]))
        shut_late_inits(tx, late, tx.time())
    for one in late:
        log.warning("late, and waits for a person: %s", one.reason, extra={"batch": one.batch_id})
    return len(late)


def _open_moved(store: Store, confirm: Confirm) -> None:
    with store.reading() as tx:
        moved = [gate.id for gate in late_inits(tx) if gate.is_moved]
    if moved:
        with store.transaction() as tx:
            confirm(tx)
            open_gates(tx, moved, tx.time(), "system", "the batch has another T now")


def _late(tx: Transaction, batches: Collection[NarrowBatch]) -> list[NewLateInit]:
    """Return the batches whose init is late, and why."""
    known = {batch.id: batch for batch in batches}
    inits = list(_inits(tx, batches))
    asked = sign_offs_of_inits(tx, inits, tx.time())
    over = {number for number, one in asked.items() if one.is_over and not one.is_met}
    if not over:
        return []
    begun, shut = begun_inits(tx, over), {gate.batch_id for gate in late_inits(tx)}
    versions = {batch.id: version for batch, version, _ in inits}
    late = (one for one in over - shut if (one, versions[one], known[one].init_count) not in begun)
    return [NewLateInit(number, asked[number].start, _told(asked[number])) for number in sorted(late)]


def _inits(tx: Transaction, batches: Collection[NarrowBatch]) -> Iterator[tuple[NarrowBatch, int, Runbook]]:
    """Return the versions whose inits batches go through: an unfinished one goes on under its own (rule V5)."""
    newest = latest_init_versions(tx, [batch.id for batch in batches])
    followed = {row.id: row.version for row in runbooks_by_id(tx, {batch.runbook_id for batch in batches})}
    wanted = {batch: newest.get(batch.id, followed[batch.runbook_id]) for batch in batches}
    known = readable_runbooks(tx, {(batch.runbook_name, version) for batch, version in wanted.items()})
    for batch, version in wanted.items():
        if (runbook := known.get((batch.runbook_name, version))) is not None:
            yield batch, version, runbook


def _told(asked: SignOffs) -> str:
    return f"init was not approved until {asked.ends_at:%Y-%m-%d %H:%M} UTC: {asked.progress()}"
