"""`matoolkit api`: serves the admin API."""

import typer

from matoolkit.cli.services import settings_of_service

app = typer.Typer(help="Serve the admin API.", no_args_is_help=True)


@app.callback()
def api() -> None:
    """Serve the admin API."""


@app.command()
def serve(
    *,
    host: str = typer.Option("127.0.0.1", help="Address to serve on; without Entra settings a loopback one."),
    port: int = typer.Option(8080, min=0, max=65535, help="Port to serve on; 0 is any free one."),
) -> None:
    """Serve the admin API until stopped. SIGTERM and Ctrl-C finish the requests at hand."""
    from matoolkit.hosting.api import run_api

    run_api(settings_of_service(), host, port)
