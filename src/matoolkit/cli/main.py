"""The `matoolkit` command: its groups, and how every outcome becomes an exit code."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import NoReturn

import typer
import typer.main

from matoolkit import __version__
from matoolkit.cli.commands import (
    api,
    audit,
    auth,
    automation,
    batch,
    batch_failures,
    batch_members,
    bus,
    config,
    db,
    deadletter,
    hold,
    member,
    orchestrator,
    published,
    query,
    runbook,
    scheduler,
    simulate,
    tenant,
    up,
    worker,
)
from matoolkit.cli.output import print_error
from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import MatoolkitError
from matoolkit.telemetry import log_the_end, speak_plainly

PROGRAM = "matoolkit"

app = typer.Typer(
    name=PROGRAM,
    help="Runs tenant-to-tenant migrations from runbooks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_ASKING = "Runbooks and batches, through the admin API"
_SETTING_UP = "The command line itself"
_RUNNING = "Running the system"

runbook.app.add_typer(published.app)
batch.app.add_typer(batch_members.app)
batch.app.add_typer(batch_failures.app)

app.add_typer(runbook.app, name="runbook", rich_help_panel=_ASKING)
app.add_typer(automation.app, name="automation", rich_help_panel=_ASKING)
app.add_typer(query.app, name="query", rich_help_panel=_ASKING)
app.add_typer(query.templates, name="template", rich_help_panel=_ASKING)
app.add_typer(batch.app, name="batch", rich_help_panel=_ASKING)
app.add_typer(member.app, name="member", rich_help_panel=_ASKING)
app.add_typer(hold.app, name="hold", rich_help_panel=_ASKING)
app.add_typer(deadletter.app, name="dead-letter", rich_help_panel=_ASKING)
app.add_typer(audit.app, name="audit", rich_help_panel=_ASKING)
app.add_typer(auth.app, name="auth", rich_help_panel=_SETTING_UP)
app.add_typer(config.app, name="config", rich_help_panel=_SETTING_UP)
app.command(rich_help_panel=_RUNNING)(up.up)
app.add_typer(api.app, name="api", rich_help_panel=_RUNNING)
app.add_typer(scheduler.app, name="scheduler", rich_help_panel=_RUNNING)
app.add_typer(orchestrator.app, name="orchestrator", rich_help_panel=_RUNNING)
app.add_typer(worker.app, name="worker", rich_help_panel=_RUNNING)
app.add_typer(db.app, name="db", rich_help_panel=_RUNNING)
app.add_typer(bus.app, name="bus", rich_help_panel=_RUNNING)
app.add_typer(tenant.app, name="tenant", rich_help_panel=_RUNNING)
app.command("simulate", rich_help_panel=_RUNNING)(simulate.simulate)


@app.callback(invoke_without_command=True)
def matoolkit(*, version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Run tenant-to-tenant migrations from runbooks."""
    if version:
        typer.echo(f"matoolkit {__version__}")
        raise typer.Exit


def main() -> NoReturn:
    """Run the command and exit."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its number instead of failing.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str], clock: Clock | None = None) -> int:
    """Run the command and return its exit code. Typer answers wrong usage and Ctrl-C, we answer the rest."""
    speak_plainly()
    try:
        _command()(list(arguments), prog_name=PROGRAM, obj=clock or SystemClock())
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except MatoolkitError as error:
        if error.__cause__ is not None:
            _show_traceback(error.__cause__)
        return _ended_by(error)
    except OSError as fault:
        return _ended_by(MatoolkitError(f"cannot go on: {(fault.strerror or str(fault)).lower()}"))
    except Exception as bug:  # noqa: BLE001 - the last resort: people get a sentence, not a traceback
        return _show_bug(bug)
    return 0


@cache
def _command() -> Callable[..., object]:
    return typer.main.get_command(app)


def _show_bug(bug: Exception) -> int:
    _show_traceback(bug)
    hint = "run it again with MATOOLKIT_DEBUG=1 to see where, and please report it"
    return _ended_by(MatoolkitError(f"this is a bug in matoolkit: {type(bug).__name__}", hint=hint))


def _ended_by(error: MatoolkitError) -> int:
    if not log_the_end(error):
        print_error(error)
    return error.exit_code


def _show_traceback(fault: BaseException) -> None:
    if os.environ.get("MATOOLKIT_DEBUG") == "1":
        traceback.print_exception(fault)
