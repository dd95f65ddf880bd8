"""Members and steps that are counted as they change, and a number that rises with every change of a batch (rule U1)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, is_one_of

revision = "0015"
down_revision = "0014"

_STEP_STATES = ("pending", "dispatched", "succeeded", "failed", "polling", "poll_timeout", "cancelled")
_NUMBERED = """
UPDATE batch_members SET counted_as =
    CASE WHEN caught_up_at IS NOT NULL THEN 1 ELSE 0 END
    + CASE WHEN EXISTS (
            SELECT 1 FROM rollback_executions WHERE rollback_executions.batch_member_id = batch_members.id
            AND rollback_executions.status IN ('pending', 'dispatched', 'polling')
        ) OR (
            status = 'removed' AND removed_at IS NOT NULL AND seen_off_at IS NULL AND remove_reason NOT IN (
                'excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'
            )
        ) THEN 2 ELSE 0 END
    + CASE WHEN undone_at IS NOT NULL THEN 4 ELSE 0 END
    + CASE status WHEN 'failed' THEN 8 WHEN 'removed' THEN 16 ELSE 0 END
"""
_COUNTED = (
    """
INSERT INTO step_counts (phase_execution_id, step_index, status, steps)
SELECT phase_execution_id, step_index, status, COUNT(*) FROM step_executions
GROUP BY phase_execution_id, step_index, status
""",
    """
INSERT INTO member_counts (batch_id, counted_as, members)
SELECT batch_id, counted_as, COUNT(*) FROM batch_members GROUP BY batch_id, counted_as
""",
    "INSERT INTO batch_changes (batch_id, changes) SELECT id, 1 FROM batches",
)


def upgrade() -> None:
    """Add the tables, and count what is there."""
    op.add_column("batch_members", sa.Column("counted_as", sa.Integer()))
    op.create_table(
        "step_counts",
        sa.Column("phase_execution_id", BigId, autoincrement=False, nullable=False),
        sa.Column("step_index", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("status", sa.Unicode(20), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["phase_execution_id"], ["phase_executions.id"], name=op.f("fk_step_counts_phase_execution_id")
        ),
        sa.PrimaryKeyConstraint("phase_execution_id", "step_index", "status", name=op.f("pk_step_counts")),
        sa.CheckConstraint(is_one_of("status", *_STEP_STATES), name=op.f("ck_step_counts_status")),
    )
    op.create_table(
        "member_counts",
        sa.Column("batch_id", BigId, autoincrement=False, nullable=False),
        sa.Column("counted_as", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("members", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_member_counts_batch_id")),
        sa.PrimaryKeyConstraint("batch_id", "counted_as", name=op.f("pk_member_counts")),
    )
    op.create_table(
        "batch_changes",
        sa.Column("batch_id", BigId, autoincrement=False, nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_batch_changes_batch_id")),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_batch_changes")),
    )
    for statement in (_NUMBERED, *_COUNTED):
        op.execute(sa.text(statement))
