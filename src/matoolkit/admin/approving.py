"""Approving a hold: exactly what was shown, not what the hold stands for now (rule T6)."""

from matoolkit.admin.recording import locked_batch, record
from matoolkit.announcing.waking import release_and_wake
from matoolkit.domain.holds import HoldKind
from matoolkit.errors import HoldApproved, HoldChanged
from matoolkit.ports import Publisher
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow, activate_batches, batches_by_id
from matoolkit.store.holds import approve_hold


def approve(
    store: Store, publisher: Publisher, batch_id: int, hold_key: str, *, by: str, reason: str | None = None
) -> BatchRow:
    """Approve what a batch is held for.

    A failed init is skipped at once: the batch is active and its members are woken. The scheduler does everything
    else in its next tick, because only it knows the source.
    """
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        if not approve_hold(tx, batch_id, hold_key, by, tx.time()):
            if batch.is_held and batch.approved_hold_key == hold_key:
                raise HoldApproved(batch_id, batch.approved_hold_by)
            raise HoldChanged(batch_id, batch.hold_key)
        if batch.hold_kind is HoldKind.INIT:
            activate_batches(tx, [batch_id])
            release_and_wake(tx, publisher, [batch_id], tx.time())
        (after,) = batches_by_id(tx, [batch_id])
        approved = {"status": after.status, "held": after.is_held, "hold_key": hold_key}
        record(tx, batch, "batch.approve_hold", by, reason, {"hold_reason": batch.hold_reason}, approved)
        return after
