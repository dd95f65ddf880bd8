"""`matoolkit orchestrator`: coordinates the work of batches."""

import typer

from matoolkit.cli.services import settings_of_service
from matoolkit.hosting.process import stopped_by_signals

app = typer.Typer(no_args_is_help=True)


@app.command()
def run() -> None:
    """Handle events and results until stopped. SIGTERM and Ctrl-C finish the pile at hand."""
    with stopped_by_signals() as stop:
        from matoolkit.hosting.orchestrator import run_orchestrator

        run_orchestrator(settings_of_service(), stop)
