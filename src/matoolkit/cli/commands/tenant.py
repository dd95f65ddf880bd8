"""`matoolkit tenant`: a tenant to try things on."""

from pathlib import Path
from typing import Annotated

import typer

from matoolkit.hosting.process import stopped_by_signals

app = typer.Typer(no_args_is_help=True)


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port on this machine; 0 takes any that is free.", min=0, max=65535)] = 8765,
    seed: Annotated[
        Path | None, typer.Option(help="JSON file with users, groups, lags and faults to begin with.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="File that keeps the state; an existing file is continued.")
    ] = None,
) -> None:
    """Serve a simulated tenant until stopped, and print its address. Without --state nothing is kept afterwards."""
    with stopped_by_signals() as stop:
        from matoolkit.hosting.tenant import run_tenant

        run_tenant(port, seed, state, typer.echo, stop)
