"""`matoolkit pause` and `matoolkit resume`: bring work to a stop, and let it go on."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from matoolkit.cli.client import path_of
from matoolkit.cli.commands.gate import GATE, open_one, told
from matoolkit.cli.moments import given_moment
from matoolkit.cli.options import Batch, Name, Reason, given
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import number
from matoolkit.words import counted

app = typer.Typer(no_args_is_help=True)


class SubjectOrGate(TyperGroup):
    """A group in which `--gate N` stands for a subject."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; with `--gate` first there is no name of a command."""
        named = [arg for arg in args if arg in self.commands]
        if not named and any(arg.partition("=")[0] == "--gate" for arg in args):
            args = [_GATE, *args]
        return super().parse_args(ctx, args)


_GATE = "gate"
going_on = typer.Typer(no_args_is_help=True, cls=SubjectOrGate)

_PAUSED = (*GATE, number("TAKEN BACK", "takenBack"), number("OUT", "out"))

LetFinish = Annotated[
    bool, typer.Option("--let-finish", help="Nothing begins; members that have begun a phase go on with it.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Go on by itself then, such as 2026-11-30T06:00Z.")
]
Worker = Annotated[str, typer.Argument(metavar="ID", help="Id of the worker.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="Key of the member; its case does not matter.")]


@app.command("all")
@asks_the_api
def pause_all(session: Session, reason: Reason = None, until: Until = None, *, let_finish: LetFinish = False) -> None:
    """Stop everything now: no job leaves any more."""
    _pause(session, {}, reason, until, let_finish=let_finish)


@app.command("batch")
@asks_the_api
def pause_batch(
    session: Session, batch: Batch, reason: Reason = None, until: Until = None, *, let_finish: LetFinish = False
) -> None:
    """Stop a batch."""
    _pause(session, {"batchId": batch}, reason, until, let_finish=let_finish)


@app.command("runbook")
@asks_the_api
def pause_runbook(
    session: Session, name: Name, reason: Reason = None, until: Until = None, *, let_finish: LetFinish = False
) -> None:
    """Stop all batches of a runbook."""
    _pause(session, {"runbookName": name}, reason, until, let_finish=let_finish)


@app.command("worker")
@asks_the_api
def pause_worker(session: Session, worker: Worker, reason: Reason = None, until: Until = None) -> None:
    """Stop sending jobs to a worker; what is for other workers goes on."""
    _pause(session, {"workerId": worker}, reason, until, let_finish=False)


@app.command("member")
@asks_the_api
def pause_member(
    session: Session,
    name: Name,
    key: Key,
    reason: Reason = None,
    until: Until = None,
    *,
    let_finish: LetFinish = False,
) -> None:
    """Stop what is done for somebody, in every batch of a runbook, also one that it moves to."""
    _pause(session, {"runbookName": name, "memberKey": key}, reason, until, let_finish=let_finish)


@going_on.command("all")
@asks_the_api
def resume_all(session: Session, reason: Reason = None) -> None:
    """End the pause of everything; what was paused besides stays so."""
    _resume(session, {}, reason)


@going_on.command("batch")
@asks_the_api
def resume_batch(session: Session, batch: Batch, reason: Reason = None) -> None:
    """Let a batch go on."""
    _resume(session, {"batchId": batch}, reason)


@going_on.command("runbook")
@asks_the_api
def resume_runbook(session: Session, name: Name, reason: Reason = None) -> None:
    """Let the batches of a runbook go on."""
    _resume(session, {"runbookName": name}, reason)


@going_on.command("worker")
@asks_the_api
def resume_worker(session: Session, worker: Worker, reason: Reason = None) -> None:
    """Send jobs to a worker again."""
    _resume(session, {"workerId": worker}, reason)


@going_on.command("member")
@asks_the_api
def resume_member(session: Session, name: Name, key: Key, reason: Reason = None) -> None:
    """Go on with what is done for somebody."""
    _resume(session, {"runbookName": name, "memberKey": key}, reason)


@going_on.command(_GATE, hidden=True)
@asks_the_api
def resume_gate(
    session: Session,
    gate: Annotated[int, typer.Option("--gate", metavar="N", min=1, help="Number of the gate.")],
    reason: Reason = None,
) -> None:
    """Open the gate of this number, as `matoolkit gate open` does."""
    open_one(session, gate, reason)


def _pause(
    session: Session, subject: Mapping[str, Any], reason: str | None, until: str | None, *, let_finish: bool
) -> None:
    asked = {
        **subject,
        "reason": given(reason),
        "letFinish": let_finish,
        "until": given_moment(until) if until else None,
    }
    done = session.client.post(path_of("gates"), asked)
    session.show(done, _PAUSED)
    out = int(done.get("out") or 0)
    if out:
        session.say(f"workers have {counted(out, 'job')}, which cannot be called back and will finish")
    if done.get("openedAt"):
        session.say(f"{done['openedBy']} ended this pause at the same moment, so work goes on")
    else:
        session.say(f"`matoolkit resume {done['subject']} --reason TEXT` lets it go on")


def _resume(session: Session, subject: Mapping[str, Any], reason: str | None) -> None:
    told(session, session.client.post(path_of("gates", "resume"), {**subject, "reason": given(reason)}))
