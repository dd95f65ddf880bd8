"""Ending holds: the members that waited because of them are woken in the same transaction (rule T6)."""

from collections.abc import Collection

from matoolkit.domain.messages import MemberAdded, PhaseDue
from matoolkit.domain.states import PhaseStatus
from matoolkit.ids import member_added_id, phase_due_id, reissued
from matoolkit.ports import Outgoing, Publisher
from matoolkit.store.batches import BatchRow, batches_by_id, release_batches
from matoolkit.store.membership import members_waiting_to_catch_up
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.transaction import Transaction


def release_and_wake(tx: Transaction, publisher: Publisher, batch_ids: Collection[int]) -> list[int]:
    """End the holds of batches, and tell the orchestrator again of what is due in them and who joined them."""
    released = release_batches(tx, batch_ids)
    batches = {batch.id: batch for batch in batches_by_id(tx, released)}
    publisher.publish(tx, [*_phases_again(tx, batches), *_members_again(tx, batches)])
    return released


def _phases_again(tx: Transaction, batches: dict[int, BatchRow]) -> list[Outgoing]:
    due = [phase for phase in phases_of_batches(tx, batches) if phase.status is PhaseStatus.DISPATCHED]
    return [
        Outgoing(
            reissued(phase_due_id(phase.id, phase.dispatch_count), batches[phase.batch_id].hold_count),
            PhaseDue(
                phase.batch_id,
                batches[phase.batch_id].runbook_name,
                phase.runbook_version,
                phase.phase_name,
                phase.id,
            ),
        )
        for phase in due
    ]


def _members_again(tx: Transaction, batches: dict[int, BatchRow]) -> list[Outgoing]:
    return [
        Outgoing(
            reissued(member_added_id(member.id, member.epoch), batches[member.batch_id].hold_count),
            MemberAdded(member.batch_id, member.member_key, member.id),
        )
        for member in members_waiting_to_catch_up(tx, batches)
    ]
