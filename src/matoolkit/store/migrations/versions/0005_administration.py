"""Audit log, idempotency keys, leases."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, Instant

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the tables."""
    _create_audit_log()
    _create_idempotency_keys()
    _create_leases()


def _create_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("actor", sa.Unicode(200), nullable=False),
        sa.Column("action", sa.Unicode(100), nullable=False),
        sa.Column("subject_type", sa.Unicode(50), nullable=False),
        sa.Column("subject_id", sa.Unicode(200), nullable=False),
        sa.Column("runbook_name", sa.Unicode(100)),
        sa.Column("batch_id", BigId),
        sa.Column("before_json", sa.UnicodeText()),
        sa.Column("after_json", sa.UnicodeText()),
        sa.Column("reason", sa.UnicodeText()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_log_batch_id", "audit_log", ["batch_id", "id"])
    op.create_index("ix_audit_log_runbook_name", "audit_log", ["runbook_name", "id"])
    op.create_index("ix_audit_log_subject", "audit_log", ["subject_type", "subject_id", "id"])


def _create_idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("actor", sa.Unicode(200), nullable=False),
        sa.Column("idempotency_key", sa.Unicode(200), nullable=False),
        sa.Column("request_hash", sa.Unicode(64), nullable=False),
        sa.Column("response_status", sa.Integer()),
        sa.Column("response_json", sa.UnicodeText()),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("actor", "idempotency_key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index("ix_idempotency_keys_expires_at", "idempotency_keys", ["expires_at"])


def _create_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.Unicode(100), nullable=False),
        sa.Column("holder", sa.Unicode(200), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("acquired_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
