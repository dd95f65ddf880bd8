"""`matoolkit worker`: does the jobs of batches, and says what it can do."""

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matoolkit.cli.client import path_of
from matoolkit.cli.commands.worker_call import call
from matoolkit.cli.commands.worker_check import WorkerId, check, worker_settings
from matoolkit.cli.output import stderr, stdout
from matoolkit.cli.services import settings_of_service
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column
from matoolkit.errors import InvalidSettings
from matoolkit.hosting.process import stopped_by_signals
from matoolkit.settings import bus_variables_of_worker
from matoolkit.words import counted

if TYPE_CHECKING:
    from matoolkit.worker.custom import BrokenFile
    from matoolkit.worker.registry import Registry

app = typer.Typer()

BROKEN_FILES = 1


_CATALOGUE = (
    Column("FUNCTION", "name"),
    Column("WORKERS", "workers"),
    Column("PARAMETERS", lambda item: [_parameter(one) for one in item.get("parameters") or []]),
)

HealthPort = Annotated[
    int | None,
    typer.Option(help="Answer /healthz and /readyz on this port.", min=1, max=65535, show_default=False),
]


@app.callback(invoke_without_command=True)
def worker(context: typer.Context, worker_id: WorkerId = None, health_port: HealthPort = None) -> None:
    """Do the jobs of a worker id until stopped; the same as `worker run`."""
    if context.invoked_subcommand is None:
        run(worker_id, health_port)


@app.command()
def run(worker_id: WorkerId = None, health_port: HealthPort = None) -> None:
    """Do the jobs of a worker id until stopped. SIGTERM and Ctrl-C let running jobs end and give the rest back."""
    # First, so that what is wrong with a variable of the worker is told under its own name.
    known = worker_settings(worker_id)
    settings = settings_of_service(bus_variables_of_worker(os.environ))
    if known.worker_id is None:
        raise InvalidSettings(["it is not set which jobs to take"], hint="give --id, or set WORKER_ID")
    with stopped_by_signals() as stop:
        from matoolkit.hosting.worker import run_worker

        run_worker(settings, known, known.worker_id, stop, health_port)


@app.command()
@asks_the_api
def catalogue(session: Session) -> None:
    """List the functions that runbooks can call as the admin API knows them, and which workers announced them."""
    session.show_all(session.client.whole_list(path_of("functions")), _CATALOGUE, nothing="no function is known")


@app.command()
def functions(
    *,
    json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the functions that a worker here would have, your own included; mandatory parameters are marked with *.

    Exit code 1: a file in CUSTOM_MODULES_PATH cannot be used.
    """
    from matoolkit.system import functions_of_worker

    registry, broken = functions_of_worker(worker_settings(None))
    if json:
        _print_json(registry)
    else:
        _print_text(registry)
    _print_broken(broken)
    if broken:
        raise typer.Exit(BROKEN_FILES)


app.command()(check)
app.command()(call)


def _print_text(registry: "Registry") -> None:
    for function in registry:
        stdout().print(f"{function.name}  {function.doc}")
        for one in function.parameters:
            name = f"{one.name}{'*' if one.is_mandatory else ''}"
            stdout().print(f"  {name:<32} {one.type}{', secret' if one.is_secret else ''}")


def _print_json(registry: "Registry") -> None:
    import orjson

    listed = [
        {
            "name": function.name,
            "doc": function.doc,
            "parameters": [
                {"name": one.name, "type": one.type, "mandatory": one.is_mandatory, "secret": one.is_secret}
                for one in function.parameters
            ],
        }
        for function in registry
    ]
    typer.echo(orjson.dumps(listed, option=orjson.OPT_INDENT_2).decode())


def _parameter(one: dict[str, Any]) -> str:
    return f"{one.get('name')}{'*' if one.get('isMandatory') else ''}"


def _print_broken(broken: "list[BrokenFile]") -> None:
    for one in broken:
        stderr().print(f"{one.path}: {one.why}")
    if broken:
        stderr().print(f"{counted(len(broken), 'file')} cannot be used")
