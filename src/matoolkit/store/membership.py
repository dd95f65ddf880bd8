"""Who is in which batch: what the scheduler compares with the source, and what people look up."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from matoolkit.domain.keys import folded
from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, MemberStatus
from matoolkit.store.members import MemberRow
from matoolkit.store.schema import batch_members, batches
from matoolkit.store.statements import among, is_any, rows_by_id, select_records
from matoolkit.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Membership:
    """A member without its data: enough to compare it with a row of the source."""

    id: int
    batch_id: int
    member_key_fold: str
    status: MemberStatus
    epoch: int
    data_hash: str
    left_source_at: datetime | None


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A member together with the state of its batch."""

    id: int
    batch_id: int
    member_key: str
    member_key_fold: str
    status: MemberStatus
    data_hash: str
    failed_at: datetime | None
    runbook_name: str
    batch_status: BatchStatus
    batch_start_time: datetime | None
    is_manual: bool
    batch_completed_at: datetime | None


_ENROLMENT = (
    batch_members.c.id,
    batch_members.c.batch_id,
    batch_members.c.member_key,
    batch_members.c.member_key_fold,
    batch_members.c.status,
    batch_members.c.data_hash,
    batch_members.c.failed_at,
    batches.c.runbook_name,
    batches.c.status,
    batches.c.batch_start_time,
    batches.c.is_manual,
    batches.c.completed_at,
)


def memberships(tx: Transaction, batch_ids: Collection[int]) -> list[Membership]:
    """Return everybody who is or was in these batches, without data, by id."""
    if not batch_ids:
        return []
    query = select_records(Membership, batch_members).where(among(tx, batch_members.c.batch_id, batch_ids))
    return rows_by_id(tx, Membership, query)


def unfinished_enrolments(tx: Transaction, runbook_name: str) -> list[Enrolment]:
    """Return all members of the unfinished batches of a runbook, manual ones included, by id."""
    query = (
        select(*_ENROLMENT)
        .join(batches, batches.c.id == batch_members.c.batch_id)
        .where(batches.c.runbook_name == runbook_name, is_any(batches.c.status, UNFINISHED_BATCHES))
    )
    return rows_by_id(tx, Enrolment, query)


def latest_enrolments(tx: Transaction, runbook_name: str, keys: Collection[str]) -> list[Enrolment]:
    """Return, for each key, its latest place in a batch of a runbook, whatever became of it (rule T7)."""
    if not keys:
        return []
    latest = (
        select(func.max(batch_members.c.id))
        .join(batches, batches.c.id == batch_members.c.batch_id)
        .where(
            batches.c.runbook_name == runbook_name,
            among(tx, batch_members.c.member_key_fold, {folded(key) for key in keys}),
        )
        .group_by(batch_members.c.member_key_fold)
    )
    query = select(*_ENROLMENT).join(batches, batches.c.id == batch_members.c.batch_id)
    return rows_by_id(tx, Enrolment, query.where(batch_members.c.id.in_(latest)))


def enrolments_of_key(tx: Transaction, key: str, limit: int = 100) -> list[Enrolment]:
    """Return every batch of any runbook that a member is or was in, newest first."""
    query = (
        select(*_ENROLMENT)
        .join(batches, batches.c.id == batch_members.c.batch_id)
        .where(batch_members.c.member_key_fold == folded(key))
    )
    return tx.rows(Enrolment, query.order_by(batch_members.c.id.desc()).limit(limit))


def active_members(tx: Transaction, batch_id: int, *, after: int = 0, limit: int = 5000) -> list[MemberRow]:
    """Return a slice of the active members of a batch, by id, from after the last id of the slice before."""
    return members_page(tx, batch_id, status=MemberStatus.ACTIVE, after=after, limit=limit)


def members_page(
    tx: Transaction,
    batch_id: int,
    *,
    status: MemberStatus | None = None,
    after: int = 0,
    limit: int = 100,
) -> list[MemberRow]:
    """Return one page of the members of a batch, by id, from after the last id of the page before."""
    query = select_records(MemberRow, batch_members).where(
        batch_members.c.batch_id == batch_id, batch_members.c.id > after
    )
    if status is not None:
        query = query.where(is_any(batch_members.c.status, {status}))
    return tx.rows(MemberRow, query.order_by(batch_members.c.id).limit(limit))


def members_waiting_to_catch_up(tx: Transaction, batch_ids: Collection[int]) -> list[MemberRow]:
    """Return the active members of batches that have yet to catch up (rules O10 and O11)."""
    if not batch_ids:
        return []
    query = select_records(MemberRow, batch_members).where(
        among(tx, batch_members.c.batch_id, batch_ids),
        batch_members.c.caught_up_at.is_(None),
        is_any(batch_members.c.status, {MemberStatus.ACTIVE}),
    )
    return rows_by_id(tx, MemberRow, query)
