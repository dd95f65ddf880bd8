"""Guards that no test fails without: each is taken away once, and the tests that reach it are run.

    nice .venv/bin/pytest -q -p tests.mutants --mutate src/matoolkit/orchestrator -k "not postgresql" tests/orchestrator

A guard is a condition that returns early or filters, a condition of a statement, or a status in a set. One traced run
finds which tests reach which lines. Every mutant is a fork of the process that has collected the tests, in which one
function has other code. A guard that survives needs a test, or is not needed, or only saves time.
"""

import ast
import gc
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[1]
LEAVING = (ast.Return, ast.Continue, ast.Raise, ast.Break)
CONJUNCTIONS = ("where", "and_", "or_")
SECONDS = 60


@dataclass(frozen=True)
class Mutant:
    """A guard of a module, and the text that takes its place."""

    module: Path
    node: ast.expr
    instead: str

    def __str__(self) -> str:
        place = f"{self.module.relative_to(ROOT)}:{self.node.lineno}"
        return f"{place}: {ast.unparse(self.node)} -> {self.instead}"

    @property
    def code(self) -> CodeType:
        """The module without the guard."""
        lines = self.module.read_bytes().splitlines(keepends=True)
        before = sum(map(len, lines[: self.node.lineno - 1])) + self.node.col_offset
        after = sum(map(len, lines[: (self.node.end_lineno or 0) - 1])) + (self.node.end_col_offset or 0)
        source = b"".join(lines)
        return compile(source[:before] + self.instead.encode() + source[after:], str(self.module), "exec")


def mutants_of(module: Path) -> list[Mutant]:
    """Find the guards of a module, in the order of their lines."""
    found = (Mutant(module, node, instead) for node, instead in _guards(ast.parse(module.read_bytes())))
    return sorted(found, key=lambda mutant: (mutant.node.lineno, mutant.node.col_offset))


def _guards(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test, body=body):
                yield from _parts(test, holds=not isinstance(body[-1], LEAVING))
            case ast.IfExp(test=test) | ast.match_case(guard=ast.expr() as test):
                yield from _parts(test, holds=True)
            case ast.Return(value=ast.BoolOp() as test):
                yield from _parts(test, holds=True)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from _parts(test, holds=True)
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=args) if name in CONJUNCTIONS:
                yield from ((one, "*()") for one in args if len(args) > 1 and not isinstance(one, ast.Starred))
            case ast.Set(elts=elements) if len(elements) > 1:
                yield from ((one, "*()") for one in elements if isinstance(one, ast.Attribute))


def _parts(test: ast.expr, *, holds: bool) -> Iterator[tuple[ast.expr, str]]:
    """Take a condition away, or each part of it, as if it always let everything pass."""
    if isinstance(test, ast.BoolOp):
        yield from ((part, str(isinstance(test.op, ast.And))) for part in test.values)
    else:
        yield test, str(holds)


def replace_code(mutant: Mutant) -> bool:
    """Give the function that has the guard the code without it; what runs at import is too late for that."""
    place = str(mutant.module)
    living = {
        function.__code__.co_qualname: function
        for function in gc.get_objects()
        if isinstance(function, FunctionType) and function.__code__.co_filename == place
    }
    changed = False
    for code in _codes_in(mutant.code):
        function = living.get(code.co_qualname)
        if function is not None and function.__code__ != code and not code.co_freevars:
            function.__code__ = code
            changed = True
    return changed


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)


class Tracing:
    """Writes down which lines of the modules each test reaches, and how long it takes."""

    def __init__(self, modules: Sequence[Path]) -> None:
        self.modules = {str(module) for module in modules}
        self.lines: dict[str, set[int]] = defaultdict(set)

    def reached(self, item: pytest.Item) -> dict[str, Any]:
        """Run a test and return what it reaches; one that fails without a mutant says nothing."""
        self.lines.clear()
        began = time.perf_counter()
        threading.settrace(self._call)
        sys.settrace(self._call)
        has_passed = passes(item)
        sys.settrace(None)
        lines = {name: sorted(found) for name, found in self.lines.items()} if has_passed else {}
        return {"seconds": time.perf_counter() - began, "lines": lines}

    def _call(self, frame: Any, _event: str, _argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self.modules else None

    def _line(self, frame: Any, _event: str, _argument: Any) -> Any:
        self.lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self._line


def passes(item: pytest.Item) -> bool:
    """Run a test, and tell whether all is well."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def forked(act: Callable[[], bool]) -> bool:
    """Let a fork do something and tell whether it worked; one that never ends is stopped, and has not."""
    child = os.fork()
    if child == 0:
        worked = False
        try:
            worked = act()
        finally:
            os._exit(0 if worked else 1)
    return os.waitpid(child, 0)[1] == 0


def survives(mutant: Mutant, tests: Sequence[pytest.Item]) -> bool:
    """Tell whether tests pass without a guard."""

    def play() -> bool:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        return not replace_code(mutant) or all(map(passes, tests))

    return forked(play)


def lines_that_lead_to(mutant: Mutant) -> set[int]:
    """Return the lines that tests have to reach: its own, or those of the callers of a function that runs once."""
    tree, line = ast.parse(mutant.module.read_bytes()), mutant.node.lineno
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    owner = next((node for node in functions if node.lineno <= line <= (node.end_lineno or 0)), None)
    if owner is None or not owner.decorator_list:
        return {line}
    users = [
        node for node in functions if owner.name in {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    ]
    return {number for node in users for number in range(node.lineno, (node.end_lineno or 0) + 1)}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutate", action="append", help="a module or a folder of modules whose guards are taken away")
    parser.addoption("--reached", help="a file that keeps which tests reach which lines for the next run")


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run mutants in the place of tests."""
    places = [(ROOT / name).resolve() for name in session.config.option.mutate]
    modules = [one for place in places for one in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    reached = _reached(session, modules)
    verdicts: Counter[str] = Counter()
    for mutant in (mutant for module in modules for mutant in mutants_of(module)):
        wanted, name = lines_that_lead_to(mutant), str(mutant.module)
        tests = [item for item in session.items if wanted.intersection(reached[item.nodeid]["lines"].get(name, ()))]
        tests.sort(key=lambda item: reached[item.nodeid]["seconds"])
        verdict = "noticed"
        if not tests:
            verdict = "is not reached"
        elif survives(mutant, tests):
            verdict = "survives"
        verdicts[verdict] += 1
        if verdict != "noticed":
            sys.stderr.write(f"{mutant}: {verdict}\n")
    sys.stderr.write(f"{dict(verdicts)}\n")
    return True


def _reached(session: pytest.Session, modules: Sequence[Path]) -> dict[str, Any]:
    """Run all tests once in a fork, so that what this process keeps for later, such as statements, stays empty."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(session.config.option.reached or Path(folder) / "reached.json")

        def trace() -> bool:
            tracing = Tracing(modules)
            file.write_text(json.dumps({item.nodeid: tracing.reached(item) for item in session.items}))
            return True

        if not file.exists():
            assert forked(trace)
        found: dict[str, Any] = json.loads(file.read_text())
        return found
