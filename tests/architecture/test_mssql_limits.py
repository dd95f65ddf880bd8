"""The list of what Babelfish cannot do names tests that exist."""

import subprocess
import sys
from pathlib import Path

from tests.mssql_limits import LIMITS

ROOT = Path(__file__).parents[2]


def test_every_entry_names_a_test_that_runs_on_a_sql_server() -> None:
    files = sorted({name.partition("::")[0] for name in LIMITS})
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--mssql", "--collect-only", "-q", *files]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert not LIMITS.keys() - set(found.stdout.splitlines())


def test_every_entry_has_a_reason() -> None:
    assert all(reason.endswith(".") for reason in LIMITS.values())
