"""`matoolkit automation`: whether the scheduler queries a runbook's source."""

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.options import Name
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, status, when
from matoolkit.words import switch_told

app = typer.Typer(no_args_is_help=True)

_AUTOMATION = (
    Column("RUNBOOK", "runbookName"),
    status("AUTOMATION", lambda item: "enabled" if item.get("automationEnabled") else "disabled"),
    when("ENABLED AT", "enabledAt"),
    Column("ENABLED BY", "enabledBy"),
    when("DISABLED AT", "disabledAt"),
    Column("DISABLED BY", "disabledBy"),
)


@app.command("status")
@asks_the_api
def status_(session: Session, name: Name) -> None:
    """Say whether the scheduler queries a runbook's source, and who decided it."""
    session.show(session.client.get(path_of("runbooks", name, "automation")), _AUTOMATION)


@app.command()
@asks_the_api
def enable(session: Session, name: Name) -> None:
    """Let the scheduler query a runbook's source."""
    _switch(session, name, enabled=True)


@app.command()
@asks_the_api
def disable(session: Session, name: Name) -> None:
    """Stop the scheduler from querying a runbook's source; batches in flight go on."""
    _switch(session, name, enabled=False)


def _switch(session: Session, name: str, *, enabled: bool) -> None:
    done = session.client.put(path_of("runbooks", name, "automation"), {"enabled": enabled})
    if session.is_for_people:
        session.say(switch_told(wording.text(done.get("runbookName")), enabled=enabled))
    else:
        session.show(done, _AUTOMATION)
