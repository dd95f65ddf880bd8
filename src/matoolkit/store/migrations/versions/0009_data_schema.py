"""A schema for data tables, so that the scheduler may create tables there and nowhere else (rule D2)."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the schema where the database has any; tables that are there already stay where they are."""
    match op.get_context().dialect.name:
        case "postgresql":
            op.execute("CREATE SCHEMA IF NOT EXISTS matoolkit_data")
        case "mssql":
            # It must be the only statement of its batch.
            op.execute("IF SCHEMA_ID(N'matoolkit_data') IS NULL EXEC(N'CREATE SCHEMA matoolkit_data')")
    op.add_column("runbooks", sa.Column("data_table_schema", sa.Unicode(63)))
