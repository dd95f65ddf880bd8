"""Each message is built in one place, so that no two services say the same thing in two ways (rule M2)."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from matoolkit.domain.messages import Event, Message

SOURCE = Path(__file__).parents[2] / "src" / "matoolkit"
# The wire makes messages of text that came in; the simulation plays workers that answer in their own way.
ELSEWHERE = ("bus/wire", "simulate")
# The bus's own tables need to know what a message that was received looks like.
KNOWN_TO_THE_STORE = {"Received", "Subscription"}

EVENTS = [form.__name__ for form in get_args(Event)]
OTHERS = [form.__name__ for form in get_args(Message) if form.__name__ not in EVENTS]


@cache
def calls(source: Path) -> dict[str, list[str]]:
    """Return the modules in which each name is called, once for each call."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in sorted(source.rglob("*.py")):
        path = module.relative_to(source).as_posix()
        if not path.startswith(ELSEWHERE):
            for name in called(module):
                found[name].append(path)
    return found


def called(module: Path) -> Iterator[str]:
    # A class in a pattern of `match` takes a message apart, and is no call.
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


def id_of(name: str) -> str:
    """Return the name of the function that makes the id of a message."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() + "_id"


@pytest.mark.parametrize("name", EVENTS)
def test_m2_each_event_is_built_with_its_id_in_one_place(name: str) -> None:
    assert calls(SOURCE)[name] == ["announcing/messages.py"]
    assert calls(SOURCE)[id_of(name)] == ["announcing/messages.py"]


@pytest.mark.parametrize("name", OTHERS)
def test_m2_each_job_result_and_hello_is_built_in_one_room(name: str) -> None:
    assert len({path.split("/")[0] for path in calls(SOURCE)[name]}) == 1, calls(SOURCE)[name]


@pytest.mark.parametrize("line", ["PhaseDue(1, 'a', 1, 'b', 1)", "messages.PhaseDue(1, 'a', 1, 'b', 1)"])
def test_m2_a_second_place_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "one.py").write_text("def take(m):\n match m:\n  case PhaseDue(): pass\n", encoding="utf-8")
    (tmp_path / "two.py").write_text(f"def tell(): return {line}\n", encoding="utf-8")
    assert calls(tmp_path)["PhaseDue"] == ["two.py"]


def test_m1_the_store_publishes_nothing() -> None:
    imported = {
        name.name
        for module in (SOURCE / "store").rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "matoolkit.ports"
        for name in node.names
    }
    assert imported == KNOWN_TO_THE_STORE
