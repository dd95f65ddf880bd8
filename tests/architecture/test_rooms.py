"""The import rules are a test: they hold, and they catch what breaks them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environ = {"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("runbook/offsets.py", "import sqlalchemy"),
        ("runbook/model.py", "from matoolkit.cli import output"),
        ("errors/root.py", "from matoolkit import settings"),
        ("domain/states.py", "import sqlalchemy"),
        ("cli/commands/db.py", "import sqlalchemy"),
        ("store/batches.py", "from matoolkit.cli import output"),
        ("store/sql/driver.py", "from matoolkit.store import schema"),
        ("store/dialect/sqlite.py", "from matoolkit.store.sql import driver"),
        ("scheduler/transitions.py", "import sqlalchemy"),
        ("scheduler/transitions.py", "from matoolkit.admin import publishing"),
        ("admin/publishing.py", "import sqlalchemy"),
        ("announcing/waking.py", "import sqlalchemy"),
        ("announcing/waking.py", "from matoolkit.bus import wire"),
        ("store/batches.py", "from matoolkit.announcing import waking"),
        ("worker/runner.py", "from matoolkit.announcing import waking"),
        ("worker/runner.py", "import sqlalchemy"),
        ("api/routes/batches.py", "import sqlalchemy"),
        ("admin/queries.py", "from matoolkit.api import paging"),
        ("worker/runner.py", "from matoolkit.store import open_store"),
        ("worker/runner.py", "from matoolkit.bus import wire"),
        ("worker/runner.py", "from matoolkit.orchestrator import agenda"),
        ("crashpoints.py", "from matoolkit.store import open_store"),
        ("ids.py", "from matoolkit import clock"),
        ("settings.py", "from matoolkit.runbook import values"),
        ("newroom.py", "import json"),
    ],
)
def test_a_planted_violation_is_caught(copy: Path, module: str, line: str) -> None:
    path = copy / "src" / "matoolkit" / module
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(f"{text}\n{line}\n", encoding="utf-8")
    done = lint_imports(copy)
    assert done.returncode == 1, done.stdout
    assert "broken" in done.stdout.lower()
