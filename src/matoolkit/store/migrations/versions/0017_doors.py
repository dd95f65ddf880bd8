"""What gates of phases rest on: sign-offs, pilots, places, limits of time (rules C1 to C5, K2, K5 and S1 to S6)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, Instant, is_one_of, only_where

revision = "0017"
down_revision = "0016"

_COLUMNS: dict[str, list[sa.Column[object]]] = {
    "gates": [sa.Column("phase_execution_id", BigId), sa.Column("allowed", sa.Integer())],
    "batches": [sa.Column("wake_count", sa.Integer()), sa.Column("join_count", sa.Integer())],
    "batch_members": [
        sa.Column("is_pilot", sa.Boolean()),
        sa.Column("joined_no", sa.Integer()),
        sa.Column("refreshed_at", Instant()),
    ],
    "phase_executions": [
        sa.Column("member_count", sa.Integer()),
        sa.Column("pilot_done_at", Instant()),
        sa.Column("late_after", Instant()),
        sa.Column("woken_at", Instant()),
    ],
    "step_executions": [sa.Column("holds_place", sa.Boolean())],
}
# Until now the number of the gate stood where the count stands now.
_WOKEN = "UPDATE batches SET wake_count = (SELECT MAX(id) FROM gates)"


def upgrade() -> None:
    """Add the columns, and the table of sign-offs; nobody had signed before."""
    for table, columns in _COLUMNS.items():
        for column in columns:
            op.add_column(table, column)
    op.execute(_WOKEN)
    holds_place, is_pilot = (sa.column(name) == sa.true() for name in ("holds_place", "is_pilot"))
    op.create_index(
        "ix_step_executions_places",
        "step_executions",
        ["phase_execution_id", "batch_member_id"],
        **only_where(holds_place),
    )
    of_phase = sa.column("phase_execution_id").is_not(None)
    op.create_index("ix_gates_phase", "gates", ["phase_execution_id"], **only_where(of_phase))
    op.create_index("ix_batch_members_pilots", "batch_members", ["batch_id", "id"], **only_where(is_pilot))
    op.create_table(
        "approvals",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("batch_id", BigId, nullable=False),
        sa.Column("subject", sa.Unicode(20), nullable=False),
        sa.Column("phase_execution_id", BigId),
        sa.Column("hold_key", sa.Unicode(64)),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("batch_start_time", Instant()),
        sa.Column("digest", sa.Unicode(100), nullable=False),
        sa.Column("covered_after", sa.Integer()),
        sa.Column("covered_no", sa.Integer(), nullable=False),
        sa.Column("members", sa.Integer(), nullable=False),
        sa.Column("decision", sa.Unicode(20), nullable=False),
        sa.Column("signed_by", sa.Unicode(200), nullable=False),
        sa.Column("roles", sa.Unicode(200), nullable=False),
        sa.Column("is_signed_in", sa.Boolean(), nullable=False),
        sa.Column("signed_at", Instant(), nullable=False),
        sa.Column("reason", sa.UnicodeText()),
        sa.Column("withdrawn_at", Instant()),
        sa.Column("used_at", Instant()),
        sa.CheckConstraint(is_one_of("subject", "hold", "init", "phase"), name=op.f("ck_approvals_subject")),
        sa.CheckConstraint(is_one_of("decision", "approve", "reject"), name=op.f("ck_approvals_decision")),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_approvals_batch_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approvals")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_approvals_batch_id", "approvals", ["batch_id"])
