"""The fingerprint of a failure, by which failures are grouped; and open steps counted by member from an index (U1)."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_INDEX = "ix_step_executions_phase_status"


def upgrade() -> None:
    """Add the column, without a value for old failures, and let the index say whose step each is.

    The fingerprint is made by patterns that not every database has, so failures of before stay grouped by their text.
    """
    for table in ("step_executions", "init_executions", "rollback_executions"):
        op.add_column(table, sa.Column("error_fingerprint", sa.Unicode(32)))
    op.drop_index(_INDEX, "step_executions")
    op.create_index(_INDEX, "step_executions", ["phase_execution_id", "status", "id", "batch_member_id"])
