"""Waking members that waited for a hold to end or for init, in the transaction that ends it (rules T6 and O10)."""

from collections.abc import Callable, Collection

from matoolkit.domain.messages import MemberAdded, PhaseDue
from matoolkit.domain.states import PhaseStatus
from matoolkit.ids import member_added_id, phase_due_id, reissued, reissued_after_init
from matoolkit.ports import Outgoing, Publisher
from matoolkit.store.batches import BatchRow, batches_by_id, release_batches
from matoolkit.store.enrolments import members_waiting_to_catch_up
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.sql.transaction import Transaction


def release_and_wake(tx: Transaction, publisher: Publisher, batch_ids: Collection[int]) -> list[int]:
    """End the holds of batches, and tell the orchestrator again of what is due in them and who joined them."""
    released = release_batches(tx, batch_ids)
    batches = {batch.id: batch for batch in batches_by_id(tx, released)}
    publisher.publish(tx, _told_again(tx, batches, lambda first, batch: reissued(first, batch.hold_count)))
    return released


def wake_after_init(tx: Transaction, publisher: Publisher, batch_ids: Collection[int]) -> None:
    """Tell the orchestrator again of what is due in batches and who joined them while init was in the way."""
    batches = {batch.id: batch for batch in batches_by_id(tx, batch_ids)}
    publisher.publish(tx, _told_again(tx, batches, lambda first, batch: reissued_after_init(first, batch.init_count)))


def _told_again(tx: Transaction, batches: dict[int, BatchRow], name: Callable[[str, BatchRow], str]) -> list[Outgoing]:
    phases = [phase for phase in phases_of_batches(tx, batches) if phase.status is PhaseStatus.DISPATCHED]
    dues = [
        Outgoing(
            name(phase_due_id(phase.id, phase.dispatch_count), batches[phase.batch_id]),
            PhaseDue(
                phase.batch_id,
                batches[phase.batch_id].runbook_name,
                phase.runbook_version,
                phase.phase_name,
                phase.id,
            ),
        )
        for phase in phases
    ]
    added = [
        Outgoing(
            name(member_added_id(member.id, member.epoch), batches[member.batch_id]),
            MemberAdded(member.batch_id, member.member_key, member.id),
        )
        for member in members_waiting_to_catch_up(tx, batches)
    ]
    return [*dues, *added]
