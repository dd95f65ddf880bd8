"""Functions of your own: Python files and PowerShell scripts in a folder (rule W5).

A file that cannot be used is reported and stops nothing: neither the worker nor the other files. Only a folder into
which other people can put files is refused.
"""

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from matoolkit.errors import UnsafeFolder
from matoolkit.privacy import writers_besides_us
from matoolkit.worker.powershell import script_function
from matoolkit.worker.registry import Function, Registry, functions_of
from matoolkit.worker.shell.choice import powershell_program


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file in the folder that could not be used, or not all of it."""

    path: Path
    why: str


class _Unusable(Exception):
    """A file holds nothing that could be registered."""


def register_custom(registry: Registry, folder: Path) -> list[BrokenFile]:
    """Add what a folder holds to a registry, in the order of the files' names, and say what could not be."""
    broken: list[BrokenFile] = []
    for path in _files(folder, broken):
        # A file may do anything while it is imported, even end the program.
        try:
            found = _functions(path)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            broken.append(BrokenFile(path, _told(error)))
            continue
        broken += [BrokenFile(path, why) for why in _registered(registry, found)]
    return broken


def _files(folder: Path, broken: list[BrokenFile]) -> Sequence[Path]:
    try:
        if why := writers_besides_us(folder):
            raise UnsafeFolder(str(folder), why)
        return sorted(path for path in folder.iterdir() if path.suffix.casefold() in {".py", ".ps1"})
    except OSError as error:
        broken.append(BrokenFile(folder, (error.strerror or str(error)).lower()))
        return []


def _functions(path: Path) -> list[Function]:
    if why := writers_besides_us(path):
        raise _Unusable(f"{why}, and a worker would execute what they write: `chmod go-w {path}`")
    if path.suffix.casefold() == ".py":
        found = list(functions_of(_imported(path)))
        # What begins with an underscore is there to be imported by the others.
        if not found and not path.stem.startswith("_"):
            raise _Unusable("it has no function that is decorated with @function")
        return found
    program = powershell_program()
    if program is None:
        raise _Unusable("pwsh is not installed here")
    return [script_function(path, program)]


def _imported(path: Path) -> ModuleType:
    name = f"matoolkit_custom_{path.stem.replace('-', '_').replace('.', '_')}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _Unusable("it is no Python module")
    module = importlib.util.module_from_spec(spec)
    # Files may import each other; at the end of the path none of them takes the place of anything else.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _registered(registry: Registry, functions: Sequence[Function]) -> list[str]:
    problems: list[str] = []
    for function in functions:
        try:
            registry.register(function)
        except ValueError as error:
            problems.append(str(error))
    return problems


def _told(error: BaseException) -> str:
    if isinstance(error, _Unusable):
        return str(error)
    line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
    return f"{type(error).__name__}: {error}{line}"
