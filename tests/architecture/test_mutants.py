"""The tool that looks for guards without a test finds guards, and takes them away."""

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import forked, lines_that_lead_to, mutants_of, take_away

MODULE = """
def few(numbers, most):
    if not numbers or most < 1:
        return []
    return [number for number in numbers if number < most]


def chosen(query, status, names):
    held = (query.is_held == 1, len(names))
    return query.where(status == 1, *held).limit(5)


WISHED = set([number for number in range(9)
    if number > 4])
TWICE = [number * 2 for number in WISHED]


def wishes():
    return sorted(TWICE)
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    file = tmp_path / "few.py"
    file.write_text(MODULE)
    return file


@pytest.fixture
def loaded(module: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("few", module)
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "few", loaded)
    spec.loader.exec_module(loaded)
    return loaded


def test_every_condition_and_every_part_of_one_is_a_guard(module: Path) -> None:
    found = [(mutant.node.lineno, ast.unparse(mutant.node), mutant.instead) for mutant in mutants_of(module)]
    assert found == [
        (3, "not numbers", "False"),
        (3, "most < 1", "False"),
        (5, "number < most", "True"),
        (9, "query.is_held == 1", "*()"),
        (10, "status == 1", "*()"),
        (10, "*held", "*()"),
        (10, "5", "None"),
        (14, "number > 4", "True"),
    ]


def test_a_function_that_is_loaded_loses_its_guard_in_a_fork_alone(module: Path, loaded: Any) -> None:
    guard = mutants_of(module)[2]
    assert forked(lambda: take_away(guard) and loaded.few([1, 2, 3], 2) == [1, 2, 3])
    assert loaded.few([1, 2, 3], 2) == [1]


def test_a_constant_is_made_again_without_its_guard_with_all_that_is_made_of_it(module: Path, loaded: Any) -> None:
    guard = mutants_of(module)[-1]
    assert lines_that_lead_to(guard) == {14, 19}
    assert forked(lambda: take_away(guard) and len(loaded.wishes()) == 9)
    assert loaded.wishes() == [10, 12, 14, 16]
