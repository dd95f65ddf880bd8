"""Sign-offs as they are stored; what they mean is in `domain/signoff.py`."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Update, update

from matoolkit.domain.signoff import NewSignature, Signature
from matoolkit.store.schema import approvals
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, insert_each, records_among
from matoolkit.store.sql.transaction import Transaction


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
