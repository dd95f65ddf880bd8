"""The tool that looks for guards without a test finds guards, and takes them away."""

import ast
import importlib.util
from pathlib import Path

import pytest

from tests.mutants import forked, mutants_of, replace_code

MODULE = """
def few(numbers, most):
    if not numbers or most < 1:
        return []
    return [number for number in numbers if number < most]


def chosen(query, status):
    return query.where(status == 1, query.is_held)
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    file = tmp_path / "few.py"
    file.write_text(MODULE)
    return file


def test_every_condition_and_every_part_of_one_is_a_guard(module: Path) -> None:
    found = [(mutant.node.lineno, ast.unparse(mutant.node), mutant.instead) for mutant in mutants_of(module)]
    assert found == [
        (3, "not numbers", "False"),
        (3, "most < 1", "False"),
        (5, "number < most", "True"),
        (9, "status == 1", "*()"),
        (9, "query.is_held", "*()"),
    ]


def test_a_function_that_is_loaded_loses_its_guard_in_a_fork_alone(module: Path) -> None:
    spec = importlib.util.spec_from_file_location("few", module)
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    guard = mutants_of(module)[2]
    assert forked(lambda: replace_code(guard) and loaded.few([1, 2, 3], 2) == [1, 2, 3])
    assert loaded.few([1, 2, 3], 2) == [1]
