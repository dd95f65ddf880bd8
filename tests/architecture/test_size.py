"""What makes a code base hard is the one module that grew without a neighbour."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(SOURCE.rglob("*.py"))

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 50


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))
def test_modules_and_functions_stay_small(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < MOST_LINES_OF_A_FUNCTION, node.name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))
def test_modules_are_named_for_what_they_hold(module: Path) -> None:
    assert module.stem not in {"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"}
