"""Sign-offs as they are stored; what they mean is in `domain/signoff.py`."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Update, select, update

from matoolkit.domain.gates import GateKind
from matoolkit.domain.signoff import Signature
from matoolkit.domain.states import SignOff, SignOffSubject
from matoolkit.store.schema import approvals, gates
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, insert_each, is_any, records_among
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


def opened_as_late(tx: Transaction, batch_ids: Collection[int]) -> set[tuple[int, int | None]]:
    """Return the phases of batches that were late and that a person let begin after all; none stands for init."""
    return set(tx.rows(lambda *row: row, _opened(tx, batch_ids))) if batch_ids else set()


@prepared
def _opened(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    return select(gates.c.batch_id, gates.c.phase_execution_id).where(
        among(draft, gates.c.batch_id, batch_ids),
        is_any(gates.c.kind, {GateKind.LATE}),
        gates.c.hold_key.is_(None),
        gates.c.opened_at.is_not(None),
    )
