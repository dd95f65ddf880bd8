import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.tsql import MIGRATIONS, STATEMENTS, migrations, public_functions, statements

ROOT = Path(__file__).parents[2]
AGAIN = "if this change was meant, run `python -m tests.golden.tsql` and read the difference"


def test_the_statements_for_sql_server_are_the_ones_that_were_read() -> None:
    assert statements() == STATEMENTS.read_text(encoding="utf-8"), AGAIN


def test_the_migrations_for_sql_server_are_the_ones_that_were_read() -> None:
    assert migrations() == MIGRATIONS.read_text(encoding="utf-8"), AGAIN


def test_every_function_of_the_store_has_its_statements() -> None:
    written = STATEMENTS.read_text(encoding="utf-8")
    assert [name for name, _ in public_functions() if f"-- {name}\n" not in written] == []


@pytest.mark.parametrize("golden", [STATEMENTS, MIGRATIONS], ids=lambda path: path.stem)
def test_every_statement_parses_as_t_sql(golden: Path) -> None:
    checker = Path(os.environ.get("TSQL_CHECK") or ROOT.parent / "shared" / "tools" / "tsql-check")
    if not checker.exists():
        pytest.skip("tsql-check is not here: set TSQL_CHECK to where it is")
    done = subprocess.run(
        [sys.executable, str(checker), str(golden)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
