"""Who is in which batch: what the scheduler compares with the source, and what people look up."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, false, func, or_, select, true

from matoolkit.domain.keys import folded
from matoolkit.domain.retrying import FirstPhase, first_phase
from matoolkit.domain.snapshot import KnownMember
from matoolkit.domain.states import MOVED, OPEN_STEPS, UNFINISHED_BATCHES, BatchStatus, MemberState, MemberStatus
from matoolkit.store.members import MemberLabel, MemberRow
from matoolkit.store.memberstates import is_in_state
from matoolkit.store.schema import batch_members, batches, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import (
    among,
    columns_of,
    contains,
    is_any,
    records_among,
    rows_by_id,
    select_records,
)
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody is or was a member, what its steps put out there, and whether it goes on or still runs there."""

    id: int
    batch_id: int
    member_key_fold: str
    status: MemberStatus
    worker_data_json: str
    added_at: datetime
    removed_at: datetime | None
    remove_reason: str | None
    failed_at: datetime | None
    is_under_way: bool
    is_busy: bool

    @property
    def changed_at(self) -> datetime:
        """When its status last changed."""
        return self.removed_at or self.failed_at or self.added_at


@dataclass(frozen=True, slots=True)
class PlaceBefore:
    """A place in which somebody is done, has failed or was undone, and the last time that the source gave it there."""

    member_key_fold: str
    status: MemberStatus
    source_time: datetime | None
    undone_at: datetime | None


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
    remove_reason: str | None
    undone_at: datetime | None
    runbook_name: str
    batch_status: BatchStatus
    batch_start_time: datetime | None
    is_manual: bool
    batch_completed_at: datetime | None


ENROLMENT = (
    batch_members.c.id,
    batch_members.c.batch_id,
    batch_members.c.member_key,
    batch_members.c.member_key_fold,
    batch_members.c.status,
    batch_members.c.data_hash,
    batch_members.c.failed_at,
    batch_members.c.remove_reason,
    batch_members.c.undone_at,
    batches.c.runbook_name,
    batches.c.status.label("batch_status"),
    batches.c.batch_start_time,
    batches.c.is_manual,
    batches.c.completed_at.label("batch_completed_at"),
)


# A job of its is out, it is being compensated, or it left and the orchestrator has yet to see it off (rules T5 and O5).
_IS_BUSY = or_(
    exists().where(step_executions.c.batch_member_id == batch_members.c.id, step_executions.c.lost_at.is_not(None)),
    exists().where(
        rollback_executions.c.batch_member_id == batch_members.c.id,
        or_(is_any(rollback_executions.c.status, OPEN_STEPS), rollback_executions.c.lost_at.is_not(None)),
    ),
    and_(
        is_any(batch_members.c.status, {MemberStatus.REMOVED}),
        batch_members.c.remove_reason != MOVED,
        batch_members.c.seen_off_at.is_(None),
    ),
)


_IS_UNDER_WAY = and_(
    is_any(batches.c.status, UNFINISHED_BATCHES), is_any(batch_members.c.status, {MemberStatus.ACTIVE})
)


IS_DONE = and_(is_any(batches.c.status, {BatchStatus.COMPLETED}), is_any(batch_members.c.status, {MemberStatus.ACTIVE}))


def known_members(tx: Transaction, batch_ids: Collection[int]) -> list[KnownMember]:
    """Return everybody who is or was in these batches, without data, by id."""
    return records_among(tx, KnownMember, batch_members, batch_members.c.batch_id, batch_ids)


def member_fingerprints(tx: Transaction, runbook_name: str) -> set[bytes]:
    """Return the fingerprints of the rows that the active members of a runbook's unfinished batches came from."""
    return set(map(bytes.fromhex, tx.values(_fingerprints(tx, runbook_name))))


@prepared
def _fingerprints(_draft: Drafting, runbook_name: str) -> Select[Any]:
    query = select(batch_members.c.data_hash).join(batches, batches.c.id == batch_members.c.batch_id)
    return query.where(batches.c.runbook_name == runbook_name, _IS_UNDER_WAY)


def places_of_keys(tx: Transaction, runbook_name: str, keys: Collection[str]) -> list[Place]:
    """Return every place that somebody has or had in the batches of a runbook, by id; the keys are folded."""
    if not keys:
        return []
    return rows_by_id(tx, Place, _places(tx, runbook_name, keys))


@prepared
def _places(draft: Drafting, runbook_name: str, keys: Collection[str]) -> Select[Any]:
    told = {"is_under_way": _IS_UNDER_WAY, "is_busy": _IS_BUSY}
    columns = [batch_members.c[field.name] for field in fields(Place) if field.name not in told]
    answers = [case((condition, true()), else_=false()).label(name) for name, condition in told.items()]
    return (
        select(*columns, *answers)
        .join(batches, batches.c.id == batch_members.c.batch_id)
        .where(batches.c.runbook_name == runbook_name, among(draft, batch_members.c.member_key_fold, keys))
    )


def places_before(tx: Transaction, runbook_name: str, keys: Collection[str]) -> list[PlaceBefore]:
    """Return the places in the batches of a runbook in which somebody is done, has failed or was undone (rule T5).

    The keys are folded.
    """
    return tx.rows(PlaceBefore, _before(tx, runbook_name, keys)) if keys else []


@prepared
def _before(draft: Drafting, runbook_name: str, keys: Collection[str]) -> Select[Any]:
    return (
        select(*columns_of(PlaceBefore, batch_members))
        .join(batches, batches.c.id == batch_members.c.batch_id)
        .where(
            batches.c.runbook_name == runbook_name,
            among(draft, batch_members.c.member_key_fold, keys),
            or_(is_any(batch_members.c.status, {MemberStatus.FAILED}), batch_members.c.undone_at.is_not(None), IS_DONE),
        )
    )


def busy_members(tx: Transaction, ids: Collection[int]) -> set[int]:
    """Return the members for whom something still runs."""
    return set(tx.values(_busy(tx, ids))) if ids else set()


@prepared
def _busy(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    return select(batch_members.c.id).where(among(draft, batch_members.c.id, ids), _IS_BUSY)


def taken_keys(tx: Transaction, runbook_name: str, folds: Collection[str], *, besides: int = 0) -> set[str]:
    """Return the folded keys that another batch of a runbook has, or for which it still runs something.

    An unfinished batch has its active members. The answer holds while the runbook is locked.
    """
    if not folds:
        return set()
    return set(tx.values(_taken(tx, runbook_name, folds, besides)))


@prepared
def _taken(draft: Drafting, runbook_name: str, folds: Collection[str], besides: int) -> Select[Any]:
    return (
        select(batch_members.c.member_key_fold)
        .join(batches, batches.c.id == batch_members.c.batch_id)
        .where(
            batches.c.runbook_name == runbook_name,
            batches.c.id != besides,
            among(draft, batch_members.c.member_key_fold, folds),
            or_(_IS_UNDER_WAY, _IS_BUSY),
        )
    )


def first_phases_of_active(tx: Transaction, batch_ids: Collection[int]) -> dict[int, set[FirstPhase | None]]:
    """Return the phases with which the active members of batches begin; nothing for a batch without any (rule T8)."""
    found: dict[int, set[FirstPhase | None]] = {}
    for batch_id, version, place in tx.rows(lambda *row: row, _first_phases(tx, batch_ids)) if batch_ids else ():
        found.setdefault(batch_id, set()).add(first_phase(version, place))
    return found


@prepared
def _first_phases(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    columns = (batch_members.c.batch_id, batch_members.c.first_phase_version, batch_members.c.first_phase_place)
    active = is_any(batch_members.c.status, {MemberStatus.ACTIVE})
    return select(*columns).distinct().where(among(draft, batch_members.c.batch_id, batch_ids), active)


def latest_enrolments(tx: Transaction, runbook_name: str, keys: Collection[str]) -> list[Enrolment]:
    """Return, for each key, its latest place in a batch of a runbook, in any status (rule T7)."""
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
    query = select(*ENROLMENT).join(batches, batches.c.id == batch_members.c.batch_id)
    return rows_by_id(tx, Enrolment, query.where(batch_members.c.id.in_(latest)))


def members_page(
    tx: Transaction,
    batch_id: int,
    *,
    status: MemberStatus | None = None,
    state: MemberState | None = None,
    key_part: str | None = None,
    after: int = 0,
    limit: int = 100,
) -> list[MemberRow]:
    """Return one page of the members of a batch, by id, from after the last id of the page before."""
    query = select_records(MemberRow, batch_members).where(
        *_members(batch_id, status, state, key_part), batch_members.c.id > after
    )
    return tx.rows(MemberRow, query.order_by(batch_members.c.id).limit(limit))


def count_members(
    tx: Transaction,
    batch_id: int,
    *,
    status: MemberStatus | None = None,
    state: MemberState | None = None,
    key_part: str | None = None,
) -> int:
    """Count the members of a batch."""
    query = select(func.count()).select_from(batch_members).where(*_members(batch_id, status, state, key_part))
    count: int = tx.values(query)[0]
    return count


def _members(
    batch_id: int, status: MemberStatus | None, state: MemberState | None, key_part: str | None
) -> list[ColumnElement[bool]]:
    found = [batch_members.c.batch_id == batch_id]
    if status is not None:
        found.append(is_any(batch_members.c.status, {status}))
    if state is not None:
        found += is_in_state(state)
    if key_part is not None:
        found.append(contains(batch_members.c.member_key_fold, folded(key_part)))
    return found


def members_waiting_to_catch_up(tx: Transaction, batch_ids: Collection[int]) -> list[MemberLabel]:
    """Return what messages say about the active members of batches that have yet to catch up (rules O10 and O11)."""
    if not batch_ids:
        return []
    query = select_records(MemberLabel, batch_members).where(
        among(tx, batch_members.c.batch_id, batch_ids),
        batch_members.c.caught_up_at.is_(None),
        is_any(batch_members.c.status, {MemberStatus.ACTIVE}),
    )
    return rows_by_id(tx, MemberLabel, query)
