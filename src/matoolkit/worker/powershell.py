"""PowerShell scripts as functions: `Send-Welcome.ps1` is the function `Send-Welcome` (rule W5).

Its comment-based help says which parameters it has. A script that has `#Requires -Modules` with a module of Microsoft
Graph or with ExchangeOnlineManagement runs in a session that is signed in there: it gets its parameters as PowerShell
passes them, and what it puts out is its result. Any other script is a process of its own. It gets its parameters as one
JSON object on standard input and writes its result as JSON to standard output; an exit code other than 0 is a failure,
told by what it wrote to standard error.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson

from matoolkit.worker.context import Context, Job
from matoolkit.worker.failures import FunctionFailed, Throttled
from matoolkit.worker.registry import Function
from matoolkit.worker.shell import Connection
from matoolkit.worker.signature import Kind, Parameter

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*-[A-Za-z0-9]+")
_HELP = re.compile(r"<#(.*?)#>", re.DOTALL)
_SECTION = re.compile(r"^[ \t]*\.([A-Za-z]+)[ \t]*([A-Za-z_][A-Za-z0-9_]*)?[ \t]*$", re.MULTILINE)
_REQUIRES = re.compile(r"^[ \t]*#requires[ \t]+-modules?[ \t]+(.+)$", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"\[?([a-z]+(?:\[\])?)\]?", re.IGNORECASE)
_TIMEOUT_SECONDS = 3600
# What a script exits with to say that a service is busy: the system's own "temporary failure".
_BUSY = 75
JOB_VARIABLE = "WORKER_JOB"

_KINDS = {
    **dict.fromkeys(("string", "text"), Kind.TEXT),
    **dict.fromkeys(("bool", "boolean", "switch"), Kind.FLAG),
    **dict.fromkeys(("int", "integer", "long"), Kind.INTEGER),
    **dict.fromkeys(("double", "float", "number"), Kind.NUMBER),
    **dict.fromkeys(("array", "list", "object[]", "string[]"), Kind.LIST),
    **dict.fromkeys(("hashtable", "mapping"), Kind.MAPPING),
    **dict.fromkeys(("any", "object"), Kind.ANYTHING),
}


def script_function(path: Path, program: str) -> Function:
    """Make a function of a script."""
    if not _NAME.fullmatch(path.stem):
        raise ValueError(f"a script is named like its function, Verb-Noun.ps1, and not {path.name}")
    text = path.read_text(encoding="utf-8-sig")
    sections = list(_sections(text))
    synopsis = next((text for title, _, text in sections if title == "synopsis"), "")
    parameters = tuple(_parameter(name, text) for title, name, text in sections if title == "parameter" and name)

    connections = _connections(text)

    def call(context: Context, **arguments: Any) -> Any:
        if not connections:
            command = [program, "-NoProfile", "-NonInteractive", "-File", str(path)]
            return _run(command, path.stem, arguments, described(context.job))
        if context.shell is None:
            why = "needs a session that is signed in, and this worker has no real tenant to sign in to"
            raise FunctionFailed(f"{path.stem} {why}", "ScriptFailed")
        return context.shell.run_script(path.resolve(), arguments, connections, described(context.job))

    return Function(path.stem, parameters, " ".join(synopsis.split()), call)


def described(job: Job | None) -> str:
    """Write a job as JSON, for a script that reads it in `$env:WORKER_JOB`."""
    if job is None:
        return "{}"
    told = {"".join(map(str.title, one.name.split("_"))): getattr(job, one.name) for one in fields(job)}
    return orjson.dumps(told).decode()


def _connections(script: str) -> tuple[Connection, ...]:
    """Read what a script wants to be connected to from the modules that it requires."""
    modules = " ".join(_REQUIRES.findall(script)).casefold()
    wanted = {Connection.GRAPH: "microsoft.graph", Connection.EXCHANGE: "exchangeonlinemanagement"}
    return tuple(connection for connection, module in wanted.items() if module in modules)


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


def _run(command: list[str], name: str, arguments: dict[str, Any], job: str) -> Any:
    try:
        done = subprocess.run(  # noqa: S603 - a script that the operator put there; its arguments are no part of the command
            command,
            input=orjson.dumps(arguments),
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
            env={**os.environ, JOB_VARIABLE: job},
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
