"""Waking members that waited for a hold to end or for init, in the transaction that ends it (rules T6 and O10)."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime

from matoolkit.announcing.messages import member_added, phase_due
from matoolkit.domain.states import PhaseStatus
from matoolkit.ids import reissued, reissued_after_init
from matoolkit.ports import Outgoing, Publisher
from matoolkit.store.batches import BatchRow, activate_batches, batches_by_id
from matoolkit.store.enrolments import members_waiting_to_catch_up
from matoolkit.store.holds import release_batches
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.sql.transaction import Transaction


def release_and_wake(tx: Transaction, publisher: Publisher, batch_ids: Collection[int], at: datetime) -> list[int]:
    """End the holds of batches, and announce their dispatched phases and waiting members again."""
    released = release_batches(tx, batch_ids, at)
    _tell_again(tx, publisher, released, lambda first, batch: reissued(first, batch.hold_count))
    return released


def activate_and_wake(tx: Transaction, publisher: Publisher, batch_ids: Collection[int]) -> list[int]:
    """Activate batches, and announce again what waited for init."""
    activated = activate_batches(tx, batch_ids)
    _tell_again(tx, publisher, activated, lambda first, batch: reissued_after_init(first, batch.init_count))
    return activated


def _tell_again(
    tx: Transaction, publisher: Publisher, batch_ids: Collection[int], name: Callable[[str, BatchRow], str]
) -> None:
    """Announce dispatched phases and waiting members under new ids, or the bus would drop them as duplicates."""
    batches = {batch.id: batch for batch in batches_by_id(tx, batch_ids)}

    def again(batch_id: int, first: Outgoing) -> Outgoing:
        return replace(first, message_id=name(first.message_id, batches[batch_id]))

    phases = [phase for phase in phases_of_batches(tx, batches) if phase.status is PhaseStatus.DISPATCHED]
    dues = [again(phase.batch_id, phase_due(phase, batches[phase.batch_id])) for phase in phases]
    waiting = members_waiting_to_catch_up(tx, batches)
    added = [again(member.batch_id, member_added(member)) for member in waiting]
    publisher.publish(tx, [*dues, *added])
