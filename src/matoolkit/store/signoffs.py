"""Sign-offs as they are stored; what they mean is in `domain/signoff.py`."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Select, Update, false, select, union, update

from matoolkit.domain.doors import Door
from matoolkit.domain.gates import GateKind
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
from matoolkit.store.lateness import OPENED_BY_PEOPLE
from matoolkit.store.schema import approvals, batches, gates, init_executions, phase_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, insert_each, is_any, records_among, rows_by_id, select_records
from matoolkit.store.sql.transaction import Transaction

_OF_LATE_INIT = (
    is_any(gates.c.kind, {GateKind.LATE}),
    gates.c.phase_execution_id.is_(None),
    gates.c.hold_key.is_(None),
)


@dataclass(frozen=True, slots=True)
class _LateInit:
    batch_id: int
    shut_from: datetime
    swept_at: datetime
    reason: str
    shown_json: str


@dataclass(frozen=True, slots=True)
class NewLateInit:
    """An init that was not approved in time, the T that this is about, and what people are told."""

    batch_id: int
    start: datetime | None
    reason: str


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


def shut_late_inits(tx: Transaction, late: Sequence[NewLateInit], at: datetime) -> None:
    """Shut the gates of inits that were not approved in time; no job has left that could be taken back."""
    new = [_LateInit(one.batch_id, at, at, one.reason, _shown(one.start)) for one in late]
    alike = {"kind": GateKind.LATE, "reach": Door.START, "shut_by": "scheduler"}
    if new:
        tx.execute(insert_each(tx, gates, new, alike))


@record
class LateInit:
    """A shut gate of an init that was not approved in time, the T that it stands for, and its batch as it is now."""

    id: int
    batch_id: int
    shown_json: str
    batch_start_time: datetime | None
    status: BatchStatus

    @property
    def is_over(self) -> bool:
        """Whether the batch has another T since, or waits for no init."""
        is_moved = self.shown_json != _shown(self.batch_start_time)
        return is_moved or self.status is not BatchStatus.INIT_DISPATCHED


def late_inits(tx: Transaction) -> list[LateInit]:
    """Return the shut gates of inits that were not approved in time."""
    query = select(gates.c.id, gates.c.batch_id, gates.c.shown_json, batches.c.batch_start_time, batches.c.status)
    its_batch = query.join(batches, batches.c.id == gates.c.batch_id)
    return rows_by_id(tx, LateInit, its_batch.where(*_OF_LATE_INIT, gates.c.opened_at.is_(None)))


def _shown(start: datetime | None) -> str:
    return orjson.dumps({"start": start}).decode()


def inits_let_in_late(tx: Transaction, batches: Collection[NarrowBatch]) -> set[int]:
    """Return the batches whose init a person let begin although it was late, with the T that they have now."""
    if not batches:
        return set()
    starts = {batch.id: _shown(batch.batch_start_time) for batch in batches}
    opened = tx.rows(lambda *row: row, _let_in_late(tx, starts))
    return {batch_id for batch_id, shown in opened if starts.get(batch_id) == shown}


@prepared
def _let_in_late(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    opened = (among(draft, gates.c.batch_id, batch_ids), *_OF_LATE_INIT, *OPENED_BY_PEOPLE)
    return select(gates.c.batch_id, gates.c.shown_json).where(*opened)


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
