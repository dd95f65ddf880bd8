"""The audit log: every change by a person (rule A5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from matoolkit.store.schema import audit_log
from matoolkit.store.sql.statements import insert_each, select_records
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewAuditEntry:
    """Something that a person changed."""

    actor: str
    action: str
    subject_type: str
    subject_id: str
    runbook_name: str | None = None
    batch_id: int | None = None
    before_json: str | None = None
    after_json: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something that a person changed, as it is stored."""

    id: int
    at: datetime
    actor: str
    action: str
    subject_type: str
    subject_id: str
    runbook_name: str | None
    batch_id: int | None
    before_json: str | None
    after_json: str | None
    reason: str | None


def record_changes(tx: Transaction, entries: Sequence[NewAuditEntry], at: datetime) -> list[int]:
    """Record what a person changed, in the transaction that changes it."""
    if not entries:
        return []
    return sorted(tx.values(insert_each(tx, audit_log, entries, {"at": at}, returning=(audit_log.c.id,))))


def audit_page(
    tx: Transaction,
    *,
    subject_type: str | None = None,
    subject_id: str | None = None,
    batch_id: int | None = None,
    runbook_name: str | None = None,
    actor: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[AuditEntry]:
    """Return one page of the log, newest first, from before the last id of the page before."""
    wanted = {
        "subject_type": subject_type,
        "subject_id": subject_id,
        "batch_id": batch_id,
        "runbook_name": runbook_name,
        "actor": actor,
    }
    query = select_records(AuditEntry, audit_log).where(
        *(audit_log.c[name] == value for name, value in wanted.items() if value is not None)
    )
    if before is not None:
        query = query.where(audit_log.c.id < before)
    return tx.rows(AuditEntry, query.order_by(audit_log.c.id.desc()).limit(limit))
