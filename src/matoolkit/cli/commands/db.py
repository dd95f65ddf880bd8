"""`matoolkit db`: the tables of the state database.

What talks to a database is imported when a command needs it: most commands never do, and should start quickly.
"""

from typing import TYPE_CHECKING

import typer

from matoolkit.cli.output import counted, stderr, stdout
from matoolkit.settings import Settings, load_settings

if TYPE_CHECKING:
    from matoolkit.store import Store
    from matoolkit.store.upgrade import SchemaStatus

app = typer.Typer(help="Create, upgrade and check the tables of the state database.", no_args_is_help=True)

NOT_AS_IT_SHOULD_BE = 1

_MEANING = {
    "current": "up to date",
    "missing": "no tables yet: run `matoolkit db upgrade`",
    "old": "older than this version needs: run `matoolkit db upgrade`",
    "new": "newer than this version: install the newer matoolkit",
    "unknown": "there are tables, but no record of their version: `matoolkit db check` compares them",
}


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
def check() -> None:
    """Compare every table, column and index with what this version expects. Exit code 1: they differ."""
    from matoolkit.store.upgrade import schema_differences, schema_status

    store = _store()
    found, differences = schema_status(store), schema_differences(store)
    stdout().print(_described(found))
    for difference in differences:
        stdout().print(difference)
    if differences or found.found != found.wanted:
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


def _store() -> "Store":
    from matoolkit.store import open_store

    settings = load_settings(Settings)
    return open_store(settings.database_url.get_secret_value(), execution=settings.sql_execution)


def _described(found: "SchemaStatus") -> str:
    return f"schema {found.found or 'none'}, needed {found.wanted}: {_MEANING[found.state]}"
