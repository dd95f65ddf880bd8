"""Runbooks: versions, automation, ticks, data tables, the catalogue."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, FoldedKey, Instant, is_one_of, only_where

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    _create_runbooks()
    _create_runbook_automation_settings()
    _create_runbook_ticks()
    _create_data_table_columns()
    _create_worker_functions()


def _create_runbooks() -> None:
    op.create_table(
        "runbooks",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("name", sa.Unicode(100), nullable=False),
        sa.Column("name_key", FoldedKey, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("yaml_content", sa.UnicodeText(), nullable=False),
        sa.Column("content_hash", sa.Unicode(64), nullable=False),
        sa.Column("data_table_name", sa.Unicode(63), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("overdue_behavior", sa.Unicode(20), nullable=False),
        sa.Column("ignore_overdue_applied", sa.Boolean(), nullable=False),
        sa.Column("rerun_init", sa.Boolean(), nullable=False),
        sa.Column("published_by", sa.Unicode(200), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("last_error", sa.UnicodeText()),
        sa.Column("last_error_at", Instant()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runbooks")),
        sa.CheckConstraint(is_one_of("overdue_behavior", "rerun", "ignore"), name=op.f("ck_runbooks_overdue_behavior")),
        sa.UniqueConstraint("data_table_name", name=op.f("uq_runbooks_data_table_name")),
        sa.UniqueConstraint("name_key", "version", name=op.f("uq_runbooks_name_key_version")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_runbooks_active", "runbooks", ["name_key"], unique=True, **only_where(sa.column("is_active") == sa.true())
    )


def _create_runbook_automation_settings() -> None:
    op.create_table(
        "runbook_automation_settings",
        sa.Column("runbook_key", FoldedKey, nullable=False),
        sa.Column("runbook_name", sa.Unicode(100), nullable=False),
        sa.Column("automation_enabled", sa.Boolean(), nullable=False),
        sa.Column("enabled_at", Instant()),
        sa.Column("enabled_by", sa.Unicode(200)),
        sa.Column("disabled_at", Instant()),
        sa.Column("disabled_by", sa.Unicode(200)),
        sa.PrimaryKeyConstraint("runbook_key", name=op.f("pk_runbook_automation_settings")),
    )


def _create_runbook_ticks() -> None:
    op.create_table(
        "runbook_ticks",
        sa.Column("runbook_key", FoldedKey, nullable=False),
        sa.Column("runbook_name", sa.Unicode(100), nullable=False),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("started_at", Instant(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=False),
        sa.Column("queried", sa.Boolean(), nullable=False),
        sa.Column("rows_read", sa.Integer(), nullable=False),
        sa.Column("rows_set_aside", sa.Integer(), nullable=False),
        sa.Column("rows_ignored", sa.Integer(), nullable=False),
        sa.Column("batches_created", sa.Integer(), nullable=False),
        sa.Column("batches_rescheduled", sa.Integer(), nullable=False),
        sa.Column("batches_held", sa.Integer(), nullable=False),
        sa.Column("members_added", sa.Integer(), nullable=False),
        sa.Column("members_removed", sa.Integer(), nullable=False),
        sa.Column("members_moved", sa.Integer(), nullable=False),
        sa.Column("members_returned", sa.Integer(), nullable=False),
        sa.Column("members_refreshed", sa.Integer(), nullable=False),
        sa.Column("phases_dispatched", sa.Integer(), nullable=False),
        sa.Column("set_aside_json", sa.UnicodeText(), nullable=False),
        sa.Column("remarks_json", sa.UnicodeText(), nullable=False),
        sa.PrimaryKeyConstraint("runbook_key", name=op.f("pk_runbook_ticks")),
    )


def _create_data_table_columns() -> None:
    op.create_table(
        "data_table_columns",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("table_name", sa.Unicode(63), nullable=False),
        sa.Column("source_name", sa.UnicodeText(), nullable=False),
        sa.Column("column_name", sa.Unicode(63), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_table_columns")),
        sa.UniqueConstraint("table_name", "column_name", name=op.f("uq_data_table_columns_table_name_column_name")),
        sqlite_autoincrement=True,
    )


def _create_worker_functions() -> None:
    op.create_table(
        "worker_functions",
        sa.Column("worker_id", sa.Unicode(100), nullable=False),
        sa.Column("function_name", sa.Unicode(200), nullable=False),
        sa.Column("parameters_json", sa.UnicodeText(), nullable=False),
        sa.Column("announced_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("worker_id", "function_name", name=op.f("pk_worker_functions")),
    )
    op.create_index("ix_worker_functions_function_name", "worker_functions", ["function_name"])
