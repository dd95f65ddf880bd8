"""How fast the calendar of a database runs, if it is not the clock's own pace (rule U5)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import Instant

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the table; a database without a row keeps the time of its clock."""
    op.create_table(
        "pace",
        sa.Column("name", sa.Unicode(100), nullable=False),
        sa.Column("speed", sa.Integer(), nullable=False),
        sa.Column("origin", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
