"""`matoolkit orchestrator`: coordinates the work of batches."""

import typer

from matoolkit.settings import Settings, load_settings
from matoolkit.telemetry import configure_logging

app = typer.Typer(help="Coordinate the work of batches.", no_args_is_help=True)


@app.callback()
def orchestrator() -> None:
    """Coordinate the work of batches."""


@app.command()
def run() -> None:
    """Handle events and results until stopped. SIGTERM and Ctrl-C finish the pile at hand."""
    from matoolkit.hosting.orchestrator import run_orchestrator

    settings = load_settings(Settings)
    configure_logging(settings.log_level, settings.log_format)
    run_orchestrator(settings)
