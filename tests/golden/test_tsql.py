import platform
import re
from pathlib import Path

import pytest

from matoolkit.store.checkup.samples import public_functions
from matoolkit.store.schema.metadata import metadata
from tests.golden.parser import Parser
from tests.golden.tsql import MIGRATIONS, ROLES, STATEMENTS, migrations, roles, statements

AGAIN = "if this change was meant, run `python -m tests.golden.tsql` and read the difference"


def test_the_statements_for_sql_server_are_the_ones_that_were_read() -> None:
    assert statements() == STATEMENTS.read_text(encoding="utf-8"), AGAIN


def test_the_migrations_for_sql_server_are_the_ones_that_were_read() -> None:
    assert migrations() == MIGRATIONS.read_text(encoding="utf-8"), AGAIN


def test_the_roles_for_sql_server_are_the_ones_that_were_read() -> None:
    assert roles() == ROLES.read_text(encoding="utf-8"), AGAIN


def test_every_function_of_the_store_has_its_statements() -> None:
    written = STATEMENTS.read_text(encoding="utf-8")
    assert [name for name, _ in public_functions() if f"-- {name}\n" not in written] == []


def test_m4_rows_that_get_numbers_get_them_in_their_order() -> None:
    """SQL Server numbers the rows of a query in order only if the query is sorted."""
    unsorted = {
        table
        for statement in STATEMENTS.read_text(encoding="utf-8").split("\nGO")
        for table in re.findall(r"^INSERT INTO (\w+) .*", statement, re.MULTILINE)
        if "OPENJSON" in statement and "ORDER BY" not in statement
    }
    numbered = {name for name in unsorted if "id" in metadata.tables[name].c}
    assert numbered == {"bus_recent_ids"}  # those numbers only tell old rows from new ones


@pytest.fixture(scope="module")
def parser() -> Parser:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("Microsoft's T-SQL parser is packaged for Linux on x86-64 only")
    return Parser()


@pytest.mark.parametrize("golden", [STATEMENTS, MIGRATIONS, ROLES], ids=lambda path: path.stem)
def test_every_statement_parses_as_t_sql(parser: Parser, golden: Path) -> None:
    assert parser.errors(golden.read_text(encoding="utf-8")) == []


def test_the_parser_finds_what_sql_server_would_refuse(parser: Parser) -> None:
    script = "SELECT 1\nGO\nSELECT id FROM batches ORDER BY id NULLS LAST"
    assert parser.errors(script) == ["3:36 46005 Expected OFFSET but encountered NULLS instead."]
