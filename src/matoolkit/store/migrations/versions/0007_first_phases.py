"""The phase with which a retried member begins (rule O14)."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns; nobody who is there leaves out a phase."""
    op.add_column("batch_members", sa.Column("first_phase_version", sa.Integer()))
    op.add_column("batch_members", sa.Column("first_phase_place", sa.Integer()))
