"""Only the kernel, `store/sql/`, runs SQL: nobody else has a connection, a cursor or a driver in hand."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOM = Path(__file__).parents[2] / "src" / "matoolkit"

DRIVERS = ("sqlite3", "psycopg", "mssql_python", "pyodbc")
EXECUTION = ("sqlalchemy.engine", "sqlalchemy.event", "sqlalchemy.exc", "sqlalchemy.orm", "sqlalchemy.pool")
NAMES = {"Connection", "Engine", "CursorResult", "create_engine", "event", "exc", "inspect"}
ATTRIBUTES = {"cursor()", "driver_connection", "engine", "exec_driver_sql", "loaded_dbapi", "raw_connection"}

# Who else may, and why.
OTHERS = {
    "store/dialect/": "the part of the kernel in which the databases differ; released migrations know it by this name",
    "store/upgrade.py": "hands a connection of the kernel to Alembic",
    "store/comparison.py": "looks at tables on a connection of the kernel",
    "simulate/database.py": "meddles with a database past everybody, on purpose",
    "sources/": "reads databases of other people, never the state",
    "hosting/demo.py": "makes the database of the demo's people, which is a source",
    "hosting/folder.py": "locks a folder with an empty file of SQLite",
}


def found_in(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if _is_execution(one.name))
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            if _is_execution(node.module):
                yield node.module
            elif node.module == "sqlalchemy":
                yield from (one.name for one in node.names if one.name in NAMES)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from {f"{node.func.attr}()"} & ATTRIBUTES
        elif isinstance(node, ast.Attribute):
            yield from {node.attr} & ATTRIBUTES


def _is_execution(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in (*DRIVERS, *EXECUTION))


def outside() -> dict[str, list[str]]:
    """Find what every module outside the kernel has of it."""
    modules = {path.relative_to(ROOM).as_posix(): path for path in ROOM.rglob("*.py")}
    return {
        name: found
        for name, path in sorted(modules.items())
        if not name.startswith("store/sql/") and (found := sorted(set(found_in(path.read_text(encoding="utf-8")))))
    }


def test_nothing_outside_the_kernel_touches_a_driver_or_runs_sql() -> None:
    assert {name: found for name, found in outside().items() if not name.startswith(tuple(OTHERS))} == {}


def test_every_exception_is_still_one() -> None:
    names = list(outside())
    assert [one for one in OTHERS if not any(name.startswith(one) for name in names)] == []


@pytest.mark.parametrize(
    "line",
    [
        "import sqlite3",
        "import psycopg",
        "from psycopg.types import array",
        "from sqlalchemy import Connection, select",
        "from sqlalchemy import create_engine",
        "from sqlalchemy.engine import make_url",
        "import sqlalchemy.event",
        "rows = store.engine.connect()",
        "cursor = connection.cursor()",
        "bare = borrowed.driver_connection",
        "connection.exec_driver_sql('SELECT 1')",
    ],
)
def test_a_planted_violation_is_found(line: str) -> None:
    assert list(found_in(line))


@pytest.mark.parametrize("line", ["from sqlalchemy import select", "page = wanted.cursor", "tx.execute(statement)"])
def test_what_is_allowed_is_not_found(line: str) -> None:
    assert not list(found_in(line))
