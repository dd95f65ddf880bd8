"""Roles of PostgreSQL, which sign in themselves: what a role makes belongs to it, and not to a group."""

from collections.abc import Iterator, Sequence

from matoolkit.store.dialect.questions import Rights


def postgresql_roles(rights: Sequence[Rights], schema: str, database: str) -> str:
    """Write the script: first the roles, then what they may do to tables, if these are there."""
    (maker,) = (_role(one) for one in rights if one.makes_data_tables)
    return "\n".join(
        [
            "-- Run this as a superuser, in the state database. It is harmless to repeat. Passwords are up to you.",
            *(line for one in rights for line in _made(one)),
            # Before version 15 everybody may make tables there.
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC;",
            *(line for one in rights for line in _allowed_before(one, database)),
            "-- The rest needs the tables: run it again after each `matoolkit db upgrade`.",
            "DO $matoolkit$",
            "DECLARE data_table text;",
            "BEGIN",
            "    IF to_regclass('alembic_version') IS NULL THEN RETURN; END IF;",
            *(f"    {line}" for one in rights for line in _granted(one, schema, maker)),
            *(f"    {line}" for line in _granted_on_old(rights)),
            "END $matoolkit$;",
        ]
    )


def _made(one: Rights) -> Iterator[str]:
    role = _role(one)
    yield f"DO $matoolkit$ BEGIN IF to_regrole({_text(role)}) IS NULL THEN CREATE ROLE {role} LOGIN; END IF;"
    yield "END $matoolkit$;"


def _allowed_before(one: Rights, database: str) -> Iterator[str]:
    role = _role(one)
    yield f"GRANT CONNECT ON DATABASE {_name(database)} TO {role};"
    yield f"GRANT USAGE ON SCHEMA public TO {role};"
    if one.deploys:
        yield f"GRANT CREATE ON DATABASE {_name(database)} TO {role};"
        yield f"GRANT CREATE ON SCHEMA public TO {role};"


def _granted(one: Rights, schema: str, maker: str) -> Iterator[str]:
    if one.deploys:
        return
    role = _role(one)
    yield f"GRANT SELECT ON alembic_version TO {role};"
    for table, verbs in one.tables.items():
        yield f"GRANT {', '.join(verbs)} ON {_name(table)} TO {role};"
        if table in one.numbered:
            yield f"GRANT USAGE ON SEQUENCE {_name(f'{table}_id_seq')} TO {role};"
    if one.makes_data_tables:
        # What it makes is its own.
        yield f"GRANT USAGE, CREATE ON SCHEMA {_name(schema)} TO {role};"
    if one.reads_data_tables:
        yield f"GRANT USAGE ON SCHEMA {_name(schema)} TO {role};"
        yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {_name(schema)} TO {role};"
        yield f"ALTER DEFAULT PRIVILEGES FOR ROLE {maker} IN SCHEMA {_name(schema)} GRANT SELECT ON TABLES TO {role};"


def _granted_on_old(rights: Sequence[Rights]) -> Iterator[str]:
    """Grant the same on data tables of earlier releases, which are beside the others; only an owner changes a table."""
    yield "FOR data_table IN SELECT data_table_name FROM runbooks WHERE data_table_schema IS NULL"
    yield "    AND to_regclass(quote_ident(data_table_name)) IS NOT NULL"
    yield "LOOP"
    for one in rights:
        if one.makes_data_tables:
            yield f"    EXECUTE 'ALTER TABLE ' || quote_ident(data_table) || {_text(f' OWNER TO {_role(one)}')};"
        if one.reads_data_tables:
            yield f"    EXECUTE 'GRANT SELECT ON ' || quote_ident(data_table) || {_text(f' TO {_role(one)}')};"
    yield "END LOOP;"


def _role(one: Rights) -> str:
    return _name(one.identity or one.role)


def _name(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _text(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
