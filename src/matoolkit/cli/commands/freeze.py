"""`matoolkit freeze`: write ahead when no job is sent, and take that back."""

from typing import Annotated

import typer

from matoolkit.cli.client import path_of
from matoolkit.cli.commands.gate import GATE, GATES, Gate, told
from matoolkit.cli.options import All, BatchOption, Limit, Reason, RunbookOption, given
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import number
from matoolkit.errors import NotAFreeze
from matoolkit.words import counted

app = typer.Typer(no_args_is_help=True)

_FROZEN = (*GATE, number("TAKEN BACK", "takenBack"), number("OUT", "out"))

From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help='When it begins, such as "2026-12-24 18:00"; now if not given.'),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="When it ends; when somebody removes it if not given.")
]
Zone = Annotated[
    str | None,
    typer.Option("--zone", metavar="ZONE", help="IANA zone of the times, such as Europe/Berlin."),
]
Worker = Annotated[str | None, typer.Option("--worker", metavar="ID", help="Only jobs of this worker.")]


@app.command()
@asks_the_api
def add(
    session: Session,
    begins: From = None,
    until: Until = None,
    zone: Zone = None,
    batch: BatchOption = None,
    runbook: RunbookOption = None,
    worker: Worker = None,
    reason: Reason = None,
) -> None:
    """Let no job leave from one time to another: of everything, or of a batch, a runbook or a worker."""
    subject = {"batchId": batch, "runbookName": runbook, "workerId": worker}
    times = {"from": begins, "until": until, "zone": zone}
    asked = {name: value for name, value in {**subject, **times}.items() if value is not None}
    done = session.client.post(path_of("gates", "freeze"), {**asked, "reason": given(reason)})
    session.show(done, _FROZEN)
    out = int(done.get("out") or 0)
    if out:
        session.say(f"workers have {counted(out, 'job')}, which cannot be called back and will finish")
    session.say(f"`matoolkit freeze remove {done['id']} --reason TEXT` takes it back")


@app.command("list")
@asks_the_api
def list_(session: Session, limit: Limit = 100, *, all_: All = False) -> None:
    """List the freezes that stand or are to come, newest first; with `--all` those that are over too."""
    found = session.client.pages(path_of("gates"), limit, inForce=not all_, kind="freeze")
    session.show_pages(found, GATE if all_ else GATES, nothing="no freeze is written")


@app.command()
@asks_the_api
def remove(session: Session, freeze: Gate, reason: Reason = None) -> None:
    """Take a freeze back, whether it has begun or not; what waited goes on."""
    kind = session.client.get(path_of("gates", freeze))["kind"]
    if kind != "freeze":
        raise NotAFreeze(freeze, kind)
    told(session, session.client.post(path_of("gates", freeze, "open"), {"reason": given(reason)}))
