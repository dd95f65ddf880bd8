"""Members as the orchestrator decides about them: narrow records, and their data only where it is needed.

`members.py` has the whole rows.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select

from matoolkit.domain.retrying import FirstPhase, first_phase
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.records import record
from matoolkit.store.gates import IS_HELD
from matoolkit.store.memberfacts import IS_TO_SEE_OFF
from matoolkit.store.schema import batch_members, batches
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any, records_among, rows_by_id, select_records
from matoolkit.store.sql.transaction import Transaction


@record
class NarrowMember:
    """A member without its data."""

    id: int
    batch_id: int
    member_key: str
    status: MemberStatus
    epoch: int
    first_phase_version: int | None
    first_phase_place: int | None
    caught_up_at: datetime | None
    remove_reason: str | None
    seen_off_at: datetime | None
    undone_at: datetime | None
    undo_version: int | None

    @property
    def first_phase(self) -> FirstPhase | None:
        """The phase with which it begins in its present epoch, if that is not the first (rule O14)."""
        return first_phase(self.first_phase_version, self.first_phase_place)


@record
class MemberInFull:
    """A member that may have something to do, with all that templates find in it."""

    id: int
    batch_id: int
    member_key: str
    status: MemberStatus
    epoch: int
    data_json: str
    worker_data_json: str
    joined_no: int | None
    is_pilot: bool | None


@record
class MemberOutputs:
    """What a member's steps have put out so far."""

    id: int
    epoch: int
    worker_data_json: str


def narrow_members(tx: Transaction, ids: Collection[int]) -> list[NarrowMember]:
    """Return members without their data, by id."""
    return records_among(tx, NarrowMember, batch_members, batch_members.c.id, ids)


def members_in_full(tx: Transaction, ids: Collection[int]) -> list[MemberInFull]:
    """Return members with their data, by id."""
    return records_among(tx, MemberInFull, batch_members, batch_members.c.id, ids)


def member_outputs(tx: Transaction, ids: Collection[int]) -> list[MemberOutputs]:
    """Return the outputs of members, by id."""
    return records_among(tx, MemberOutputs, batch_members, batch_members.c.id, ids)


def members_with_keys(tx: Transaction, batch_id: int, folds: Collection[str]) -> list[NarrowMember]:
    """Return the members of a batch that have one of these folded keys, by id."""
    if not folds:
        return []
    mine = (batch_members.c.batch_id == batch_id, among(tx, batch_members.c.member_key_fold, folds))
    return rows_by_id(tx, NarrowMember, select_records(NarrowMember, batch_members).where(*mine))


def caught_up_members(tx: Transaction, batch_id: int, *, after: int, limit: int) -> list[int]:
    """Return a slice of the active members of a batch that do not wait to catch up: their ids, in order (rule O2)."""
    return tx.values(_caught_up(tx, batch_id, after, limit=limit))


@prepared
def _caught_up(_draft: Drafting, batch_id: int, after: int, *, limit: int) -> Select[Any]:
    query = select(batch_members.c.id).where(
        batch_members.c.batch_id == batch_id,
        is_any(batch_members.c.status, {MemberStatus.ACTIVE}),
        batch_members.c.id > after,
        batch_members.c.caught_up_at.is_not(None),
    )
    return query.order_by(batch_members.c.id).limit(limit)


def active_members(tx: Transaction, batch_id: int) -> list[NarrowMember]:
    """Return everybody who is active in a batch, by id."""
    mine = (batch_members.c.batch_id == batch_id, is_any(batch_members.c.status, {MemberStatus.ACTIVE}))
    return rows_by_id(tx, NarrowMember, select_records(NarrowMember, batch_members).where(*mine))


def members_to_see_off(
    tx: Transaction, gone_since: datetime, *, after: int = 0, limit: int = 500
) -> list[NarrowMember]:
    """Return members that left long ago and were not seen off, from after the last id before (rule O16)."""
    return tx.rows(NarrowMember, _to_see_off(tx, gone_since, after, limit=limit))


@prepared
def _to_see_off(_draft: Drafting, gone_since: datetime, after: int, *, limit: int) -> Select[Any]:
    query = select_records(NarrowMember, batch_members).where(
        *IS_TO_SEE_OFF,
        batch_members.c.removed_at <= gone_since,
        batch_members.c.id > after,
    )
    return query.order_by(batch_members.c.id).limit(limit)


def members_to_catch_up(tx: Transaction, *, after: int = 0, limit: int = 500) -> list[NarrowMember]:
    """Return members that wait to catch up although nothing blocks them, from after the last id before (rule O10)."""
    return tx.rows(NarrowMember, _to_catch_up(tx, after, limit=limit))


@prepared
def _to_catch_up(_draft: Drafting, after: int, *, limit: int) -> Select[Any]:
    query = (
        select_records(NarrowMember, batch_members)
        .join(batches, batches.c.id == batch_members.c.batch_id)
        .where(
            is_any(batches.c.status, {BatchStatus.ACTIVE}),
            ~IS_HELD,
            is_any(batch_members.c.status, {MemberStatus.ACTIVE}),
            batch_members.c.caught_up_at.is_(None),
            batch_members.c.id > after,
        )
    )
    return query.order_by(batch_members.c.id).limit(limit)
