"""Batches, their members and phases."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, FoldedKey, Instant, is_one_of, only_where

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables."""
    _create_batches()
    _create_batch_members()
    _create_phase_executions()


def _create_batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("runbook_id", BigId, nullable=False),
        sa.Column("runbook_name", sa.Unicode(100), nullable=False),
        sa.Column("batch_start_time", Instant()),
        sa.Column("status", sa.Unicode(20), nullable=False),
        sa.Column("is_manual", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.Unicode(200)),
        sa.Column("current_phase", sa.Unicode(100)),
        sa.Column("detected_at", Instant(), nullable=False),
        sa.Column("init_dispatched_at", Instant()),
        sa.Column("init_count", sa.Integer(), nullable=False),
        sa.Column("completed_at", Instant()),
        sa.Column("reopened_at", Instant()),
        sa.Column("held_at", Instant()),
        sa.Column("hold_count", sa.Integer(), nullable=False),
        sa.Column("hold_reason", sa.UnicodeText()),
        sa.Column("hold_key", sa.Unicode(64)),
        sa.Column("hold_json", sa.UnicodeText()),
        sa.Column("approved_hold_key", sa.Unicode(64)),
        sa.Column("approved_hold_by", sa.Unicode(200)),
        sa.Column("approved_hold_at", Instant()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.CheckConstraint(
            is_one_of("status", "detected", "init_dispatched", "active", "completed", "failed", "cancelled"),
            name=op.f("ck_batches_status"),
        ),
        sa.ForeignKeyConstraint(["runbook_id"], ["runbooks.id"], name=op.f("fk_batches_runbook_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_batches_runbook_id", "batches", ["runbook_id"])
    op.create_index("ix_batches_runbook_name_status", "batches", ["runbook_name", "status"])
    op.create_index("ix_batches_status", "batches", ["status", "id"])
    op.create_index(
        "ix_batches_unfinished",
        "batches",
        ["runbook_name", "id"],
        **only_where(sa.text("status IN ('active', 'detected', 'init_dispatched')")),
    )
    op.create_index(
        "uq_batches_start_time",
        "batches",
        ["runbook_name", "batch_start_time"],
        unique=True,
        **only_where(sa.column("is_manual") == sa.false()),
    )


def _create_batch_members() -> None:
    op.create_table(
        "batch_members",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("batch_id", BigId, nullable=False),
        sa.Column("member_key", sa.Unicode(400), nullable=False),
        sa.Column("member_key_fold", FoldedKey, nullable=False),
        sa.Column("status", sa.Unicode(20), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("data_json", sa.UnicodeText(), nullable=False),
        sa.Column("data_hash", sa.Unicode(32), nullable=False),
        sa.Column("worker_data_json", sa.UnicodeText(), nullable=False),
        sa.Column("added_at", Instant(), nullable=False),
        sa.Column("add_dispatched_at", Instant()),
        sa.Column("caught_up_at", Instant()),
        sa.Column("left_source_at", Instant()),
        sa.Column("removed_at", Instant()),
        sa.Column("removed_by", sa.Unicode(200)),
        sa.Column("remove_reason", sa.UnicodeText()),
        sa.Column("remove_dispatched_at", Instant()),
        sa.Column("failed_at", Instant()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch_members")),
        sa.CheckConstraint(is_one_of("status", "active", "removed", "failed"), name=op.f("ck_batch_members_status")),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_batch_members_batch_id")),
        sa.UniqueConstraint("batch_id", "member_key_fold", name=op.f("uq_batch_members_batch_id_member_key_fold")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_batch_members_batch_id", "batch_members", ["batch_id", "id"])
    op.create_index("ix_batch_members_member_key_fold", "batch_members", ["member_key_fold"])
    op.create_index("ix_batch_members_status", "batch_members", ["batch_id", "status", "id"])
    op.create_index(
        "ix_batch_members_waiting",
        "batch_members",
        ["batch_id", "status"],
        **only_where(sa.text("caught_up_at IS NULL")),
    )


def _create_phase_executions() -> None:
    op.create_table(
        "phase_executions",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("batch_id", BigId, nullable=False),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("phase_name", sa.Unicode(100), nullable=False),
        sa.Column("phase_index", sa.Integer(), nullable=False),
        sa.Column("offset_minutes", sa.Integer(), nullable=False),
        sa.Column("due_at", Instant()),
        sa.Column("status", sa.Unicode(20), nullable=False),
        sa.Column("dispatched_at", Instant()),
        sa.Column("dispatch_count", sa.Integer(), nullable=False),
        sa.Column("expanded_at", Instant()),
        sa.Column("completed_at", Instant()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_phase_executions")),
        sa.CheckConstraint(
            is_one_of("status", "pending", "dispatched", "completed", "failed", "skipped", "superseded", "cancelled"),
            name=op.f("ck_phase_executions_status"),
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_phase_executions_batch_id")),
        sa.UniqueConstraint(
            "batch_id",
            "runbook_version",
            "phase_index",
            name=op.f("uq_phase_executions_batch_id_runbook_version_phase_index"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_phase_executions_due", "phase_executions", ["due_at", "id"], **only_where(sa.text("status = 'pending'"))
    )
    op.create_index(
        "ix_phase_executions_open",
        "phase_executions",
        ["batch_id"],
        **only_where(sa.text("status IN ('dispatched', 'pending')")),
    )
    op.create_index(
        "ix_phase_executions_running", "phase_executions", ["id"], **only_where(sa.text("status = 'dispatched'"))
    )
