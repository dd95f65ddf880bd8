"""`matoolkit up`: the whole system in one process, on the demo."""

import logging
import os
from typing import TYPE_CHECKING

import typer

from matoolkit.cli.output import stdout
from matoolkit.hosting.process import stopped_by_signals
from matoolkit.settings import Settings, load_settings
from matoolkit.telemetry import configure_logging, send_logs

if TYPE_CHECKING:
    from matoolkit.hosting.all_in_one import Audience, Places

log = logging.getLogger(__name__)


def up(
    *,
    fresh: bool = typer.Option(False, "--fresh", help="Delete the old state and start again."),
    database_url: str | None = typer.Option(None, "--database-url", help="State database to use instead of SQLite."),
    port: int | None = typer.Option(
        None, min=0, max=65535, help="Port of the admin API; else 8080, or the next that is free."
    ),
) -> None:
    """Run the whole system on the demo, with a simulated tenant. Ctrl-C stops it, the next start goes on."""
    with stopped_by_signals() as stop:
        from pydantic import SecretStr

        from matoolkit.hosting.all_in_one import Wishes, quickened, run_all

        settings = quickened(load_settings(Settings))
        if database_url:
            settings = settings.model_copy(update={"database_url": SecretStr(database_url)})
        has_own_database = "database_url" in settings.model_fields_set
        if fresh and has_own_database:
            raise typer.BadParameter("a database of your own is not emptied: name a new one", param_hint="--fresh")
        run_all(settings, os.environ, Wishes(port, fresh, has_own_database), _audience(settings), stop)


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
    log.info("admin API on %s, tenant on %s, state in %s", places.api_url, places.tenant_url, places.database)
