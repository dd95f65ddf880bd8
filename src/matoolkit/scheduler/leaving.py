"""Members that leave: gone from the source, or moved to another batch (rules T5 and T6)."""

from collections.abc import Collection
from datetime import datetime

from matoolkit.domain.messages import MemberRemoved
from matoolkit.domain.states import MOVED
from matoolkit.ids import member_removed_id
from matoolkit.ports import Outgoing, Publisher
from matoolkit.scheduler.tallies import Tally
from matoolkit.store.members import member_labels, note_remove_dispatched, remove_members
from matoolkit.store.steps import cancel_steps_of_members
from matoolkit.store.transaction import Transaction
from matoolkit.store.withdrawal import withdraw_unsent

SCHEDULER = "scheduler"
ABSENT = "the source no longer returns it"


def remove_absent(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], tally: Tally, at: datetime
) -> None:
    """Take members out whom the source no longer returns, and tell the orchestrator."""
    removed = remove_members(tx, member_ids, SCHEDULER, ABSENT, at)
    _announce(tx, publisher, removed, at)
    tally.members_removed += len(removed)


def remove_movers(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], tally: Tally, at: datetime
) -> set[int]:
    """Take members out who belong to another batch now, with their open steps; nothing is undone. Return who left."""
    moved = remove_members(tx, member_ids, SCHEDULER, MOVED, at)
    withdraw_unsent(tx, publisher, cancel_steps_of_members(tx, moved, at))
    _announce(tx, publisher, moved, at)
    tally.members_moved += len(moved)
    return set(moved)


def _announce(tx: Transaction, publisher: Publisher, member_ids: Collection[int], at: datetime) -> None:
    if not member_ids:
        return
    note_remove_dispatched(tx, member_ids, at)
    publisher.publish(
        tx,
        [
            Outgoing(
                member_removed_id(member.id, member.epoch),
                MemberRemoved(member.batch_id, member.member_key, member.id),
            )
            for member in member_labels(tx, member_ids)
        ],
    )
