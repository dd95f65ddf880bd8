"""Members of batches: reading them and making their moves."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Update, select, update

from matoolkit.domain.keys import MAX_KEY_LENGTH, folded, is_usable_key
from matoolkit.domain.moves.member import (
    ANNOUNCE,
    ANNOUNCE_REMOVAL,
    CATCH_UP,
    FAIL,
    FOLLOW_START,
    KEEP_OUTPUTS,
    LEAVE_SOURCE,
    REACTIVATE,
    REENTER_SOURCE,
    REFRESH,
    REMOVE,
    RESTART,
    RESTART_UNDONE,
    RETURN,
    RETURN_UNDONE,
    SEE_OFF,
)
from matoolkit.domain.states import MemberStatus
from matoolkit.errors import UnusableKey
from matoolkit.store.joins import count_joins, number_returned
from matoolkit.store.moves import guards_of, make_alike, make_each
from matoolkit.store.noting import note_new_members, standing_of_new
from matoolkit.store.schema import batch_members, batches
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, columns_of, insert_each, records_among
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member as it is stored."""

    id: int
    batch_id: int
    member_key: str
    member_key_fold: str
    status: MemberStatus
    epoch: int
    first_phase_version: int | None
    first_phase_place: int | None
    data_json: str
    data_hash: str
    worker_data_json: str
    added_at: datetime
    add_dispatched_at: datetime | None
    caught_up_at: datetime | None
    left_source_at: datetime | None
    removed_at: datetime | None
    removed_by: str | None
    remove_reason: str | None
    remove_dispatched_at: datetime | None
    seen_off_at: datetime | None
    failed_at: datetime | None
    undone_at: datetime | None
    is_pilot: bool | None


@dataclass(frozen=True, slots=True)
class NewMember:
    """A member to be created; `caught_up_at` is empty for one that joins a batch under way."""

    batch_id: int
    member_key: str
    data_json: str
    data_hash: str
    worker_data_json: str = "{}"
    caught_up_at: datetime | None = None
    source_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class InsertedMember:
    """A new member: its id, batch and folded key."""

    id: int
    batch_id: int
    member_key_fold: str


@dataclass(frozen=True, slots=True)
class MemberLabel:
    """What messages say about a member."""

    id: int
    batch_id: int
    member_key: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """New data of a member."""

    id: int
    data_json: str
    data_hash: str


@dataclass(frozen=True, slots=True)
class Return:
    """A removed member that the source returns again, with its data and its time."""

    id: int
    data_json: str
    data_hash: str
    source_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class MemberAt:
    """A member in one of its epochs."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Restart:
    """A failed member that begins again, and the phase with which it does; without one, with the first."""

    id: int
    first_phase_version: int | None = None
    first_phase_place: int | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """All that a member's steps have put out so far in an epoch of it."""

    id: int
    epoch: int
    worker_data_json: str


@dataclass(frozen=True, slots=True)
class _MemberToInsert:
    batch_id: int
    member_key: str
    member_key_fold: str
    data_json: str
    data_hash: str
    worker_data_json: str
    caught_up_at: datetime | None
    source_time: datetime | None
    counted_as: int
    joined_no: int | None


def insert_members(
    tx: Transaction, new: Sequence[NewMember], at: datetime, *, founded: Collection[int] = ()
) -> list[InsertedMember]:
    """Create active members and return their ids; a key that the batch has in any spelling is a conflict.

    Those of batches that this transaction has `founded` are there from the beginning: nobody has seen these without.
    """
    if not new:
        return []
    numbers = count_joins(tx, {member.batch_id for member in new}.difference(founded))
    rows = [_to_insert(member, numbers.get(member.batch_id)) for member in new]
    alike = {"status": MemberStatus.ACTIVE, "epoch": 1, "added_at": at}
    returning = columns_of(InsertedMember, batch_members)
    note_new_members(tx, Counter((row.batch_id, row.counted_as) for row in rows))
    return tx.rows(InsertedMember, insert_each(tx, batch_members, rows, alike, returning=returning))


def members_by_id(tx: Transaction, ids: Collection[int]) -> list[MemberRow]:
    """Return members, by id."""
    return records_among(tx, MemberRow, batch_members, batch_members.c.id, ids)


def member_labels(tx: Transaction, ids: Collection[int]) -> list[MemberLabel]:
    """Return what messages say about members, by id."""
    return records_among(tx, MemberLabel, batch_members, batch_members.c.id, ids)


def refresh_members(tx: Transaction, refreshes: Sequence[Refresh]) -> list[int]:
    """Give active members the data that the source has now."""
    return make_each(tx, batch_members, REFRESH, refreshes, tx.time()) if refreshes else []


def remove_members(tx: Transaction, ids: Collection[int], by: str, reason: str, at: datetime) -> list[int]:
    """Take active members out of their batches; until the orchestrator has seen them off their batch cannot end."""
    return make_alike(tx, batch_members, REMOVE, ids, at, {"removed_by": by, "remove_reason": reason})


def return_members(tx: Transaction, returns: Sequence[Return], at: datetime, *, undone: bool = False) -> list[int]:
    """Take removed members in again, in a new epoch that has yet to catch up; undone ones without outputs (T5, U2)."""
    returned = make_each(tx, batch_members, RETURN_UNDONE if undone else RETURN, returns, at)
    number_returned(tx, returned)
    return returned


def fail_members(tx: Transaction, members: Sequence[MemberAt], at: datetime) -> list[int]:
    """Mark active members failed that have not started all over since."""
    return make_each(tx, batch_members, FAIL, members, at)


def reactivate_members(tx: Transaction, ids: Collection[int]) -> list[int]:
    """Let failed members go on from where they failed (rule O14)."""
    return make_alike(tx, batch_members, REACTIVATE, ids)


def restart_members(tx: Transaction, restarts: Sequence[Restart], at: datetime, *, forget_outputs: bool) -> list[int]:
    """Let failed members begin again in a new epoch, without their outputs if a rollback undid them (O14)."""
    return make_each(tx, batch_members, RESTART_UNDONE if forget_outputs else RESTART, restarts, at)


def follow_new_starts(tx: Transaction, batch_ids: Collection[int]) -> None:
    """Note that the source gave the active members of rescheduled batches their new time; others keep theirs (T5)."""
    if batch_ids:
        tx.execute(_following(tx, batch_ids))


@prepared
def _following(draft: Drafting, batch_ids: Collection[int]) -> Update:
    start = select(batches.c.batch_start_time).where(batches.c.id == batch_members.c.batch_id).scalar_subquery()
    mine = among(draft, batch_members.c.batch_id, batch_ids)
    chosen = update(batch_members).where(mine, *guards_of(batch_members, FOLLOW_START))
    return chosen.values(source_time=start)


def note_left_source(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Note, once, that the source no longer returns active members after T (rule T5)."""
    return make_alike(tx, batch_members, LEAVE_SOURCE, ids, at)


def note_in_source(tx: Transaction, ids: Collection[int]) -> list[int]:
    """Note that the source returns members again that had left it."""
    return make_alike(tx, batch_members, REENTER_SOURCE, ids)


def note_add_dispatched(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Note that the orchestrator was told of members that joined."""
    return make_alike(tx, batch_members, ANNOUNCE, ids, at)


def note_remove_dispatched(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Note that the orchestrator was told of members that left."""
    return make_alike(tx, batch_members, ANNOUNCE_REMOVAL, ids, at)


def note_caught_up(tx: Transaction, members: Sequence[MemberAt], at: datetime) -> list[int]:
    """Note that members have caught up with their batch, unless they have started all over since."""
    return make_each(tx, batch_members, CATCH_UP, members, at)


def note_seen_off(tx: Transaction, members: Sequence[MemberAt], at: datetime) -> list[int]:
    """Note that members that left were seen off, unless they have come back since."""
    return make_each(tx, batch_members, SEE_OFF, members, at)


def keep_outputs(tx: Transaction, outputs: Sequence[Outputs]) -> list[int]:
    """Store what members' steps have put out; the caller holds the lock of their batch and has merged it."""
    return make_each(tx, batch_members, KEEP_OUTPUTS, outputs)


def _to_insert(member: NewMember, joined_no: int | None) -> _MemberToInsert:
    key = member.member_key.strip()
    if not is_usable_key(key):
        raise UnusableKey(key, MAX_KEY_LENGTH)
    return _MemberToInsert(
        member.batch_id,
        key,
        folded(key),
        member.data_json,
        member.data_hash,
        member.worker_data_json,
        member.caught_up_at,
        member.source_time,
        standing_of_new(member.caught_up_at is not None),
        joined_no,
    )
