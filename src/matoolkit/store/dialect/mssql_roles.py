"""Roles of SQL Server, and the users of Entra that are their members."""

from collections.abc import Iterator, Sequence

from matoolkit.store.dialect.questions import Rights

# In the schema of the data tables it may make, change and drop tables; with the right to make tables alone it may not.
_MAKER = "ALTER, SELECT, INSERT, UPDATE"
_READER = "SELECT"
_DEPLOYER = ("db_ddladmin", "db_datareader", "db_datawriter")


def mssql_roles(rights: Sequence[Rights], schema: str) -> str:
    """Write the script: first roles and users, then what they may do to tables, if these are there."""
    granted = [line for one in rights for line in _granted(one, schema)]
    return "\n".join(
        [
            "-- Run this as an Entra administrator of the server, in the state database. It is harmless to repeat.",
            *(line for one in rights for line in _made(one)),
            "-- The rest needs the tables: run it again after each `matoolkit db upgrade`.",
            "IF OBJECT_ID(N'dbo.alembic_version') IS NOT NULL",
            "BEGIN",
            *(f"    {line}" for line in granted),
            *(f"    {line}" for line in _granted_on_old(rights)),
            "END;",
        ]
    )


def _made(one: Rights) -> Iterator[str]:
    if not one.deploys:
        yield f"IF DATABASE_PRINCIPAL_ID({_text(one.role)}) IS NULL CREATE ROLE {_name(one.role)};"
    if one.identity is None:
        return
    user = _name(one.identity)
    yield f"IF DATABASE_PRINCIPAL_ID({_text(one.identity)}) IS NULL CREATE USER {user} FROM EXTERNAL PROVIDER;"
    for role in _DEPLOYER if one.deploys else (one.role,):
        yield f"ALTER ROLE {_name(role)} ADD MEMBER {user};"


def _granted(one: Rights, schema: str) -> Iterator[str]:
    if one.deploys:
        return
    role = _name(one.role)
    yield f"GRANT SELECT ON OBJECT::dbo.alembic_version TO {role};"
    for table, verbs in one.tables.items():
        yield f"GRANT {', '.join(verbs)} ON OBJECT::dbo.{_name(table)} TO {role};"
    if one.makes_data_tables:
        yield f"GRANT CREATE TABLE TO {role};"
        yield f"GRANT {_MAKER} ON SCHEMA::{_name(schema)} TO {role};"
    if one.reads_data_tables:
        yield f"GRANT {_READER} ON SCHEMA::{_name(schema)} TO {role};"


def _granted_on_old(rights: Sequence[Rights]) -> Iterator[str]:
    """Grant the same on data tables of earlier releases, which are beside the others."""
    verbs = [(one.role, _MAKER if one.makes_data_tables else _READER) for one in rights if one.uses_data_tables]
    granted = " + ".join(
        f"N'GRANT {verbs} ON OBJECT::dbo.' + QUOTENAME(data_table_name) + N' TO {_name(role)};'"
        for role, verbs in verbs
    )
    yield "DECLARE @old NVARCHAR(MAX) = N'';"
    yield f"SELECT @old = @old + {granted}"
    yield "FROM dbo.runbooks"
    yield "WHERE data_table_schema IS NULL AND OBJECT_ID(N'dbo.' + QUOTENAME(data_table_name)) IS NOT NULL;"
    yield "EXEC sp_executesql @old;"


def _name(name: str) -> str:
    return f"[{name.replace(']', ']]')}]"


def _text(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"N'{escaped}'"
