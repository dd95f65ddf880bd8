"""`matoolkit bus`: the topics and subscriptions of a Service Bus namespace.

Only these commands need the right to manage the namespace. What talks to it is imported when it is needed.
"""

from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from matoolkit.cli.output import stderr
from matoolkit.cli.session import Json, Output
from matoolkit.cli.tables import Column, Form, print_items
from matoolkit.errors import InvalidSettings
from matoolkit.runbook.values import worker_id
from matoolkit.settings import Settings, load_settings
from matoolkit.words import counted

if TYPE_CHECKING:
    from matoolkit.bus.servicebus.administration import Administration

app = typer.Typer(no_args_is_help=True)

NOT_AS_IT_SHOULD_BE = 1

_DIFFERENCES = (
    Column("ENTITY", "entity", is_whole=True),
    Column("WHAT", "what", is_whole=True),
    Column("FOUND", "found"),
    Column("WANTED", "wanted"),
    Column("COMMAND", "command"),
)
_MADE = (Column("ENTITY", "entity", is_whole=True), Column("WHAT", "what"))

Workers = Annotated[
    list[str] | None,
    typer.Option(
        "--worker",
        metavar="ID",
        help="A worker that has a subscription; may be repeated. If none is given: those that the state knows.",
        show_default=False,
    ),
]


@app.command()
def check(worker: Workers = None, output: Output = Form.TABLE, *, json: Json = False) -> None:
    """Compare the namespace with what this version needs. Nothing is changed. Exit code 1: they differ."""
    with ExitStack() as stack:
        opened, workers = _opened(stack, worker)
        found = [asdict(one) for one in opened.differences(workers)]
    print_items(found, _DIFFERENCES, Form.JSON if json else output)
    told = counted(len(found), "difference") if found else "nothing differs"
    stderr().print(f"{_of(workers)}: {told}")
    if found:
        raise typer.Exit(NOT_AS_IT_SHOULD_BE)


@app.command()
def create(
    worker: Workers = None,
    output: Output = Form.TABLE,
    *,
    json: Json = False,
    change: Annotated[
        bool, typer.Option("--change", help="Also change what exists and differs, where Service Bus allows it.")
    ] = False,
) -> None:
    """Create the topics and subscriptions that are missing. Harmless to repeat; nothing is deleted."""
    with ExitStack() as stack:
        opened, workers = _opened(stack, worker)
        made = [asdict(one) for one in opened.create(workers, change=change)]
        left = list(opened.differences(workers))
    print_items(made, _MADE, Form.JSON if json else output)
    stderr().print(f"{_of(workers)}: {counted(len(made), 'change') if made else 'nothing to do'}")
    if left:
        stderr().print(f"{counted(len(left), 'difference')} left: see `matoolkit bus check`")


def _opened(stack: ExitStack, given: list[str] | None) -> "tuple[Administration, set[str]]":
    """Open the namespace, and find its workers: those that are known, and those that have a subscription."""
    from matoolkit.bus.servicebus.administration import administration
    from matoolkit.system import service_bus_address

    settings = load_settings(Settings)
    if not (settings.service_bus_namespace or settings.service_bus_connection_string):
        raise InvalidSettings(
            ["no Service Bus is named"],
            hint="set MATOOLKIT_SERVICE_BUS_NAMESPACE or MATOOLKIT_SERVICE_BUS_CONNECTION_STRING",
        )
    workers = {_worker(one) for one in given} if given else _known_workers(settings)
    opened = stack.enter_context(administration(service_bus_address(settings)))
    return opened, workers | opened.workers()


def _worker(text: str) -> str:
    try:
        return worker_id(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--worker") from None


def _known_workers(settings: Settings) -> set[str]:
    from matoolkit.bus.workers import KnownWorkers
    from matoolkit.system import open_state

    store = open_state(settings)
    try:
        with store.reading() as tx:
            return KnownWorkers().ids(tx)
    finally:
        store.close()


def _of(workers: set[str]) -> str:
    return f"workers {', '.join(sorted(workers))}" if workers else "no workers"
