"""Steps that have ended are found by their time (rule U6)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import only_where

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the index; it holds all that is counted."""
    op.create_index(
        "ix_step_executions_ended",
        "step_executions",
        ["worker_id", "status", "completed_at"],
        **only_where(sa.text("completed_at IS NOT NULL")),
    )
