"""When a member was seen off after it left, apart from when it caught up with its batch (rules O10 and O16)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import Instant, only_where

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column and its index; members that left have had that time in `caught_up_at` until now."""
    op.add_column("batch_members", sa.Column("seen_off_at", Instant()))
    members = sa.table("batch_members", sa.column("status"), sa.column("caught_up_at"), sa.column("seen_off_at"))
    removed = sa.update(members).where(members.c.status == sa.literal_column("'removed'"))
    # Nobody knows any more when they had caught up: their removal has overwritten it.
    op.execute(removed.values(seen_off_at=members.c.caught_up_at, caught_up_at=sa.null()))
    op.create_index(
        "ix_batch_members_leaving",
        "batch_members",
        ["id"],
        **only_where(sa.text("removed_at IS NOT NULL AND seen_off_at IS NULL")),
    )
