"""`matoolkit explain`: what the code of an error or a finding means, wherever the command is installed."""

import inspect
from typing import Annotated

import typer

from matoolkit.cli.output import stdout
from matoolkit.errors import MatoolkitError, UnknownCode, error_kinds
from matoolkit.runbook.finding_kinds import FindingKind
from matoolkit.runbook.findings import FINDING_KINDS


def explain(
    code: Annotated[
        str | None, typer.Argument(help="Code of an error or a finding, such as AD404 or RB204.", show_default=False)
    ] = None,
) -> None:
    """Say what the code of an error or a finding means. Without a code all of them are listed."""
    known: dict[str, type[MatoolkitError] | FindingKind] = {kind.code: kind for kind in error_kinds()} | FINDING_KINDS
    if code is None:
        for name, kind in sorted(known.items()):
            stdout().print(f"{name}  {_title(kind)}")
        return
    found = known.get(code.strip().upper())
    if found is None:
        raise UnknownCode(code, known)
    stdout().print(_explained(found))


def _title(kind: type[MatoolkitError] | FindingKind) -> str:
    return kind.title if isinstance(kind, FindingKind) else inspect.cleandoc(kind.__doc__ or "").splitlines()[0]


def _explained(kind: type[MatoolkitError] | FindingKind) -> str:
    if isinstance(kind, FindingKind):
        return f"{kind.code} {kind.title} ({kind.severity})\n\n{kind.explanation}"
    ends = f"exit code {kind.exit_code}, HTTP status {kind.http_status}"
    return f"{kind.code} ({ends})\n\n{inspect.cleandoc(kind.__doc__ or '')}"
