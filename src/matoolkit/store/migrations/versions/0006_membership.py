"""What membership remembers: times that members had, removals that were approved, whom people let in."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import FoldedKey, Instant

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add what is remembered; members have the time of their batch until the source says otherwise."""
    op.add_column("batches", sa.Column("removals_approved_at", Instant()))
    op.add_column("batch_members", sa.Column("source_time", Instant()))
    _remember_times()
    op.create_table(
        "member_inclusions",
        sa.Column("runbook_key", FoldedKey, nullable=False),
        sa.Column("member_key_fold", FoldedKey, nullable=False),
        sa.Column("runbook_name", sa.Unicode(100), nullable=False),
        sa.Column("member_key", sa.Unicode(400), nullable=False),
        sa.Column("batch_time", Instant(), nullable=False),
        sa.Column("included_at", Instant(), nullable=False),
        sa.Column("included_by", sa.Unicode(200), nullable=False),
        sa.Column("reason", sa.UnicodeText()),
        sa.Column("applied_at", Instant()),
        sa.PrimaryKeyConstraint("runbook_key", "member_key_fold", name=op.f("pk_member_inclusions")),
    )


def _remember_times() -> None:
    batches = sa.table("batches", sa.column("id"), sa.column("batch_start_time"))
    members = sa.table("batch_members", sa.column("batch_id"), sa.column("source_time"))
    start = sa.select(batches.c.batch_start_time).where(batches.c.id == members.c.batch_id).scalar_subquery()
    op.execute(sa.update(members).values(source_time=start))
