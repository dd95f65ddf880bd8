"""A state that messages cause to change: entries of the audit log."""

from collections.abc import Iterable
from datetime import datetime

from matoolkit.store import Store
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
from matoolkit.store.sql.transaction import Transaction


def change(tx: Transaction, subjects: Iterable[str], at: datetime) -> None:
    record_changes(tx, [NewAuditEntry("somebody", "did", "thing", subject) for subject in subjects], at)


def changes(store: Store) -> list[str]:
    with store.reading() as tx:
        return sorted(entry.subject_id for entry in audit_page(tx, limit=100_000))
