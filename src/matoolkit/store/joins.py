"""Who joined a batch when, as numbers: a sign-off covers those who had joined up to one (rule S3).

The caller has locked the batches, so no sign-off comes between a number and those who get it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Update, func, or_, select, update

from matoolkit.domain.states import MemberStatus
from matoolkit.store.schema import batch_members, batches
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any
from matoolkit.store.sql.transaction import Transaction

_ACTIVE = is_any(batch_members.c.status, {MemberStatus.ACTIVE})
_joined_no = func.coalesce(batch_members.c.joined_no, 0)


@dataclass(frozen=True, slots=True)
class Some:
    """How many members there are, and the first of them by key."""

    count: int
    keys: Sequence[str]


def count_joins(tx: Transaction, batch_ids: Collection[int]) -> dict[int, int]:
    """Count one more time for batches that people join, and return their numbers."""
    return dict(tx.rows(lambda *row: row, _counted(tx, batch_ids))) if batch_ids else {}


@prepared
def _counted(draft: Drafting, batch_ids: Collection[int]) -> Update:
    joined = update(batches).where(among(draft, batches.c.id, batch_ids))
    counted = joined.values(join_count=func.coalesce(batches.c.join_count, 0) + 1)
    return counted.returning(batches.c.id, batches.c.join_count)


def number_returned(tx: Transaction, member_ids: Collection[int]) -> None:
    """Number members that have returned to their batches like others who join."""
    if not member_ids:
        return
    count_joins(tx, set(tx.values(_batches_of(tx, member_ids))))
    tx.execute(_numbered(tx, member_ids))


@prepared
def _batches_of(draft: Drafting, member_ids: Collection[int]) -> Select[Any]:
    return select(batch_members.c.batch_id).distinct().where(among(draft, batch_members.c.id, member_ids))


@prepared
def _numbered(draft: Drafting, member_ids: Collection[int]) -> Update:
    number = select(batches.c.join_count).where(batches.c.id == batch_members.c.batch_id).scalar_subquery()
    return update(batch_members).where(among(draft, batch_members.c.id, member_ids)).values(joined_no=number)


def join_count(tx: Transaction, batch_id: int) -> int:
    """Return how often people joined a batch."""
    found: list[int | None] = tx.values(_join_count(tx, batch_id))
    return (found[0] if found else None) or 0


@prepared
def _join_count(_draft: Drafting, batch_id: int) -> Select[Any]:
    return select(batches.c.join_count).where(batches.c.id == batch_id)


def active_members(tx: Transaction, batch_id: int, after_no: int | None = None) -> list[tuple[int, int]]:
    """Return the active members of a batch with their epochs, by id; with a number only those who joined after it."""
    number = -1 if after_no is None else after_no
    return sorted(tx.rows(lambda *row: row, _active(tx, batch_id, number)))


@prepared
def _active(_draft: Drafting, batch_id: int, after_no: int) -> Select[Any]:
    chosen = select(batch_members.c.id, batch_members.c.epoch)
    return chosen.where(batch_members.c.batch_id == batch_id, _ACTIVE, _joined_no > after_no)


def joined_after(tx: Transaction, batch_id: int, number: int, most: int) -> Some:
    """Return which active members of a batch joined after a number."""
    return _some(tx, (batch_members.c.batch_id == batch_id, _ACTIVE, _joined_no > number), most)


def gone_since(tx: Transaction, batch_id: int, number: int, after_no: int, count: int, most: int) -> Some:
    """Return who is not active any more of so many who had joined up to a number: the latest to go first."""
    known = (batch_members.c.batch_id == batch_id, _joined_no <= number, _joined_no > after_no)
    still = tx.values(select(func.count()).select_from(batch_members).where(*known, _ACTIVE))[0]
    gone = max(count - still, 0)
    when = func.coalesce(batch_members.c.removed_at, batch_members.c.failed_at)
    left = or_(batch_members.c.removed_at.is_not(None), batch_members.c.failed_at.is_not(None))
    query = select(batch_members.c.member_key).where(*known, ~_ACTIVE, left)
    keys = query.order_by(when.desc(), batch_members.c.id).limit(min(gone, most) or 1)
    return Some(gone, tx.values(keys) if gone else ())


def refreshed_since(tx: Transaction, batch_id: int, since: datetime) -> int:
    """Count the active members of a batch whose data changed since a time."""
    mine = (batch_members.c.batch_id == batch_id, _ACTIVE, batch_members.c.refreshed_at > since)
    count: int = tx.values(select(func.count()).select_from(batch_members).where(*mine))[0]
    return count


def late_joins(tx: Transaction, batch_ids: Collection[int]) -> dict[int, dict[int, int]]:
    """Return, for batches, how many active members joined with each number."""
    found: dict[int, dict[int, int]] = {}
    for batch_id, number, count in tx.rows(lambda *row: row, _late(tx, batch_ids)) if batch_ids else ():
        found.setdefault(batch_id, {})[number] = count
    return found


@prepared
def _late(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    number = batch_members.c.joined_no
    chosen = select(batch_members.c.batch_id, number, func.count())
    late = chosen.where(among(draft, batch_members.c.batch_id, batch_ids), number.is_not(None), _ACTIVE)
    return late.group_by(batch_members.c.batch_id, number)


def _some(tx: Transaction, conditions: Sequence[ColumnElement[bool]], most: int) -> Some:
    count = tx.values(select(func.count()).select_from(batch_members).where(*conditions))[0]
    keys = select(batch_members.c.member_key).where(*conditions).order_by(batch_members.c.id).limit(most)
    return Some(count, tx.values(keys) if count else ())
