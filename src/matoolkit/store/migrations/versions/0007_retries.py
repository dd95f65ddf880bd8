"""What retries need: the phase with which a member begins, and what is known of the last reading (rule O14)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, FoldedKey, Instant

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add what is missing; no member leaves out a phase, and no reading has the types of its cells."""
    op.add_column("batch_members", sa.Column("first_phase_version", sa.Integer()))
    op.add_column("batch_members", sa.Column("first_phase_place", sa.Integer()))
    op.add_column("runbooks", sa.Column("read_at", Instant()))
    op.create_table(
        "set_aside_keys",
        sa.Column("runbook_id", BigId, nullable=False),
        sa.Column("member_key_fold", FoldedKey, nullable=False),
        sa.ForeignKeyConstraint(["runbook_id"], ["runbooks.id"], name=op.f("fk_set_aside_keys_runbook_id_runbooks")),
        sa.PrimaryKeyConstraint("runbook_id", "member_key_fold", name=op.f("pk_set_aside_keys")),
    )
