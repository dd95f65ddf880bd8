"""Findings for people, for programs and for GitHub."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from rich.cells import cell_len
from rich.text import Text

from matoolkit.cli.answers import printable
from matoolkit.cli.output import stderr
from matoolkit.errors import Finding, UnreadableFile
from matoolkit.runbook.findings import FINDING_KINDS
from matoolkit.runbook.pointing import pointed
from matoolkit.runbook.source import Source

if TYPE_CHECKING:
    from matoolkit.runbook.parse import Report


@dataclass(frozen=True, slots=True)
class LintedFile:
    """A file and what was found in it."""

    name: str
    report: "Report"


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
    about = pointed(linted.report.source, found)
    if about and about.line.strip():
        number = f"{found.line:>6} | "
        text.append(f"{number}{about.line}\n")
        before = "".join("\t" if letter == "\t" else " " * cell_len(letter) for letter in about.line[: about.begin])
        text.append(f"{' ' * (len(number) - 2)}| {before}")
        text.append(f"{'^' * max(1, cell_len(about.line[about.begin : about.end]))}\n", style=style)
    if found.hint:
        text.append(f"       hint: {found.hint}\n")
    return text


def as_json(files: Iterable[LintedFile], unreadable: Iterable[UnreadableFile]) -> str:
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
    document = {
        "errors": errors,
        "warnings": len(findings) - errors,
        "findings": findings,
        "unreadable": [{"file": error.path, "message": error.message} for error in unreadable],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def as_github(linted: LintedFile, found: Finding) -> str:
    """Write a finding as a workflow command, which GitHub shows beside the line."""
    message = f"{found.message} ({found.hint})" if found.hint else found.message
    where = f"file={_property(linted.name)},line={found.line},col={found.column},title={found.code}"
    return f"::{found.severity} {where}::{_escaped(message)}"


def print_findings(name: str, content: bytes, errors: Sequence[Mapping[str, Any]]) -> None:
    """Print on standard error what a server found in a document, each with its line."""
    known = [found for error in errors if (found := _finding(error))]
    from matoolkit.runbook.parse import Report

    source = Source(content.decode(errors="replace").removeprefix("\ufeff"))
    linted = LintedFile(name, Report(known, None, source))
    for found in known:
        stderr().print(as_text(linted, found))


def _finding(error: Mapping[str, Any]) -> Finding | None:
    """Read a finding of an answer; an unknown finding of a newer server has only its message."""
    code, line, column = error.get("code"), error.get("line"), error.get("column")
    kind = FINDING_KINDS.get(str(code))
    if kind is None or not isinstance(line, int) or not isinstance(column, int) or line < 1 or column < 1:
        return None
    hint = error.get("hint")
    told = printable(hint) if isinstance(hint, str) else None
    return Finding(kind.code, kind.severity, printable(error.get("message")), line, column, told)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
