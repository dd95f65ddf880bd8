"""PowerShell scripts as functions: `Send-Welcome.ps1` is the function `Send-Welcome` (rule W5).

A script gets its parameters as one JSON object on standard input and writes its result as JSON to standard output. An
exit code other than 0 is a failure, told by what it wrote to standard error. Its comment-based help says which
parameters it has.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from matoolkit.worker.context import Context
from matoolkit.worker.failures import FunctionFailed, Throttled
from matoolkit.worker.registry import Function
from matoolkit.worker.signature import Kind, Parameter

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*-[A-Za-z0-9]+")
_HELP = re.compile(r"<#(.*?)#>", re.DOTALL)
_SECTION = re.compile(r"^[ \t]*\.([A-Za-z]+)[ \t]*([A-Za-z_][A-Za-z0-9_]*)?[ \t]*$", re.MULTILINE)
_WORD = re.compile(r"\[?([a-z]+(?:\[\])?)\]?", re.IGNORECASE)
_TIMEOUT_SECONDS = 3600
# What a script exits with to say that a service is busy: the system's own "temporary failure".
_BUSY = 75

_KINDS = {
    **dict.fromkeys(("string", "text"), Kind.TEXT),
    **dict.fromkeys(("bool", "boolean", "switch"), Kind.FLAG),
    **dict.fromkeys(("int", "integer", "long"), Kind.INTEGER),
    **dict.fromkeys(("double", "float", "number"), Kind.NUMBER),
    **dict.fromkeys(("array", "list", "object[]", "string[]"), Kind.LIST),
    **dict.fromkeys(("hashtable", "mapping"), Kind.MAPPING),
    **dict.fromkeys(("any", "object"), Kind.ANYTHING),
}


def powershell_program() -> str | None:
    """Find PowerShell 7 or newer."""
    return shutil.which("pwsh")


def script_function(path: Path, program: str) -> Function:
    """Make a function of a script."""
    if not _NAME.fullmatch(path.stem):
        raise ValueError(f"a script is named like its function, Verb-Noun.ps1, and not {path.name}")
    sections = list(_sections(path.read_text(encoding="utf-8-sig")))
    synopsis = next((text for title, _, text in sections if title == "synopsis"), "")
    parameters = tuple(_parameter(name, text) for title, name, text in sections if title == "parameter" and name)

    def call(context: Context, **arguments: Any) -> Any:  # noqa: ARG001 - a script signs in by itself
        return _run([program, "-NoProfile", "-NonInteractive", "-File", str(path)], path.stem, arguments)

    return Function(path.stem, parameters, " ".join(synopsis.split()), call)


def _sections(script: str) -> Iterator[tuple[str, str, str]]:
    """Read title, name and text of each section of a script's help."""
    found = _HELP.search(script)
    if found is None:
        return
    text = found[1]
    titles = list(_SECTION.finditer(text))
    ends = [title.start() for title in titles[1:]] + [len(text)]
    for title, end in zip(titles, ends, strict=True):
        yield title[1].casefold(), title[2] or "", text[title.end() : end].strip()


def _parameter(name: str, text: str) -> Parameter:
    """Read a parameter's first line: its type, and whether it is mandatory or secret, before the first full stop."""
    words = [word.casefold() for word in _WORD.findall(text.split(".", 1)[0])]
    kind = next((_KINDS[word] for word in words if word in _KINDS), Kind.TEXT)
    return Parameter(
        name=name,
        python_name=name,
        kinds=(kind,),
        is_mandatory="mandatory" in words,
        is_secret="secret" in words,
        takes_null=kind is Kind.ANYTHING,
    )


def _run(command: list[str], name: str, arguments: dict[str, Any]) -> Any:
    try:
        done = subprocess.run(  # noqa: S603 - a script that the operator put there; its arguments are no part of the command
            command,
            input=orjson.dumps(arguments),
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
            start_new_session=True,  # Ctrl-C is for the worker, which lets its jobs end
        )
    except subprocess.TimeoutExpired:
        raise FunctionFailed(f"{name} did not end within {_TIMEOUT_SECONDS:,} seconds", "ScriptTimeout") from None
    except OSError as error:
        raise FunctionFailed(f"{name} could not be started: {error.strerror}", "ScriptFailed") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or f"{name} ended with exit code {done.returncode}"
        raise Throttled(said) if done.returncode == _BUSY else FunctionFailed(said, "ScriptFailed")
    return _result(name, done.stdout)


def _result(name: str, output: bytes) -> Any:
    if not output.strip():
        return None
    try:
        return orjson.loads(output.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        why = f"{name} wrote something that is not JSON: end it with ConvertTo-Json, and write nothing else"
        raise FunctionFailed(why, "ScriptFailed") from None
