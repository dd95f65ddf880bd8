"""Members that join a batch under way, try again, or leave (rules O5, O10, O14 and T5)."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from matoolkit.announcing.messages import Member, member_added, member_removed
from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.ids import asked_for
from matoolkit.ports import Publisher
from matoolkit.store.members import member_labels, note_add_dispatched, note_remove_dispatched, remove_members
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.steps import cancel_steps_of_members


def announce_members(tx: Transaction, publisher: Publisher, members: Sequence[Member], at: datetime) -> None:
    """Tell the orchestrator of members that have to catch up with their batch."""
    if not members:
        return
    note_add_dispatched(tx, [member.id for member in members], at)
    publisher.publish(tx, [member_added(member) for member in members])


def announce_retried(tx: Transaction, publisher: Publisher, members: Sequence[Member], request: int) -> None:
    """Tell the orchestrator of members that try again because a person asked for it (rule O14)."""
    again = [member_added(member) for member in members]
    publisher.publish(tx, [replace(one, message_id=asked_for(one.message_id, request)) for one in again])


def remove_and_announce(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], by: str, reason: str, at: datetime
) -> list[int]:
    """Remove members, cancel their open steps (rule O5), tell the orchestrator, and return who left."""
    removed = remove_members(tx, member_ids, by, reason, at)
    if not removed:
        return []
    withdraw_unsent(tx, publisher, cancel_steps_of_members(tx, removed, at))
    note_remove_dispatched(tx, removed, at)
    publisher.publish(tx, [member_removed(member) for member in member_labels(tx, removed)])
    return removed
