"""Members that leave: gone from the source, or moved to another batch (rules T5 and T6)."""

from collections.abc import Collection
from datetime import datetime

from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.domain.messages import MemberRemoved
from matoolkit.domain.states import ABSENT, MOVED, NOT_BEGUN
from matoolkit.ids import member_removed_id
from matoolkit.ports import Outgoing, Publisher
from matoolkit.scheduler.tallies import Tally
from matoolkit.store.members import member_labels, note_remove_dispatched, remove_members
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.steps import cancel_steps_of_members

SCHEDULER = "scheduler"


def remove_absent(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], tally: Tally, at: datetime
) -> None:
    """Take members out whom the source no longer returns."""
    tally.members_removed += len(_remove(tx, publisher, member_ids, ABSENT, at))


def remove_dropouts(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], tally: Tally, at: datetime
) -> None:
    """Take members out of batches that have not begun: there is nothing to undo for them."""
    tally.members_removed += len(_remove(tx, publisher, member_ids, NOT_BEGUN, at))


def remove_movers(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], tally: Tally, at: datetime
) -> set[int]:
    """Take members out who belong to another batch now, and return who left; nothing of theirs is undone."""
    moved = _remove(tx, publisher, member_ids, MOVED, at)
    tally.members_moved += len(moved)
    return set(moved)


def _remove(tx: Transaction, publisher: Publisher, member_ids: Collection[int], reason: str, at: datetime) -> list[int]:
    """Take members out with their open steps (rule O5), and tell the orchestrator."""
    removed = remove_members(tx, member_ids, SCHEDULER, reason, at)
    if not removed:
        return []
    withdraw_unsent(tx, publisher, cancel_steps_of_members(tx, removed, at))
    note_remove_dispatched(tx, removed, at)
    publisher.publish(
        tx,
        [
            Outgoing(
                member_removed_id(member.id, member.epoch),
                MemberRemoved(member.batch_id, member.member_key, member.id),
            )
            for member in member_labels(tx, removed)
        ],
    )
    return removed
