"""Approving a hold: exactly what was shown, not what the hold stands for now (rules T6 and S1)."""

from matoolkit.admin.approvals import Asking, asking_of_hold, request_of
from matoolkit.admin.queries import existing_batch
from matoolkit.admin.recording import locked_batch, record
from matoolkit.admin.signing import refuse_nobody, refuse_signer, refuse_twice, store_signature
from matoolkit.announcing.waking import release_and_wake
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.signoff import Signer
from matoolkit.domain.states import SignOff
from matoolkit.errors import HoldApproved, HoldChanged, NobodySigned, NothingToWithdraw, RoleMissing
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, activate_batches, batches_by_id
from matoolkit.store.holds import approve_hold
from matoolkit.store.signoffs import withdraw_signatures

_ADMIN = "Admin"


def approve(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    hold_key: str,
    *,
    by: str,
    reason: str | None = None,
    signer: Signer | None = None,
) -> BatchRow:
    """Approve what a batch is held for.

    A failed init is skipped at once: the batch is active and its members are woken. The scheduler does everything
    else in its next tick, because only it knows the source. If the runbook wants sign-offs, this is one, and the last
    one approves.
    """
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        asking = asking_of_hold(tx, batch)
        if asking is None and signer is not None and _ADMIN not in signer.roles:
            raise RoleMissing(_ADMIN)
        if asking is not None and not asking.begun and batch.hold_key == hold_key:
            _sign(tx, batch, asking, by, reason, signer)
            if not _is_met(tx, batch):
                return batch
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


def withdraw_from_hold(store: Store, batch_id: int, *, by: Signer, reason: str | None = None) -> None:
    """Take back a sign-off of a hold, unless the hold was approved with it (rule S6)."""
    refuse_nobody(by)
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        asking = asking_of_hold(tx, batch)
        given = asking.asked.given if asking is not None and not asking.begun else ()
        mine = [one.id for one in given if one.person == by.person and one.withdrawn_at is None]
        if not withdraw_signatures(tx, mine, tx.time()):
            raise NothingToWithdraw(by.name, f"the hold of batch {batch_id}")
        record(tx, batch, "approval.withdraw", by.name, reason, {"subject": "hold"}, {"hold_key": batch.hold_key})


def missing_sign_offs(store: Store, batch_id: int) -> str | None:
    """Say how many have signed off the hold of a batch, if its runbook wants sign-offs and some are missing."""
    with store.reading() as tx:
        asking = asking_of_hold(tx, existing_batch(tx, batch_id))
    return None if asking is None or asking.begun or asking.asked.is_met else asking.asked.progress()


def _sign(tx: Transaction, batch: BatchRow, asking: Asking, by: str, reason: str | None, signer: Signer | None) -> None:
    if signer is None:
        raise NobodySigned(by)
    refuse_signer(asking, signer, SignOff.APPROVE)
    refuse_twice(asking, signer, asking.asked.digest or "")
    store_signature(tx, asking, request_of(tx, asking), signer, SignOff.APPROVE, reason)
    told = {"subject": "hold", "digest": batch.hold_key, "members": asking.members}
    record(tx, batch, "approval.approve", by, reason, None, told)


def _is_met(tx: Transaction, batch: BatchRow) -> bool:
    asking = asking_of_hold(tx, batch)
    return asking is not None and asking.asked.is_met
