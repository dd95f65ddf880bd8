"""`matoolkit scheduler`: finds batches, membership changes and what is due."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from matoolkit.cli.output import stderr, stdout
from matoolkit.cli.services import settings_of_service
from matoolkit.errors import AnotherSchedulerWorks
from matoolkit.hosting.process import stopped_by_signals

if TYPE_CHECKING:
    from matoolkit.scheduler.tallies import Tally

app = typer.Typer(no_args_is_help=True)

SOMETHING_FAILED = 1

# What is printed of a tick: fits a terminal of 80 columns.
_LINES = {
    "rows": {"read": "rows_read", "set aside": "rows_set_aside", "ignored": "rows_ignored"},
    "batches": {"created": "batches_created", "rescheduled": "batches_rescheduled", "held": "batches_held"},
    "members": {
        "added": "members_added",
        "removed": "members_removed",
        "moved": "members_moved",
        "returned": "members_returned",
        "refreshed": "members_refreshed",
    },
    "phases": {"dispatched": "phases_dispatched"},
}


class Form(StrEnum):
    """How a tick is printed."""

    TEXT = "text"
    JSON = "json"


@app.command()
def run() -> None:
    """Tick and sweep until stopped. SIGTERM and Ctrl-C finish the transaction at hand."""
    with stopped_by_signals() as stop:
        from matoolkit.hosting.scheduler import run_scheduler

        run_scheduler(settings_of_service(), stop)


@app.command()
def tick(
    *,
    form: Annotated[Form, typer.Option("--output", "-o", help="How to print it.")] = Form.TEXT,
    json: bool = typer.Option(False, "--json", help="Short for -o json."),
) -> None:
    """Tick once and print what was done for every runbook. Exit code 1: a source could not be compared."""
    with stopped_by_signals() as stop:
        from matoolkit.hosting.scheduler import tick_once

        tallies = tick_once(settings_of_service(), stop)
    if tallies is None:
        raise AnotherSchedulerWorks
    if json or form is Form.JSON:
        _print_json(tallies)
    else:
        _print_text(tallies)
    if any(tally.error for tally in tallies):
        raise typer.Exit(SOMETHING_FAILED)


def _print_text(tallies: "list[Tally]") -> None:
    if not tallies:
        stderr().print("no runbook is active: publish one first")
    for tally in tallies:
        stdout().print(f"{tally.runbook_name} v{tally.runbook_version}, {tally.seconds:.1f} s")
        for what, fields in _LINES.items():
            counts = ", ".join(f"{getattr(tally, field):,} {word}" for word, field in fields.items())
            stdout().print(f"  {what:<8} {counts}")
        if tally.error:
            stderr().print(f"{tally.runbook_name}: {tally.error}")
        for remark in tally.remarks:
            where = f"batch {remark.batch_id}: " if remark.batch_id else ""
            stderr().print(f"{tally.runbook_name}: {where}{remark.count:,} {remark.seen}: {', '.join(remark.samples)}")


def _print_json(tallies: "list[Tally]") -> None:
    from dataclasses import asdict

    import orjson

    typer.echo(orjson.dumps([asdict(tally) for tally in tallies], option=orjson.OPT_INDENT_2).decode())
