"""Tables about people and processes: audit log, idempotency keys, leases, and how fast time runs."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Unicode, UnicodeText

from matoolkit.store.dialect.types import BigId, Instant, id_column
from matoolkit.store.schema.metadata import metadata

audit_log = Table(
    "audit_log",
    metadata,
    id_column("Order in which changes were made."),
    Column("at", Instant, nullable=False, doc="When."),
    Column("actor", Unicode(200), nullable=False, doc="Who."),
    Column("action", Unicode(100), nullable=False, doc="What was done, such as `batch.cancel`."),
    Column("subject_type", Unicode(50), nullable=False, doc="Kind of thing that was changed."),
    Column("subject_id", Unicode(200), nullable=False, doc="Which one."),
    Column("runbook_name", Unicode(100), doc="The runbook it belongs to."),
    Column("batch_id", BigId, doc="The batch it belongs to."),
    Column("before_json", UnicodeText, doc="What it was before, JSON."),
    Column("after_json", UnicodeText, doc="What it is now, JSON."),
    Column("reason", UnicodeText, doc="Why, in the person's words."),
    Index("ix_audit_log_subject", "subject_type", "subject_id", "id"),
    Index("ix_audit_log_batch_id", "batch_id", "id"),
    Index("ix_audit_log_runbook_name", "runbook_name", "id"),
    sqlite_autoincrement=True,
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("actor", Unicode(200), primary_key=True, doc="Who asked."),
    Column("idempotency_key", Unicode(200), primary_key=True, doc="The key that came with the request."),
    Column("request_hash", Unicode(64), nullable=False, doc="Hash of the request, to tell misuse of a key."),
    Column("response_status", Integer, doc="HTTP status that was answered; empty while at work or broken off."),
    Column("response_json", UnicodeText, doc="What was answered, or how far it has come, JSON."),
    Column("created_at", Instant, nullable=False, doc="When the request came."),
    Column("expires_at", Instant, nullable=False, doc="When the key is forgotten."),
    Index("ix_idempotency_keys_expires_at", "expires_at"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Unicode(100), primary_key=True, doc="The work that only one process may do."),
    Column("holder", Unicode(200), nullable=False, doc="The process that does it."),
    Column("token", BigInteger, nullable=False, doc="One more at every change of holder, for fencing."),
    Column("acquired_at", Instant, nullable=False, doc="Since when, by the database's clock."),
    Column("expires_at", Instant, nullable=False, doc="Until when unless renewed, by the database's clock."),
)

pace = Table(
    "pace",
    metadata,
    Column("name", Unicode(100), primary_key=True, doc="Always `up`."),
    Column("speed", Integer, nullable=False, doc="How many times as fast as the clock its calendar runs; mostly 1."),
    Column("origin", Instant, nullable=False, doc="When `matoolkit up` first began here; the calendar begins there."),
)
