"""The SQL that creates roles: it allows what the statements of the store need, and reads as the SQL of its database."""

import re

import pytest

from matoolkit.errors import RolesNotSupported
from matoolkit.store.dialect.mssql import SqlServer
from matoolkit.store.dialect.postgresql import PostgreSQL
from matoolkit.store.dialect.sqlite import SQLite
from matoolkit.store.roles import PARTS, roles_script
from matoolkit.store.schema import metadata
from tests.golden.tsql import HOSTILE, STATEMENTS

GRANT = re.compile(r"GRANT ([A-Z, ]+) ON OBJECT::dbo\.\[(\w+)\] TO \[matoolkit_api\]")


def test_services_may_do_what_the_statements_of_the_store_do_and_no_more() -> None:
    script = roles_script(SqlServer(), {}, "state")
    granted = {(verb, table) for verbs, table in GRANT.findall(script) for verb in verbs.split(", ")}
    statements = STATEMENTS.read_text(encoding="utf-8")
    written = {
        (verb, table)
        for verb, table in re.findall(r"^(INSERT|UPDATE|DELETE)(?: INTO| FROM)? (\w+)", statements, re.MULTILINE)
        if table in metadata.tables
    }
    assert written <= granted
    assert {table for verb, table in granted if verb == "DELETE"} == {t for verb, t in written if verb == "DELETE"}
    assert {table for verb, table in granted if verb == "SELECT"} == set(metadata.tables)


@pytest.mark.parametrize("dialect", [SqlServer(), PostgreSQL()], ids=lambda dialect: dialect.name)
def test_only_the_scheduler_and_the_deploying_identity_may_create_anything(dialect: SqlServer | PostgreSQL) -> None:
    names = {part: f"id-{part}" for part in PARTS}
    granted = [line for line in roles_script(dialect, names, "state").splitlines() if "GRANT" in line]
    makers = {line for line in granted if re.search(r"GRANT [^;]*\b(CREATE|ALTER)\b[^;]* ON SCHEMA", line)}
    assert makers
    assert all(re.search("scheduler|deploy", line) for line in makers)


def test_names_of_identities_are_only_names() -> None:
    for dialect in (SqlServer(), PostgreSQL()):
        script = roles_script(dialect, {"scheduler": HOSTILE}, "state")
        for quoted in re.findall(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\[(?:[^]]|]])*]", script):
            script = script.replace(quoted, "")
        assert "DROP" not in script


def test_sqlite_has_no_users() -> None:
    with pytest.raises(RolesNotSupported):
        roles_script(SQLite(), {}, "state.db")
