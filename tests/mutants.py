"""Guards that no test fails without: each is taken away once, and the tests that reach it are run.

    nice .venv/bin/python -m pytest -q -p tests.mutants --mutate src/matoolkit/store/queue.py -k "not postgresql" tests

A guard is a condition that returns early or filters, a condition or limit of a statement, or a status in a set. One
traced run finds which tests reach which lines. Every mutant is a fork of the process that has collected the tests, in
which one function has other code, or one constant another value. Tests run in the order of their cost, those of the
same room first, as many as fit into `--seconds`. A guard that survives needs a test, or is not needed, or only saves
time.
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
from itertools import accumulate
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[1]
NOTHING = "*()"
CONSTANT = (ast.Assign, ast.AnnAssign)
LEAVING = (ast.Return, ast.Continue, ast.Raise, ast.Break)
CONJUNCTIONS = ("and_", "or_")
CONDITIONS = ("is_", "is_not", "is_any", "among")
CHANGES = ("change", "change_each", "changing", "changing_each")
ARGUMENTS_BEFORE_GUARDS = 4
PATIENCE = 20  # a machine may have other things to do: the clock on the wall goes so much faster than a mutant's own


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
    def tree(self) -> ast.Module:
        """The module without the guard."""
        lines = self.module.read_bytes().splitlines(keepends=True)
        before = sum(map(len, lines[: self.node.lineno - 1])) + self.node.col_offset
        after = sum(map(len, lines[: (self.node.end_lineno or 0) - 1])) + (self.node.end_col_offset or 0)
        source = b"".join(lines)
        # What stands below it stays on its line: functions are known by their lines.
        rest = "\n" * ((self.node.end_lineno or 0) - self.node.lineno)
        instead = f"({self.instead}{rest})" if self.instead != NOTHING else f"*({rest})"
        return ast.parse(source[:before] + instead.encode() + source[after:])


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
            case ast.Call():
                yield from _guards_of_statement(node)
            case ast.Tuple(elts=elements):
                yield from ((one, NOTHING) for one in elements if _is_condition(one))
            case ast.Set(elts=elements) if len(elements) > 1:
                yield from ((one, NOTHING) for one in elements if isinstance(one, ast.Attribute))


def _guards_of_statement(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.Call(func=ast.Attribute(attr="where"), args=args):
            yield from ((one, NOTHING) for one in args)
        case ast.Call(func=ast.Attribute(attr="limit"), args=[most]):
            yield most, "None"
        case ast.Call(func=ast.Name(id=name), args=args) if name in CONJUNCTIONS and len(args) > 1:
            yield from ((one, NOTHING) for one in args if not isinstance(one, ast.Starred))
        case ast.Call(func=ast.Name(id=name), args=args) if name in CHANGES:
            yield from ((one, NOTHING) for one in args[ARGUMENTS_BEFORE_GUARDS:])


def _is_condition(node: ast.expr) -> bool:
    """Tell whether a part of a tuple may be a condition of a statement."""
    match node:
        case ast.Compare():
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in CONDITIONS
    return False


def _parts(test: ast.expr, *, holds: bool) -> Iterator[tuple[ast.expr, str]]:
    """Take a condition away, or each part of it, as if it always let everything pass."""
    if isinstance(test, ast.BoolOp):
        yield from ((part, str(isinstance(test.op, ast.And))) for part in test.values)
    else:
        yield test, str(holds)


def take_away(mutant: Mutant) -> bool:
    """Let this process go on without a guard, if it stands in a function or in a constant."""
    return replace_constants(mutant) or replace_code(mutant)


def replace_code(mutant: Mutant) -> bool:
    """Give the function that has the guard the code without it; what ran at import is not run again."""
    place = str(mutant.module)
    living: dict[tuple[str, int], list[FunctionType]] = defaultdict(list)
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == place:
            living[function.__code__.co_qualname, function.__code__.co_firstlineno].append(function)
    changed = False
    for code in _codes_in(compile(mutant.tree, place, "exec")):
        for function in living[code.co_qualname, code.co_firstlineno]:
            if function.__code__ != code and function.__code__.co_freevars == code.co_freevars:
                function.__code__ = code
                changed = True
    return changed


def replace_constants(mutant: Mutant) -> bool:
    """Give a constant that has the guard the value without it, and all that is made of it, wherever it was imported."""
    if _constant_of(mutant.tree, mutant) is None:
        return False
    module = next(one for one in sys.modules.values() if getattr(one, "__file__", None) == str(mutant.module))
    before, changed = dict(vars(module)), _made_of(mutant.tree, mutant)
    for statement in changed:
        exec(compile(ast.Module([statement], []), str(mutant.module), "exec"), vars(module))
    for name in (name for statement in changed for name in _targets(statement)):
        for other in list(sys.modules.values()):
            if vars(other).get(name) is before[name]:
                setattr(other, name, vars(module)[name])
    return True


def _constant_of(tree: ast.Module, mutant: Mutant) -> ast.stmt | None:
    """Return the constant that has the guard, unless a function in it does: that one is run later."""
    line = mutant.node.lineno
    for statement in tree.body:
        if isinstance(statement, CONSTANT) and statement.lineno <= line <= (statement.end_lineno or 0):
            return None if any(isinstance(node, ast.Lambda) for node in ast.walk(statement)) else statement
    return None


def _made_of(tree: ast.Module, mutant: Mutant) -> list[ast.stmt]:
    """Return the constant that has the guard, and those that are made of it."""
    found: list[ast.stmt] = []
    names: set[str] = set()
    constant = _constant_of(tree, mutant)
    for statement in tree.body:
        if statement is constant or (isinstance(statement, CONSTANT) and names & _names_in(statement)):
            found.append(statement)
            names |= _targets(statement)
    return found


def _targets(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


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
        began = time.process_time()
        threading.settrace(self._call)
        sys.settrace(self._call)
        has_passed = passes(item)
        sys.settrace(None)
        lines = {name: sorted(found) for name, found in self.lines.items()} if has_passed else {}
        return {"seconds": time.process_time() - began, "lines": lines}

    def _call(self, frame: Any, _event: str, _argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self.modules else None

    def _line(self, frame: Any, _event: str, _argument: Any) -> Any:
        self.lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self._line


def passes(item: pytest.Item) -> bool:
    """Run a test, and tell whether all is well."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def forked(act: Callable[[], bool]) -> bool:
    """Let a fork do something and tell whether it worked."""
    return exit_of(act) == 0


def exit_of(act: Callable[[], bool]) -> int:
    """Let a fork do something; return 0 if it worked, 1 if not, and less if a signal stopped it."""
    child = os.fork()
    if child == 0:
        worked = False
        try:
            worked = act()
        finally:
            os._exit(0 if worked else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def verdict_on(mutant: Mutant, tests: Sequence[pytest.Item], seconds: float, *, are_all: bool) -> str:
    """Tell what tests say of a module without a guard."""

    def play() -> bool:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
        return not take_away(mutant) or all(map(passes, tests))

    if not tests:
        return "is not reached"
    match exit_of(play):
        case 0:
            return "survives" if are_all else "survives so far"
        case 1:
            return "noticed"
    return "never ends"


def lines_that_lead_to(mutant: Mutant) -> set[int]:
    """Return the lines that tests have to reach: its own, and those that use a constant or a function that runs once.

    A function with a decorator may run once and be known after that, with all that it calls.
    """
    tree, line = ast.parse(mutant.module.read_bytes()), mutant.node.lineno
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    owner = next((node for node in tree.body if node.lineno <= line <= (node.end_lineno or 0)), None)
    users: set[ast.FunctionDef] = set()
    names: set[str] = set()
    if isinstance(owner, ast.FunctionDef):
        users, names = {owner}, {owner.name}
    elif isinstance(owner, CONSTANT):
        names = {name for statement in _made_of(tree, mutant) or [owner] for name in _targets(statement)}
    while more := {node for node in functions if node not in users and names & _names_in(node)}:
        users |= more
        names |= {node.name for node in more}
    if isinstance(owner, ast.FunctionDef) and not any(node.decorator_list for node in users):
        return {line}
    return {line}.union(*(range(node.body[0].lineno, (node.end_lineno or 0) + 1) for node in users))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--mutate", action="append", help="a module, module:line, or a folder, whose guards are taken away"
    )
    parser.addoption("--seconds", type=float, default=60, help="how long the tests of a mutant may take, as measured")
    parser.addoption(
        "--reached", help="a file that keeps which tests reach which lines; the next run adds its new tests"
    )


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run mutants in the place of tests."""
    chosen = _chosen(session.config.option.mutate)
    modules = sorted({mutant.module for mutant in chosen})
    reached, seconds = _reached(session, modules), session.config.option.seconds
    verdicts: dict[Path, Counter[str]] = defaultdict(Counter)
    for mutant in chosen:
        wanted, name = lines_that_lead_to(mutant), str(mutant.module)
        tests = [item for item in session.items if wanted.intersection(reached[item.nodeid]["lines"].get(name, ()))]
        room = f"tests/{mutant.module.relative_to(ROOT).parts[2]}/"
        tests.sort(key=lambda item: (not item.nodeid.startswith(room), reached[item.nodeid]["seconds"]))
        costs = accumulate(reached[item.nodeid]["seconds"] for item in tests)
        played = [item for item, cost in zip(tests, costs, strict=True) if cost <= seconds]
        verdict = verdict_on(mutant, played, seconds, are_all=len(played) == len(tests))
        verdicts[mutant.module][verdict] += 1
        if verdict != "noticed":
            sys.stderr.write(f"{mutant}: {verdict}\n")
    for module, found in verdicts.items():
        sys.stderr.write(f"{module.relative_to(ROOT)}: {dict(found)}\n")
    return True


def _chosen(places: Sequence[str]) -> list[Mutant]:
    """Find the guards of modules, of all modules of a folder, or of one line of a module."""
    found: list[Mutant] = []
    for place in places:
        name, _, line = place.partition(":")
        path = (ROOT / name).resolve()
        modules = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        every = (mutant for module in modules for mutant in mutants_of(module))
        found += [mutant for mutant in every if not line or mutant.node.lineno == int(line)]
    return found


def _reached(session: pytest.Session, modules: Sequence[Path]) -> dict[str, Any]:
    """Run all tests once in a fork, so that what this process keeps for later, such as statements, stays empty."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(session.config.option.reached or Path(folder) / "reached.json")
        known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        new = [item for item in session.items if item.nodeid not in known]

        def trace() -> bool:
            tracing = Tracing(modules)
            file.write_text(json.dumps(known | {item.nodeid: tracing.reached(item) for item in new}))
            return True

        if new:
            assert forked(trace)
        found: dict[str, Any] = json.loads(file.read_text())
        return found
