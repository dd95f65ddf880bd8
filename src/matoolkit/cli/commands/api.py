"""`matoolkit api`: serves the admin API, and looks whether one is there."""

import typer

from matoolkit.cli.services import settings_of_service
from matoolkit.cli.session import Session, asks_for_text, asks_the_api
from matoolkit.cli.tables import Column
from matoolkit.hosting.process import stopped_by_signals

app = typer.Typer(no_args_is_help=True)

_STATUS = (Column("ADDRESS", "address"), Column("PROCESS", "process"), Column("DATABASE", "database"))


@app.command()
def serve(
    *,
    host: str = typer.Option("127.0.0.1", help="Address to serve on; without Entra settings a loopback one."),
    port: int = typer.Option(8080, min=0, max=65535, help="Port to serve on; 0 is any free one."),
) -> None:
    """Serve the admin API until stopped. SIGTERM and Ctrl-C give the requests at hand 20 seconds to end."""
    with stopped_by_signals() as stop:
        from matoolkit.hosting.api import run_api

        run_api(settings_of_service(), host, port, stop)


@app.command()
@asks_the_api
def status(session: Session) -> None:
    """Say whether the admin API works: its process answers, its database has the right tables."""
    process, database = session.client.get("/healthz"), session.client.get("/readyz")
    seen = {"address": session.client.address, "process": process.get("status"), "database": database.get("status")}
    session.show(seen, _STATUS)


@app.command()
@asks_for_text
def metrics(session: Session) -> None:
    """Print the metrics, as Prometheus reads them."""
    typer.echo(b"".join(session.client.text("/metrics", "text/plain")), nl=False)
