"""Members that a person undid, and people whom a person keeps out (rules U2 and U3)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, FoldedKey, Instant

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the mark of an undone member, and the table of exclusions; nobody was undone or excluded before."""
    op.add_column("batch_members", sa.Column("undone_at", Instant()))
    op.add_column("batch_members", sa.Column("undo_version", sa.Integer()))
    op.create_table(
        "member_exclusions",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("runbook_key", FoldedKey, nullable=False),
        sa.Column("member_key_fold", FoldedKey, nullable=False),
        sa.Column("runbook_name", sa.Unicode(100), nullable=False),
        sa.Column("member_key", sa.Unicode(400), nullable=False),
        sa.Column("excluded_at", Instant(), nullable=False),
        sa.Column("excluded_by", sa.Unicode(200), nullable=False),
        sa.Column("reason", sa.UnicodeText(), nullable=False),
        sa.Column("included_at", Instant()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_member_exclusions")),
        sa.UniqueConstraint(
            "runbook_key", "member_key_fold", name=op.f("uq_member_exclusions_runbook_key_member_key_fold")
        ),
        sqlite_autoincrement=True,
    )
