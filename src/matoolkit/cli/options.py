"""Options and arguments that several commands have, and what completes them."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from matoolkit.cli.client import path_of

# A person who presses Tab does not wait long, and gets no error.
_SECONDS = 2.0
_MOST = 50


def _completing(asked: Callable[[Any], Iterator[tuple[str, str]]]) -> Callable[[str], list[tuple[str, str]]]:
    """Let the shell ask the admin API; any error means no completion."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        from matoolkit.cli.session import session

        try:
            with session(None, seconds=_SECONDS) as opened:
                return [(name, told) for name, told in asked(opened.client) if name.startswith(incomplete)][:_MOST]
        except Exception:  # noqa: BLE001 - a shell that completes nothing is better than one that shows a traceback
            return []

    return complete


def _runbooks(client: Any) -> Iterator[tuple[str, str]]:
    for runbook in client.whole_list(path_of("runbooks")):
        yield str(runbook["name"]), f"version {runbook['version']}"


def _batches(client: Any) -> Iterator[tuple[str, str]]:
    for batch in client.pages(path_of("batches"), most=_MOST):
        yield str(batch["id"]), f"{batch['runbookName']}, {batch['status']}"


def _held(client: Any) -> Iterator[tuple[str, str]]:
    for batch in client.pages(path_of("holds"), most=_MOST):
        yield str(batch["id"]), str(batch["runbookName"])


def _letters(client: Any) -> Iterator[tuple[str, str]]:
    for letter in client.pages(path_of("dead-letters"), most=_MOST):
        yield str(letter["id"]), f"{letter['messageType']}: {letter['reason']}"


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the runbook.", autocompletion=_completing(_runbooks))
]
RunbookOption = Annotated[
    str | None, typer.Option("--runbook", help="Only of this runbook.", autocompletion=_completing(_runbooks))
]
Batch = Annotated[
    int, typer.Argument(metavar="ID", min=1, help="Number of the batch.", autocompletion=_completing(_batches))
]
OneBatch = Annotated[
    int | None,
    typer.Argument(
        metavar="BATCH", min=1, help="Number of the batch.", autocompletion=_completing(_batches), show_default=False
    ),
]
BatchOption = Annotated[
    int | None, typer.Option("--batch", min=1, help="Only of this batch.", autocompletion=_completing(_batches))
]
HeldBatch = Annotated[
    int, typer.Argument(metavar="ID", min=1, help="Number of the batch.", autocompletion=_completing(_held))
]
OneHeldBatch = Annotated[
    int | None,
    typer.Argument(
        metavar="ID", min=1, help="Number of the batch.", autocompletion=_completing(_held), show_default=False
    ),
]
Letter = Annotated[
    int, typer.Argument(metavar="ID", min=1, help="Number of the dead letter.", autocompletion=_completing(_letters))
]
Version = Annotated[int | None, typer.Option("--version", min=1, help="Version.", show_default=False)]
Reason = Annotated[
    str | None, typer.Option("--reason", help="Why; kept in the audit log.", metavar="TEXT", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", "--force", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen, as the server decides it.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many at most.")]
All = Annotated[bool, typer.Option("--all", help="All of them, however many.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Redraw when something changes, until stopped.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the outcome; exit code 1 if it is bad.")]
To = Annotated[str | None, typer.Option("--to", metavar="FILE", help="Write it to a file instead.", show_default=False)]
Replace = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]


def given(reason: str | None) -> str:
    """Return the reason of a change that must have one."""
    if reason and reason.strip():
        return reason
    raise typer.BadParameter("say why: `--reason TEXT`")
