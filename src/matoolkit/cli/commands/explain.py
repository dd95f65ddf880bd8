"""`matoolkit explain`: why nothing happens, and what the code of an error or a finding means."""

import inspect
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from matoolkit.cli.client import path_of
from matoolkit.cli.explain_view import batch_lines, member_lines
from matoolkit.cli.options import Batch
from matoolkit.cli.output import stdout
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, Form, has_only_letters, number, print_item, print_items, when
from matoolkit.cli.whom import Who, member_meant
from matoolkit.errors import MatoolkitError, UnknownCode, error_kinds
from matoolkit.runbook.finding_kinds import FindingKind
from matoolkit.runbook.findings import FINDING_KINDS

_WHYS = (
    Column("PHASE", "phaseName"),
    number("MEMBERS", "members"),
    Column("KIND", "kind"),
    Column("WHY", "sentence"),
    when("SINCE", "since"),
    when("UNTIL", "until"),
    Column("ENDED BY", "endedBy"),
    Column("WHO", "who"),
    Column("COMMAND", "command"),
)
_OF_MEMBER = (*_WHYS[2:4], Column("MORE", "detail"), *_WHYS[4:])
_CODE = "code"


class CodeOrSubject(TyperGroup):
    """A group whose first word may be a code instead of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; what is no command is a code."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = [_CODE, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=CodeOrSubject, invoke_without_command=True)

_Phase = Annotated[str | None, typer.Option("--phase", metavar="NAME", help="Only what is about this phase.")]


@app.callback()
def explain(context: typer.Context) -> None:
    """Say why nothing happens, or what a code means, such as AD404 or RB204. Without anything all codes are listed."""
    if context.invoked_subcommand is None:
        for name, kind in sorted(_known().items()):
            stdout().print(f"{name}  {_title(kind)}")


@app.command("batch")
@asks_the_api
def explain_batch(session: Session, batch: Batch, phase: _Phase = None) -> None:
    """Say for what a batch waits: as a whole, phase by phase, and its members by what they wait for."""
    found = session.client.get(path_of("batches", batch, "explain"), phase=phase)
    _show(session, found, _WHYS, "lines", batch_lines)


@app.command("member")
@asks_the_api
def explain_member(session: Session, batch: Batch, who: Who) -> None:
    """Say for what a member of a batch waits, and what ends that."""
    member = member_meant(session, batch, who)["id"]
    found = session.client.get(path_of("batches", batch, "members", member, "explain"))
    _show(session, found, _OF_MEMBER, "whys", member_lines)


@app.command(_CODE, hidden=True)
def explain_code(code: Annotated[str, typer.Argument(help="Code of an error or a finding.")]) -> None:
    """Say what the code of an error or a finding means."""
    known = _known()
    found = known.get(code.strip().upper())
    if found is None:
        raise UnknownCode(code, known)
    stdout().print(_explained(found))


def _show(session: Session, found: Mapping[str, Any], columns: tuple[Column, ...], rows: str, draw: Any) -> None:
    """Show an explanation: sentences for people, its rows as CSV or lines, and all of it as JSON or YAML."""
    if session.form in (Form.JSON, Form.YAML):
        print_item(found, columns, session.form)
    elif not session.is_for_people:
        print_items(found[rows], columns, session.form)
    else:
        console = stdout()
        width = console.width if console.is_terminal and session.form is not Form.WIDE else None
        for line in draw(found, session.now(), width, letters=has_only_letters(console)):
            console.print(line)


def _known() -> dict[str, type[MatoolkitError] | FindingKind]:
    return {kind.code: kind for kind in error_kinds()} | FINDING_KINDS


def _title(kind: type[MatoolkitError] | FindingKind) -> str:
    return kind.title if isinstance(kind, FindingKind) else inspect.cleandoc(kind.__doc__ or "").splitlines()[0]


def _explained(kind: type[MatoolkitError] | FindingKind) -> str:
    if isinstance(kind, FindingKind):
        return f"{kind.code} {kind.title} ({kind.severity})\n\n{kind.explanation}"
    ends = f"exit code {kind.exit_code}, HTTP status {kind.http_status}"
    return f"{kind.code} ({ends})\n\n{inspect.cleandoc(kind.__doc__ or '')}"
