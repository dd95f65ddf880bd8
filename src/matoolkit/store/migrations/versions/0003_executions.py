"""Steps of members, of init, of rollbacks and removals."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, Instant, is_one_of, only_where

revision = "0003"
down_revision = "0002"


def _work_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("step_name", sa.Unicode(100), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Unicode(100), nullable=False),
        sa.Column("function_name", sa.UnicodeText()),
        sa.Column("params_json", sa.UnicodeText()),
        sa.Column("status", sa.Unicode(20), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Unicode(100)),
        sa.Column("result_json", sa.UnicodeText()),
        sa.Column("error_type", sa.UnicodeText()),
        sa.Column("error_message", sa.UnicodeText()),
        sa.Column("missing_outputs_json", sa.UnicodeText()),
        sa.Column("dispatched_at", Instant()),
        sa.Column("completed_at", Instant()),
        sa.Column("timeout_sec", sa.Integer(), nullable=False),
        sa.Column("answered_at", Instant()),
        sa.Column("lost_at", Instant()),
        sa.Column("is_poll_step", sa.Boolean(), nullable=False),
        sa.Column("poll_interval_sec", sa.Integer()),
        sa.Column("poll_timeout_sec", sa.Integer()),
        sa.Column("poll_started_at", Instant()),
        sa.Column("last_polled_at", Instant()),
        sa.Column("poll_due_at", Instant()),
        sa.Column("poll_count", sa.Integer(), nullable=False),
        sa.Column("on_failure", sa.Unicode(100)),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("max_retries", sa.Integer(), nullable=False),
        sa.Column("retry_interval_sec", sa.Integer()),
        sa.Column("retry_after", Instant()),
        sa.Column("throttled_since", Instant()),
        sa.Column("created_at", Instant(), nullable=False),
    ]


def upgrade() -> None:
    """Create the tables."""
    _create_step_executions()
    _index_step_executions()
    _create_init_executions()
    _index_init_executions()
    _create_rollback_executions()
    _index_rollback_executions()


def _create_step_executions() -> None:
    op.create_table(
        "step_executions",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("batch_id", BigId, nullable=False),
        sa.Column("phase_execution_id", BigId, nullable=False),
        sa.Column("batch_member_id", BigId, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        *_work_columns(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step_executions")),
        sa.CheckConstraint(
            is_one_of("status", "pending", "dispatched", "succeeded", "failed", "polling", "poll_timeout", "cancelled"),
            name=op.f("ck_step_executions_status"),
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_step_executions_batch_id")),
        sa.ForeignKeyConstraint(
            ["batch_member_id"], ["batch_members.id"], name=op.f("fk_step_executions_batch_member_id")
        ),
        sa.ForeignKeyConstraint(
            ["phase_execution_id"], ["phase_executions.id"], name=op.f("fk_step_executions_phase_execution_id")
        ),
        sa.UniqueConstraint(
            "batch_member_id", "epoch", "phase_execution_id", "step_index", name=op.f("uq_step_executions_member_step")
        ),
        sqlite_autoincrement=True,
    )


def _index_step_executions() -> None:
    op.create_index("ix_step_executions_batch_id", "step_executions", ["batch_id", "id"])
    op.create_index(
        "ix_step_executions_lost", "step_executions", ["lost_at", "id"], **only_where(sa.text("lost_at IS NOT NULL"))
    )
    op.create_index("ix_step_executions_phase_status", "step_executions", ["phase_execution_id", "status", "id"])
    op.create_index(
        "ix_step_executions_poll", "step_executions", ["poll_due_at", "id"], **only_where(sa.text("status = 'polling'"))
    )
    op.create_index(
        "ix_step_executions_retry",
        "step_executions",
        ["retry_after", "id"],
        **only_where(sa.text("retry_after IS NOT NULL")),
    )


def _create_init_executions() -> None:
    op.create_table(
        "init_executions",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("batch_id", BigId, nullable=False),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("init_count", sa.Integer(), nullable=False),
        *_work_columns(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_init_executions")),
        sa.CheckConstraint(
            is_one_of("status", "pending", "dispatched", "succeeded", "failed", "polling", "poll_timeout", "cancelled"),
            name=op.f("ck_init_executions_status"),
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_init_executions_batch_id")),
        sa.UniqueConstraint(
            "batch_id",
            "runbook_version",
            "step_index",
            name=op.f("uq_init_executions_batch_id_runbook_version_step_index"),
        ),
        sqlite_autoincrement=True,
    )


def _index_init_executions() -> None:
    op.create_index(
        "ix_init_executions_lost", "init_executions", ["lost_at", "id"], **only_where(sa.text("lost_at IS NOT NULL"))
    )
    op.create_index(
        "ix_init_executions_poll", "init_executions", ["poll_due_at", "id"], **only_where(sa.text("status = 'polling'"))
    )
    op.create_index(
        "ix_init_executions_retry",
        "init_executions",
        ["retry_after", "id"],
        **only_where(sa.text("retry_after IS NOT NULL")),
    )


def _create_rollback_executions() -> None:
    op.create_table(
        "rollback_executions",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("batch_id", BigId, nullable=False),
        sa.Column("batch_member_id", BigId),
        sa.Column("epoch", sa.Integer()),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("cause", sa.Unicode(20), nullable=False),
        sa.Column("step_execution_id", BigId),
        sa.Column("init_execution_id", BigId),
        sa.Column("sequence_name", sa.Unicode(100), nullable=False),
        sa.Column("sequence_key", sa.Unicode(100), nullable=False),
        *_work_columns(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollback_executions")),
        sa.CheckConstraint(
            is_one_of("cause", "step_failed", "init_failed", "member_removed"),
            name=op.f("ck_rollback_executions_cause"),
        ),
        sa.CheckConstraint(
            is_one_of("status", "pending", "dispatched", "succeeded", "failed", "polling", "poll_timeout", "cancelled"),
            name=op.f("ck_rollback_executions_status"),
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_rollback_executions_batch_id")),
        sa.ForeignKeyConstraint(
            ["batch_member_id"], ["batch_members.id"], name=op.f("fk_rollback_executions_batch_member_id")
        ),
        sa.ForeignKeyConstraint(
            ["init_execution_id"], ["init_executions.id"], name=op.f("fk_rollback_executions_init_execution_id")
        ),
        sa.ForeignKeyConstraint(
            ["step_execution_id"], ["step_executions.id"], name=op.f("fk_rollback_executions_step_execution_id")
        ),
        sa.UniqueConstraint("sequence_key", "step_index", name=op.f("uq_rollback_executions_sequence_key_step_index")),
        sqlite_autoincrement=True,
    )


def _index_rollback_executions() -> None:
    op.create_index("ix_rollback_executions_batch_status", "rollback_executions", ["batch_id", "status", "id"])
    op.create_index(
        "ix_rollback_executions_lost",
        "rollback_executions",
        ["lost_at", "id"],
        **only_where(sa.text("lost_at IS NOT NULL")),
    )
    op.create_index("ix_rollback_executions_member", "rollback_executions", ["batch_member_id", "status"])
    op.create_index(
        "ix_rollback_executions_poll",
        "rollback_executions",
        ["poll_due_at", "id"],
        **only_where(sa.text("status = 'polling'")),
    )
    op.create_index(
        "ix_rollback_executions_retry",
        "rollback_executions",
        ["retry_after", "id"],
        **only_where(sa.text("retry_after IS NOT NULL")),
    )
