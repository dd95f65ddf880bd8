"""Sign-offs as they are stored; what they mean is in `domain/signoff.py`."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Update, false, select, union, update

from matoolkit.domain.signoff import Signature
from matoolkit.domain.states import (
    OPEN_PHASES,
    OPEN_STEPS,
    UNFINISHED_BATCHES,
    BatchStatus,
    SignOff,
    SignOffSubject,
)
from matoolkit.records import record
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.schema import approvals, batches, init_executions, phase_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, insert_each, is_any, records_among, rows_by_id, select_records
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewSignature:
    """A sign-off that somebody gives."""

    batch_id: int
    subject: SignOffSubject
    phase_execution_id: int | None
    hold_key: str | None
    runbook_version: int
    batch_start_time: datetime | None
    digest: str
    covered_after: int | None
    covered_no: int
    members: int
    decision: SignOff
    signed_by: str
    roles: str
    is_signed_in: bool
    signed_at: datetime
    reason: str | None


def sign(tx: Transaction, new: NewSignature) -> int:
    """Store a sign-off, and return its number."""
    number: int = tx.values(insert_each(tx, approvals, [new], {}, returning=(approvals.c.id,)))[0]
    return number


def signatures_of_batches(tx: Transaction, batch_ids: Collection[int]) -> list[Signature]:
    """Return all sign-offs in batches, by id."""
    return records_among(tx, Signature, approvals, approvals.c.batch_id, batch_ids)


def withdraw_signatures(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Take back sign-offs that have not been used, and return which were."""
    return sorted(tx.values(_withdrawn(tx, ids, at))) if ids else []


@prepared
def _withdrawn(draft: Drafting, ids: Collection[int], at: datetime) -> Update:
    mine = (among(draft, approvals.c.id, ids), approvals.c.withdrawn_at.is_(None), approvals.c.used_at.is_(None))
    return update(approvals).where(*mine).values(withdrawn_at=at).returning(approvals.c.id)


def note_used(tx: Transaction, ids: Collection[int], at: datetime) -> None:
    """Note that what sign-offs are about has begun."""
    if ids:
        tx.execute(_used(tx, ids, at))


@prepared
def _used(draft: Drafting, ids: Collection[int], at: datetime) -> Update:
    return update(approvals).where(among(draft, approvals.c.id, ids), approvals.c.used_at.is_(None)).values(used_at=at)


@record
class UnderWay:
    """A version whose phases or init have not ended in a batch."""

    batch_id: int
    version: int


def versions_under_way(tx: Transaction) -> list[UnderWay]:
    """Return the versions that have something under way in unfinished batches: older ones than they follow too."""
    return tx.rows(UnderWay, _under_way(tx))


@prepared
def _under_way(_draft: Drafting) -> Select[Any]:
    of_phases = select(phase_executions.c.batch_id, phase_executions.c.runbook_version.label("version")).where(
        phase_executions.c.batch_id == batches.c.id,
        is_any(phase_executions.c.status, OPEN_PHASES),
        is_any(batches.c.status, UNFINISHED_BATCHES),
    )
    of_inits = select(init_executions.c.batch_id, init_executions.c.runbook_version.label("version")).where(
        init_executions.c.batch_id == batches.c.id,
        is_any(init_executions.c.status, OPEN_STEPS),
        is_any(batches.c.status, {BatchStatus.INIT_DISPATCHED}),
    )
    found = union(of_phases, of_inits).subquery("under_way")
    return select(found.c.batch_id, found.c.version).order_by(found.c.batch_id, found.c.version)


def batches_before_init(tx: Transaction) -> list[NarrowBatch]:
    """Return the batches whose init was asked for and has not ended, by id; manual ones have no times."""
    waiting = (is_any(batches.c.status, {BatchStatus.INIT_DISPATCHED}), batches.c.is_manual == false())
    return rows_by_id(tx, NarrowBatch, select_records(NarrowBatch, batches).where(*waiting))
