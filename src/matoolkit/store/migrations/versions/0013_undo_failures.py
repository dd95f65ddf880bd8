"""Failed steps of rollbacks and removals are found by an index (rule O9)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import only_where

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the index, over the few rows that people look for."""
    op.create_index(
        "ix_rollback_executions_failed",
        "rollback_executions",
        ["id"],
        **only_where(sa.text("status IN ('failed', 'poll_timeout')")),
    )
