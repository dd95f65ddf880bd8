"""`matoolkit up`: the whole system in one process, on the demo or a runbook of your own."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matoolkit.cli.files import name_of, read_file
from matoolkit.cli.output import stderr, stdout
from matoolkit.errors import InvalidRunbook
from matoolkit.hosting.process import stopped_by_signals
from matoolkit.runbook.source import MAX_BYTES
from matoolkit.settings import Settings, load_settings
from matoolkit.telemetry import configure_logging, send_logs

if TYPE_CHECKING:
    from matoolkit.hosting.all_in_one import Audience, Places
    from matoolkit.hosting.trial import Trial

# Faster than this, a year is over before the first look at it.
_FASTEST = 100_000

log = logging.getLogger(__name__)


def up(
    runbook: Annotated[
        str | None,
        typer.Argument(metavar="[RUNBOOK]", help="A runbook of your own to try; else the demo.", show_default=False),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(help="A file of rows that stands for the runbook's source.", show_default=False),
    ] = None,
    speed: Annotated[
        int | None,
        typer.Option(
            min=1, max=_FASTEST, help="How many times as fast time runs: 1440 is a day in a minute.", show_default=False
        ),
    ] = None,
    *,
    fresh: bool = typer.Option(False, "--fresh", help="Delete the old state and start again."),
    database_url: str | None = typer.Option(None, "--database-url", help="State database to use instead of SQLite."),
    port: int | None = typer.Option(
        None, min=0, max=65535, help="Port of the admin API; else 8080, or the next that is free."
    ),
) -> None:
    """Run the whole system on the demo or a runbook of your own, with a simulated tenant.

    Ctrl-C stops it, the next start goes on. Exit code 1: the runbook has errors, which are shown with their lines.
    """
    with stopped_by_signals() as stop:
        from pydantic import SecretStr

        from matoolkit.hosting.all_in_one import Wishes, run_all

        settings = load_settings(Settings)
        if database_url:
            settings = settings.model_copy(update={"database_url": SecretStr(database_url)})
        has_own_database = "database_url" in settings.model_fields_set
        if fresh and has_own_database:
            raise typer.BadParameter("a database of your own is not emptied: name a new one", param_hint="--fresh")
        wishes = Wishes(port, fresh, has_own_database, _trial(runbook, rows), speed)
        run_all(settings, os.environ, wishes, _audience(settings), stop)


def _trial(runbook: str | None, rows: Path | None) -> "Trial | None":
    """Read a runbook of your own, and show what is wrong with it before anything starts."""
    from matoolkit.cli.lint_output import LintedFile, as_text
    from matoolkit.hosting.trial import trial_of

    if runbook is None:
        if rows is not None:
            raise typer.BadParameter("rows stand for the source of a runbook: name the runbook", param_hint="--rows")
        return None
    trial = trial_of(name_of(runbook), read_file(runbook, MAX_BYTES), rows)
    for found in trial.report.findings:
        stderr().print(as_text(LintedFile(trial.file, trial.report), found))
    if trial.report.runbook is None:
        raise InvalidRunbook(trial.report.findings)
    return trial


def _audience(settings: Settings) -> "Audience":
    """Let the story be told, unless somebody asked for a log."""
    from matoolkit.cli.story_output import StoryHandler, Teller
    from matoolkit.hosting.all_in_one import Audience

    if "log_format" in settings.model_fields_set:
        configure_logging(settings.log_level, settings.log_format)
        return Audience(_log_places)
    teller = Teller(stdout())
    send_logs(StoryHandler(teller), settings.log_level)
    return Audience(teller.welcome, teller.tell)


def _log_places(places: "Places") -> None:
    log.info("pages and admin API on %s, tenant on %s, state in %s", places.api_url, places.tenant_url, places.database)
