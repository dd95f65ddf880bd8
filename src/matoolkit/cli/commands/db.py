"""`matoolkit db`: the tables of the state database.

What talks to a database is imported when a command needs it: most commands never do, and should start quickly.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from matoolkit.cli.output import stderr, stdout
from matoolkit.cli.session import Json, Output
from matoolkit.cli.tables import Column, Form, print_items
from matoolkit.cli.tables import status as state
from matoolkit.settings import Settings, load_settings
from matoolkit.words import counted

if TYPE_CHECKING:
    from matoolkit.store import Store
    from matoolkit.store.upgrade import SchemaStatus

app = typer.Typer(no_args_is_help=True)

NOT_AS_IT_SHOULD_BE = 1

_CHECKS = (
    Column("CHECK", "kind", is_whole=True),
    Column("NAME", "name"),
    state("STATUS", "outcome"),
    Column("ANSWER", "said"),
    Column("TO DO", "todo"),
)


@app.command()
def upgrade(
    *, sql: bool = typer.Option(False, "--sql", help="Print the statements of the whole history and change nothing.")
) -> None:
    """Create the tables, or bring them to what this version needs. All or nothing; harmless to repeat."""
    from matoolkit.store.upgrade import upgrade, upgrade_script

    store = _store()
    if sql:
        typer.echo(upgrade_script(store.dialect))
        return
    applied = upgrade(store)
    done = f"applied {counted(len(applied), 'revision')}: {', '.join(applied)}" if applied else "nothing to do"
    stderr().print(done)


@app.command()
def status() -> None:
    """Say which schema the database has and which one this version needs. Exit code 1: they differ."""
    from matoolkit.store.upgrade import schema_status

    found = schema_status(_store())
    stdout().print(_described(found))
    if found.pending or found.found != found.wanted:
        raise typer.Exit(NOT_AS_IT_SHOULD_BE)


@app.command()
def check(output: Output = Form.TABLE, *, json: Json = False) -> None:
    """Find out on the database itself whether it will do, and say what to do about what will not.

    Version and options, the clock, every table, column and index, every statement, and what two processes do to each
    other. All that is tried is rolled back. Exit code 0: all is well. 1: something is not as it should be.
    """
    from matoolkit.store.checkup import Outcome, check_database

    store = _store()
    checks = list(check_database(store, _store))
    print_items(map(asdict, checks), _CHECKS, Form.JSON if json else output)
    failed = [one for one in checks if one.outcome is Outcome.FAILED]
    console = stderr()
    for one in failed:
        console.print(f"{one.kind} {one.name}: {one.said}{f'; {one.todo}' if one.todo else ''}")
    console.print(f"{counted(len(checks), 'check')}, {len(failed)} failed")
    if failed:
        raise typer.Exit(NOT_AS_IT_SHOULD_BE)


@app.command()
def roles(
    deploy: str | None = typer.Option(None, help="Identity that runs `matoolkit db upgrade`."),
    scheduler: str | None = typer.Option(None, help="Identity of the scheduler."),
    orchestrator: str | None = typer.Option(None, help="Identity of the orchestrator."),
    api: str | None = typer.Option(None, help="Identity of the admin API."),
    worker: str | None = typer.Option(None, help="Identity of workers, where the bus is in the database."),
) -> None:
    """Print the SQL that creates roles and users with the least that each part needs. Changes nothing.

    On SQL Server an identity is a user of Entra, made only if it is named here. On PostgreSQL it is a role that signs
    in, matoolkit_PART unless it is named here. Run the SQL before the first `matoolkit db upgrade` and after each.
    """
    from matoolkit.store.roles import roles_script

    given = {"deploy": deploy, "scheduler": scheduler, "orchestrator": orchestrator, "api": api, "worker": worker}
    store = _store()
    names = {part: name for part, name in given.items() if name}
    typer.echo(roles_script(store.dialect, names, store.url.database or ""))


def _store(patience_seconds: float | None = None) -> "Store":
    from matoolkit.store.sql.transaction import PATIENCE_SECONDS
    from matoolkit.system import open_database

    settings = load_settings(Settings)
    return open_database(settings, PATIENCE_SECONDS if patience_seconds is None else patience_seconds)


def _described(found: "SchemaStatus") -> str:
    todo = "`matoolkit db check` compares them" if found.state == "unknown" else found.todo
    return f"{found.said}: {todo}" if todo else found.said
