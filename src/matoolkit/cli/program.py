"""The commands of `matoolkit`, and how every outcome becomes an exit code.

To add a command to a group, add a function to one of its modules. To add a module, a group or a command of its own,
change the table below; `cli/later.py` says what its lines mean. A module of commands imports what is slow to import,
such as a database, a web framework or pydantic, inside the function that needs it: `tests/cli/test_quick.py` holds it
to that.
"""

import os
import traceback
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer
import typer.main

from matoolkit.cli.interrupts import INTERRUPTED
from matoolkit.cli.later import Entry, Later
from matoolkit.cli.quick_values import read_quickly
from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import MatoolkitError

PROGRAM = "matoolkit"

_ASKING = "Runbooks and batches, through the admin API"
_SETTING_UP = "The command line itself"
_RUNNING = "Running the system"

_RUNBOOK = "Check, publish and look at runbooks, and learn their language."
_MEMBER = "Find members, see what was done for them, let them in or keep them out."
_DB = "Create, upgrade and check the tables of the state database."
_EXPLAIN = "Say why nothing happens to a batch or a member, or what the code of an error or a finding means."
_UP = "Run the whole system on the demo or a runbook of your own, with a simulated tenant."
_SIMULATE = "Play seeds: scheduler, orchestrators, workers, people and a source, in one thread, while things go wrong."

ENTRIES = (
    Entry("now", "Say what needs a person, the most urgent first, and what comes next.", _ASKING, ("now",)),
    Entry("inbox", "List all that waits for a person's decision, the oldest deadline first.", _ASKING, ("inbox",)),
    Entry("runbook", _RUNBOOK, _ASKING, ("runbook", "published")),
    Entry("automation", "Let the scheduler query a runbook's source, or not.", _ASKING, ("automation",)),
    Entry("query", "Look at what a runbook's source returns.", _ASKING, ("query",)),
    Entry("template", "Files to start a manual batch from.", _ASKING, ("query:templates",)),
    Entry(
        "batch",
        "Find, make, move and watch batches.",
        _ASKING,
        ("batch", "batch_members", "batch_failures", "batch_undo"),
    ),
    Entry("report", "Say who is done, who failed and why; for people, Excel or a manager.", _ASKING, ("report",)),
    Entry("member", _MEMBER, _ASKING, ("member",)),
    Entry("hold", "Approve what batches are held for, or cancel them.", _ASKING, ("hold",)),
    Entry("approval", "See what waits for sign-off, and sign it off.", _ASKING, ("approval",)),
    Entry("pause", "Bring work to a stop: everything, or a part of it.", _ASKING, ("pause",)),
    Entry("resume", "Let go on what was paused.", _ASKING, ("pause:going_on",)),
    Entry("freeze", "Write ahead when nothing is sent, such as at quarter end.", _ASKING, ("freeze",)),
    Entry("gate", "See what keeps work from going on, and open it.", _ASKING, ("gate",)),
    Entry("undo-failure", "Deal with steps that were to undo something and failed.", _ASKING, ("undofailures",)),
    Entry("dead-letter", "Deal with messages that could not be handled.", _ASKING, ("deadletter",)),
    Entry("audit", "See who changed what, and why.", _ASKING, ("audit",)),
    Entry("auth", "Sign in to the admin API.", _SETTING_UP, ("auth",)),
    Entry("config", "See and change the settings of the command line.", _SETTING_UP, ("config",)),
    Entry("explain", _EXPLAIN, _SETTING_UP, ("explain",)),
    Entry("up", _UP, _RUNNING, ("up",)),
    Entry("api", "Serve the admin API, or see whether it works.", _RUNNING, ("api",)),
    Entry("scheduler", "Find batches, membership changes and what is due.", _RUNNING, ("scheduler",)),
    Entry("orchestrator", "Coordinate the work of batches.", _RUNNING, ("orchestrator",)),
    Entry("worker", "Do the jobs of batches.", _RUNNING, ("worker",)),
    Entry("db", _DB, _RUNNING, ("db",)),
    Entry("bus", "Check and create the topics and subscriptions of a Service Bus.", _RUNNING, ("bus",)),
    Entry("tenant", "A tenant to try things on.", _RUNNING, ("tenant",)),
    Entry("simulate", _SIMULATE, _RUNNING, ("simulate",)),
)

_app = typer.Typer(
    name=PROGRAM,
    help="Runs tenant-to-tenant migrations from runbooks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@_app.callback(invoke_without_command=True)
def matoolkit(*, version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Run tenant-to-tenant migrations from runbooks."""
    if version:
        from matoolkit import __version__

        typer.echo(f"matoolkit {__version__}")
        raise typer.Exit


@cache
def program() -> Any:
    """Return the program as Typer runs it."""
    read_quickly()
    group: Any = typer.main.get_command(_app)
    for entry in ENTRIES:
        group.add_command(Later(entry))
    return group


def run(arguments: Sequence[str], clock: Clock | None = None) -> int:
    """Run a command and return its exit code. Typer answers wrong usage, we answer the rest."""
    try:
        program()(list(arguments), prog_name=PROGRAM, obj=clock or SystemClock())
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError):
            # Who reads has enough, as `head` does.
            return 0
        return done.code if isinstance(done.code, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except MatoolkitError as error:
        if error.__cause__ is not None:
            _show_traceback(error.__cause__)
        return _ended_by(error)
    except OSError as fault:
        return _ended_by(MatoolkitError(f"cannot go on: {(fault.strerror or str(fault)).lower()}"))
    except Exception as bug:  # noqa: BLE001 - the last resort: people get a sentence, not a traceback
        return _show_bug(bug)
    return 0


def _show_bug(bug: Exception) -> int:
    _show_traceback(bug)
    hint = "run it again with MATOOLKIT_DEBUG=1 to see where, and please report it"
    return _ended_by(MatoolkitError(f"this is a bug in matoolkit: {type(bug).__name__}", hint=hint))


def _ended_by(error: MatoolkitError) -> int:
    from matoolkit.cli.output import print_error
    from matoolkit.telemetry import log_the_end

    if not log_the_end(error):
        print_error(error)
    return error.exit_code


def _show_traceback(fault: BaseException) -> None:
    if os.environ.get("MATOOLKIT_DEBUG") == "1":
        traceback.print_exception(fault)
