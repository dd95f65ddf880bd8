"""Findings for people, for programs and for GitHub."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import orjson
from rich.cells import cell_len
from rich.text import Text

from matoolkit.errors import Finding
from matoolkit.runbook.parse import Report

_MASK = "•••"
# Findings about values that may be secrets; their lines are shown up to the value only.
_MAY_BE_SECRET = frozenset({"RB111", "RB112", "RB213"})
_SENSITIVE = re.compile(r"(?i)((?:password|secret|connection\w*)[\"']?\s*:\s*)(\S.*)$")
_HARMLESS = re.compile(r"""["']?(?:secret:[^"']*|\{\{[^{}]*\}\}|[A-Za-z_]\w*)["']?\s*""")
_WORD = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class LintedFile:
    """A file and what was found in it."""

    name: str
    report: Report


def as_text(linted: LintedFile, found: Finding) -> Text:
    """Write a finding as `file:line:col: message [code]`, then the line with a caret, then the hint."""
    style = "bold red" if found.is_error else "bold yellow"
    text = Text.assemble(
        (f"{linted.name}:{found.line}:{found.column}: ", "bold"),
        (f"{found.severity}: ", style),
        f"{found.message} ",
        (f"[{found.code}]", "dim"),
        "\n",
    )
    line = linted.report.source.line(found.line)
    if line.strip():
        number = f"{found.line:>6} | "
        shown = _shown(line, found)
        text.append(f"{number}{shown}\n")
        before = "".join("\t" if letter == "\t" else " " * cell_len(letter) for letter in shown[: found.column - 1])
        text.append(f"{' ' * (len(number) - 2)}| {before}")
        text.append(f"{'^' * _underlined(shown, found.column)}\n", style=style)
    if found.hint:
        text.append(f"       hint: {found.hint}\n")
    return text


def as_json(files: Iterable[LintedFile]) -> str:
    """Write all findings as one JSON document."""
    findings = [
        {
            "file": linted.name,
            "line": found.line,
            "column": found.column,
            "severity": found.severity,
            "code": found.code,
            "message": found.message,
            "hint": found.hint,
            "path": list(found.path),
        }
        for linted in files
        for found in linted.report.findings
    ]
    errors = sum(found["severity"] == "error" for found in findings)
    document = {"errors": errors, "warnings": len(findings) - errors, "findings": findings}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def as_github(linted: LintedFile, found: Finding) -> str:
    """Write a finding as a workflow command, which GitHub shows beside the line."""
    message = f"{found.message} ({found.hint})" if found.hint else found.message
    where = f"file={_property(linted.name)},line={found.line},col={found.column},title={found.code}"
    return f"::{found.severity} {where}::{_escaped(message)}"


def _shown(line: str, found: Finding) -> str:
    """Return a line of the document without the value of anything that may be a secret."""
    if found.code in _MAY_BE_SECRET:
        return line[: found.column - 1] + _MASK
    match = _SENSITIVE.search(line)
    if match is None or _HARMLESS.fullmatch(match[2]):
        return line
    return line[: match.start(2)] + _MASK


def _underlined(line: str, column: int) -> int:
    match = _WORD.match(line, column - 1)
    return cell_len(match[0]) if match else 1


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
