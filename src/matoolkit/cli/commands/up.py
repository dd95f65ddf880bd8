"""`matoolkit up`: the whole system in one process, on the demo."""

import os

import typer

from matoolkit.settings import Settings, load_settings
from matoolkit.telemetry import configure_logging


def up(
    *,
    fresh: bool = typer.Option(False, "--fresh", help="Forget what was before: begin with a new state."),
    database_url: str | None = typer.Option(None, "--database-url", help="State database to use instead of SQLite."),
) -> None:
    """Run the whole system on the demo, with a worker that only pretends. Ctrl-C stops it, the next start goes on."""
    from pydantic import SecretStr

    from matoolkit.clock import SystemClock
    from matoolkit.hosting.all_in_one import quickened, run_all
    from matoolkit.hosting.demo import SOURCE_VARIABLE, begin_anew, demo_runbook, demo_source

    settings = quickened(load_settings(Settings))
    configure_logging(settings.log_level, settings.log_format)
    if fresh and (database_url or "database_url" in settings.model_fields_set):
        raise typer.BadParameter("a database of your own is not emptied: name a new one", param_hint="--fresh")
    if database_url:
        settings = settings.model_copy(update={"database_url": SecretStr(database_url)})
    runbook = demo_runbook()
    if fresh:
        begin_anew()
    environ = dict(os.environ)
    if not environ.get(SOURCE_VARIABLE):
        environ[SOURCE_VARIABLE] = demo_source(SystemClock().now())
    run_all(settings, runbook, environ)
