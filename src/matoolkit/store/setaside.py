"""The keys of rows that the last reading of a source set aside (rules T3 and O14)."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, select

from matoolkit.store.schema import set_aside_keys
from matoolkit.store.sql.statements import among, insert_each
from matoolkit.store.sql.transaction import Transaction

_KEY = ("runbook_id", "member_key_fold")


@dataclass(frozen=True, slots=True)
class _SetAside:
    member_key_fold: str


def keys_set_aside(tx: Transaction, runbook_id: int, folds: Collection[str] | None = None) -> set[str]:
    """Return the folded keys that the last reading of a version set aside: all, or those among some."""
    query = select(set_aside_keys.c.member_key_fold).where(set_aside_keys.c.runbook_id == runbook_id)
    if folds is not None:
        query = query.where(among(tx, set_aside_keys.c.member_key_fold, folds))
    return set(tx.values(query))


def set_keys_aside(tx: Transaction, runbook_id: int, folds: Collection[str]) -> None:
    """Remember keys that a reading sets aside and the one before did not."""
    if folds:
        rows = [_SetAside(fold) for fold in sorted(folds)]
        tx.execute(insert_each(tx, set_aside_keys, rows, {"runbook_id": runbook_id}, _KEY))


def forget_set_aside(tx: Transaction, runbook_id: int, folds: Collection[str]) -> None:
    """Forget keys that a reading no longer sets aside."""
    if folds:
        mine = (set_aside_keys.c.runbook_id == runbook_id, among(tx, set_aside_keys.c.member_key_fold, folds))
        tx.execute(delete(set_aside_keys).where(*mine))
