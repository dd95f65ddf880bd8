"""`matoolkit scheduler`: finds batches, membership changes and what is due."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from matoolkit.cli.output import stderr, stdout
from matoolkit.errors import AnotherSchedulerWorks
from matoolkit.settings import Settings, load_settings
from matoolkit.telemetry import configure_logging

if TYPE_CHECKING:
    from matoolkit.scheduler.tallies import Tally

app = typer.Typer(help="Find batches, membership changes and what is due.", no_args_is_help=True)

SOMETHING_FAILED = 1

_COLUMNS = {
    "read": "rows_read",
    "set aside": "rows_set_aside",
    "ignored": "rows_ignored",
    "batches": "batches_created",
    "rescheduled": "batches_rescheduled",
    "held": "batches_held",
    "added": "members_added",
    "removed": "members_removed",
    "moved": "members_moved",
    "returned": "members_returned",
    "refreshed": "members_refreshed",
    "phases": "phases_dispatched",
}


class Form(StrEnum):
    """How a tick is printed."""

    TABLE = "table"
    JSON = "json"


@app.command()
def run() -> None:
    """Tick and sweep until stopped. SIGTERM and Ctrl-C finish the transaction at hand."""
    from matoolkit.hosting.scheduler import run_scheduler

    run_scheduler(_settings())


@app.command()
def tick(
    *,
    form: Annotated[Form, typer.Option("--output", "-o", help="How to print it.")] = Form.TABLE,
    json: bool = typer.Option(False, "--json", help="Short for -o json."),
) -> None:
    """Tick once and print what was done for every runbook. Exit code 1: a source could not be compared."""
    from matoolkit.hosting.scheduler import tick_once

    tallies = tick_once(_settings())
    if tallies is None:
        raise AnotherSchedulerWorks
    if json or form is Form.JSON:
        _print_json(tallies)
    else:
        _print_table(tallies)
    if any(tally.error for tally in tallies):
        raise typer.Exit(SOMETHING_FAILED)


def _settings() -> Settings:
    settings = load_settings(Settings)
    configure_logging(settings.log_level, settings.log_format)
    return settings


def _print_table(tallies: "list[Tally]") -> None:
    from rich.table import Table

    if not tallies:
        stderr().print("no runbook is active: publish one first")
        return
    table = Table("runbook", *_COLUMNS, "seconds", box=None, pad_edge=False)
    for tally in tallies:
        numbers = [f"{getattr(tally, field):,}" for field in _COLUMNS.values()]
        table.add_row(f"{tally.runbook_name} v{tally.runbook_version}", *numbers, f"{tally.seconds:.1f}")
    stdout().print(table)
    for tally in tallies:
        if tally.error:
            stderr().print(f"{tally.runbook_name}: {tally.error}")
        for remark in tally.remarks:
            where = f"batch {remark.batch_id}: " if remark.batch_id else ""
            samples = ", ".join(remark.samples)
            stderr().print(f"{tally.runbook_name}: {where}{remark.count:,} {remark.seen} ({samples})")


def _print_json(tallies: "list[Tally]") -> None:
    from dataclasses import asdict

    import orjson

    typer.echo(orjson.dumps([asdict(tally) for tally in tallies], option=orjson.OPT_INDENT_2).decode())
