"""A schema for data tables, so that the scheduler may create tables there and nowhere else (rule D2)."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_CREATE = {
    "postgresql": "CREATE SCHEMA IF NOT EXISTS matoolkit_data",
    # It must be the only statement of its batch.
    "mssql": "IF SCHEMA_ID(N'matoolkit_data') IS NULL EXEC(N'CREATE SCHEMA matoolkit_data')",
}
# The data table of a version is made when its source is first read. It is made in the schema if it is not there yet.
_NOT_THERE_YET = {
    "postgresql": "to_regclass(quote_ident(data_table_name)) IS NULL",
    "mssql": "OBJECT_ID(QUOTENAME(data_table_name)) IS NULL",
}


def upgrade() -> None:
    """Create the schema where the database has any; tables that are there already stay where they are."""
    op.add_column("runbooks", sa.Column("data_table_schema", sa.Unicode(63)))
    name = op.get_context().dialect.name
    if name in _CREATE:
        op.execute(_CREATE[name])
        op.execute(f"UPDATE runbooks SET data_table_schema = 'matoolkit_data' WHERE {_NOT_THERE_YET[name]}")  # noqa: S608
