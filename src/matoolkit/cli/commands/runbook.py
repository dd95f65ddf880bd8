"""`matoolkit runbook`: check runbooks before anything reaches a tenant."""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from matoolkit.cli.files import name_of, read_file
from matoolkit.cli.known_functions import functions_known
from matoolkit.cli.lint_output import LintedFile, as_github, as_json, as_text
from matoolkit.cli.output import print_error, stderr, stdout
from matoolkit.errors import Finding, UnreadableFile
from matoolkit.words import counted

if TYPE_CHECKING:
    from matoolkit.runbook.catalogue import Catalogue

app = typer.Typer(no_args_is_help=True)

FINDINGS = 1
MOST_SHOWN = 200


class LintFormat(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


class SchemaDraft(StrEnum):
    """Dialects of JSON Schema."""

    LATEST = "2020-12"
    DRAFT_07 = "draft-07"


@app.command()
def lint(
    context: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Runbooks to check; - is standard input.")],
    output: Annotated[LintFormat, typer.Option("--output", "-o", help="How findings are written.")] = LintFormat.TEXT,
    *,
    json: Annotated[bool, typer.Option("--json", help="Short for -o json.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Treat every warning as an error.")] = False,
    functions: Annotated[
        Path | None,
        typer.Option(
            "--functions",
            metavar="DIR",
            help="Folder with functions of your own; CUSTOM_MODULES_PATH when not given. Its files are imported.",
            show_default=False,
        ),
    ] = None,
    announced: Annotated[
        bool, typer.Option("--announced", help="Know the functions that workers announced: asks the admin API.")
    ] = False,
) -> None:
    """Check runbooks and report all problems.

    Exit code 0: no errors. 1: errors were found. 3: a file could not be read.
    """
    known = functions_known(functions, os.environ, context.obj, announced=announced)
    linted, unreadable = _lint_files(files, known, strict=strict)
    match LintFormat.JSON if json else output:
        case LintFormat.JSON:
            typer.echo(as_json(linted, unreadable))
        case LintFormat.GITHUB:
            for file in linted:
                for found in file.report.findings:
                    typer.echo(as_github(file, found))
        case LintFormat.TEXT if linted:
            _print_text(linted)
        case LintFormat.TEXT:
            pass
    for error in unreadable:
        print_error(error)
    if unreadable:
        raise typer.Exit(UnreadableFile.exit_code)
    if any(file.report.errors for file in linted):
        raise typer.Exit(FINDINGS)


@app.command()
def schema(
    draft: Annotated[SchemaDraft, typer.Option(help="Dialect of JSON Schema.")] = SchemaDraft.LATEST,
) -> None:
    """Print the JSON Schema of the language, for completion in an editor."""
    from matoolkit.runbook.schema import json_schema

    typer.echo(orjson.dumps(json_schema(draft.value), option=orjson.OPT_INDENT_2).decode())


@app.command()
def functions() -> None:
    """List the built-in functions and their parameters; mandatory ones are marked with *."""
    from matoolkit.runbook.catalogue import BUILT_IN

    for function in BUILT_IN.values():
        parameters = " ".join(f"{known.name}{'*' if known.is_mandatory else ''}" for known in function.parameters)
        stdout().print(f"{function.name:<28} {parameters}")


def _lint_files(files: list[str], known: "Catalogue", *, strict: bool) -> tuple[list[LintedFile], list[UnreadableFile]]:
    from matoolkit.runbook.parse import lint_runbook, strictly
    from matoolkit.runbook.source import MAX_BYTES

    linted: list[LintedFile] = []
    unreadable: list[UnreadableFile] = []
    for file in files:
        try:
            report = lint_runbook(read_file(file, MAX_BYTES), known)
        except UnreadableFile as error:
            unreadable.append(error)
        else:
            linted.append(
                LintedFile("<stdin>" if file == "-" else name_of(file), strictly(report) if strict else report)
            )
    return linted, unreadable


def _print_text(linted: list[LintedFile]) -> None:
    console = stdout()
    for file in linted:
        for found in _worth_reading(file.report.findings):
            console.print(as_text(file, found))
    errors = sum(file.report.errors for file in linted)
    findings = sum(len(file.report.findings) for file in linted)
    shown = sum(len(_worth_reading(file.report.findings)) for file in linted)
    summary = f"{counted(errors, 'error')}, {counted(findings - errors, 'warning')} in {counted(len(linted), 'file')}"
    more = f"; {shown:,} of {findings:,} shown, -o json shows all" if shown < findings else ""
    stderr().print(f"{summary}{more}")


def _worth_reading(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Shorten a list that is too long to read; warnings are cut first."""
    if len(findings) <= MOST_SHOWN:
        return findings
    return sorted(findings, key=lambda found: not found.is_error)[:MOST_SHOWN]
