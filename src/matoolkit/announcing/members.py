"""Members that join a batch under way, try again, or leave (rules O5, O10, O14 and T5)."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from matoolkit.announcing.messages import Member, member_added, member_removed
from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.domain.states import EXCLUDED, MemberStatus
from matoolkit.ids import asked_for
from matoolkit.ports import Outgoing, Publisher
from matoolkit.store.batches import BatchRow
from matoolkit.store.exclusions import excluded_keys
from matoolkit.store.members import member_labels, note_add_dispatched, note_remove_dispatched, remove_members
from matoolkit.store.narrow_members import members_with_keys
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.steps import cancel_steps_of_members
from matoolkit.store.undoing import UndoneMember, undo_members


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
    publisher.publish(tx, _leaving(tx, publisher, removed, at))
    return removed


def undo_and_announce(
    tx: Transaction, publisher: Publisher, undone: Collection[UndoneMember], request: int, at: datetime
) -> list[int]:
    """Undo members as a person asked for it: cancel their open steps, and tell the orchestrator (rule U2)."""
    removed = undo_members(tx, undone, at)
    told = _leaving(tx, publisher, removed, at)
    # Somebody who was excluded before has been announced under the plain id already.
    publisher.publish(tx, [replace(one, message_id=asked_for(one.message_id, request)) for one in told])
    return removed


def stop_excluded(tx: Transaction, publisher: Publisher, batch: BatchRow, by: str, at: datetime) -> list[int]:
    """Let those leave a batch that is taken up again whom a person keeps out; what they did stays (rule U3)."""
    excluded = excluded_keys(tx, batch.runbook_name)
    if not excluded:
        return []
    active = [one.id for one in members_with_keys(tx, batch.id, excluded) if one.status is MemberStatus.ACTIVE]
    return remove_and_announce(tx, publisher, active, by, EXCLUDED, at)


def _leaving(tx: Transaction, publisher: Publisher, removed: list[int], at: datetime) -> list[Outgoing]:
    """Cancel the open steps of members that left, and return what the orchestrator is told."""
    if not removed:
        return []
    withdraw_unsent(tx, publisher, cancel_steps_of_members(tx, removed, at))
    note_remove_dispatched(tx, removed, at)
    return [member_removed(member) for member in member_labels(tx, removed)]
