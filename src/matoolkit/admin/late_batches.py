"""Many late batches at once: those whose T lies before a time are approved, or cancelled (rule T5)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from matoolkit.admin.approving import approve
from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.queries import latest_runbook
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.signoff import Signer
from matoolkit.errors import Refused
from matoolkit.ports import Publisher
from matoolkit.store import Store
from matoolkit.store.batches import BatchFilter, BatchRow, held_batches
from matoolkit.store.counts import active_counts


@dataclass(frozen=True, slots=True)
class LateBatches:
    """Batches that were, or would be, approved or cancelled together, and how many members they have.

    `signed_ids` are those that were signed off and wait for others who do the same. `refused` are those
    that somebody else has decided since, or that this person may not decide, with what was said.
    """

    batch_ids: Sequence[int]
    member_count: int
    signed_ids: Sequence[int] = ()
    refused: Mapping[int, Refused] = field(default_factory=dict)


def late_batches(store: Store, before: datetime, runbook_name: str | None = None) -> LateBatches:
    """Return the batches that are held as late, are not approved yet, and whose T lies before a time."""
    return _counted(store, _late(store, before, runbook_name))


def approve_late(
    store: Store,
    publisher: Publisher,
    before: datetime,
    runbook_name: str | None,
    *,
    by: str,
    reason: str | None,
    signer: Signer | None = None,
) -> LateBatches:
    """Approve all of them, each with its entry in the audit log; those that miss sign-offs wait for more."""

    def decide(batch: BatchRow) -> bool:
        key = batch.hold_key or ""
        done = approve(store, publisher, batch.id, key, by=by, reason=reason, signer=signer)
        return done.approved_hold_key == key or not done.is_held

    return _each(store, _late(store, before, runbook_name), decide)


def cancel_late(
    store: Store,
    publisher: Publisher,
    before: datetime,
    runbook_name: str | None,
    *,
    by: str,
    reason: str | None,
) -> LateBatches:
    """Cancel all of them, each with its entry in the audit log."""

    def decide(batch: BatchRow) -> bool:
        cancel_batch(store, publisher, batch.id, by=by, reason=reason)
        return True

    return _each(store, _late(store, before, runbook_name), decide)


def _late(store: Store, before: datetime, runbook_name: str | None) -> list[BatchRow]:
    with store.reading() as tx:
        name = latest_runbook(tx, runbook_name).name if runbook_name else None
        held = held_batches(tx, BatchFilter(runbook_name=name))
    return [
        batch
        for batch in held
        if batch.hold_kind is HoldKind.LATE
        and batch.approved_hold_key != batch.hold_key
        and batch.batch_start_time is not None
        and batch.batch_start_time < before
    ]


def _each(store: Store, batches: Sequence[BatchRow], decide: Callable[[BatchRow], bool]) -> LateBatches:
    done: list[BatchRow] = []
    signed: list[int] = []
    refused: dict[int, Refused] = {}
    for batch in batches:
        try:
            is_decided = decide(batch)
        except Refused as why:
            refused[batch.id] = why
            continue
        if is_decided:
            done.append(batch)
        else:
            signed.append(batch.id)
    return replace(_counted(store, done), signed_ids=signed, refused=refused)


def _counted(store: Store, batches: Sequence[BatchRow]) -> LateBatches:
    ids = [batch.id for batch in batches]
    with store.reading() as tx:
        return LateBatches(ids, sum(active_counts(tx, ids).values()))
