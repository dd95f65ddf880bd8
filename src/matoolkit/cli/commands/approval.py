"""`matoolkit approval`: what waits for people to sign off, and what they say of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.options import All, Batch, Reason, Watch, Yes, given
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, Item, number, status, when
from matoolkit.cli.watching import watch_items
from matoolkit.errors import NothingToSign, UnknownApproval
from matoolkit.words import counted

app = typer.Typer(no_args_is_help=True)

_SAID = {"approve": "approved", "reject": "rejected"}


def _subject(item: Item) -> str:
    return str(item.get("phaseName") or item.get("subject"))


def _steps(item: Item) -> list[str]:
    return [f"{step['name']} ({step['function']})" for step in item.get("steps") or ()]


def _signed(item: Item) -> list[str]:
    return [_signature(one) for one in item.get("signed") or ()]


def _signature(one: Mapping[str, Any]) -> str:
    nobody = "" if one.get("isSignedIn") else ", nobody signed in"
    void = f", does not count: {one['void']}" if one.get("void") else ""
    reason = f": {one['reason']}" if one.get("reason") else ""
    said = _SAID[str(one["decision"])]
    return f"{one['signedBy']} {said} {wording.moment(one.get('signedAt'))}{reason}{nobody}{void}"


_APPROVALS = (
    number("BATCH", "batchId"),
    Column("RUNBOOK", "runbookName"),
    Column("WHAT", _subject),
    status("STATE", "state"),
    when("T", "batchStartTime"),
    when("DEADLINE", "deadline"),
    number("MEMBERS", "memberCount"),
    Column("WAITS", "waits"),
)
_SHOWN = (
    number("BATCH", "batchId"),
    Column("RUNBOOK", "runbookName"),
    number("VERSION", "version"),
    Column("PUBLISHED BY", "publishedBy"),
    Column("WHAT", _subject),
    Column("HELD FOR", "holdReason"),
    when("T", "batchStartTime"),
    when("DUE", "dueAt"),
    Column("STEPS", _steps),
    number("MEMBERS", "memberCount"),
    Column("FIRST", "firstMembers"),
    number("DATA CHANGED", "dataChanged"),
    status("STATE", "state"),
    Column("WAITS", "waits"),
    number("SIGN-OFFS NEEDED", "count"),
    Column("BY", "by"),
    when("FROM", "opensAt"),
    when("UNTIL", "endsAt"),
    Column("SIGNED", _signed),
    Column("DIGEST", "digest"),
)

Phase = Annotated[
    str | None,
    typer.Argument(metavar="PHASE", help="Name of the phase; not needed if only one thing waits.", show_default=False),
]
Init = Annotated[bool, typer.Option("--init", help="The init of the batch.")]
Digest = Annotated[
    str | None,
    typer.Option("--digest", help="Only if it is still what was shown under this digest.", show_default=False),
]


@app.command("list")
@asks_the_api
def list_(session: Session, *, all_: All = False, watch: Watch = False) -> None:
    """List what waits for sign-off, the oldest deadline first; with `--all` also what is given, or too early."""
    found = session.client.pages(path_of("approvals"), state="all" if all_ else "waiting")
    if watch:
        watch_items(session, lambda: list(found), _APPROVALS)
    else:
        session.show_pages(found, _APPROVALS, nothing="nothing waits for sign-off")


@app.command()
@asks_the_api
def show(session: Session, batch: Batch, phase: Phase = None, *, init: Init = False) -> None:
    """Show what would be signed off: T, version, steps, members, and the digest of exactly that."""
    found = _chosen(session, batch, phase, init=init)
    session.show(found, _SHOWN)
    named, members = len(found.get("firstMembers") or []), int(found.get("memberCount") or 0)
    if named < members:
        session.say(f"the first {named:,} of {members:,}; `matoolkit batch members {batch} --all` lists all")
    if found.get("subject") == "hold":
        session.say(f"`matoolkit hold approve {batch}` signs it off")


@app.command()
@asks_the_api
def approve(
    session: Session,
    batch: Batch,
    phase: Phase = None,
    digest: Digest = None,
    reason: Reason = None,
    *,
    init: Init = False,
    yes: Yes = False,
) -> None:
    """Approve that a phase begins, or an init, if it is still what was shown."""
    _sign(session, "approve", batch, phase, digest, reason, init=init, yes=yes)


@app.command()
@asks_the_api
def reject(
    session: Session,
    batch: Batch,
    phase: Phase = None,
    digest: Digest = None,
    reason: Reason = None,
    *,
    init: Init = False,
    yes: Yes = False,
) -> None:
    """Reject that a phase begins, or an init; members who joined a phase late fail."""
    _sign(session, "reject", batch, phase, digest, given(reason), init=init, yes=yes)


@app.command()
@asks_the_api
def withdraw(session: Session, batch: Batch, phase: Phase = None, reason: Reason = None, *, init: Init = False) -> None:
    """Take back what you have signed, unless it has begun."""
    found = _chosen(session, batch, phase, init=init)
    done = session.client.post(_path(found, "withdraw"), {"reason": reason})
    _tell(session, found if found.get("subject") == "hold" else done, "withdrawn")


def _sign(
    session: Session,
    decision: str,
    batch: int,
    phase: str | None,
    digest: str | None,
    reason: str | None,
    *,
    init: bool,
    yes: bool,
) -> None:
    found = _chosen(session, batch, phase, init=init)
    if not yes:
        if session.is_for_people:
            session.show(found, _SHOWN)
        confirm(f"{_in_words(found)}. {decision.capitalize()}?", yes=yes)
    # An empty digest, such as that of a variable without a value, must not sign what nobody has compared.
    asked = {"digest": found["digest"] if digest is None else digest, "reason": reason}
    _tell(session, session.client.post(_path(found, decision), asked), _SAID[decision])


def _tell(session: Session, done: Item, said: str) -> None:
    if session.is_for_people:
        waits = f"; {done['waits']}" if done.get("waits") else ""
        session.say(f"{_subject(done)} of batch {done['batchId']}: {said}{waits}")
    else:
        session.show(done, _SHOWN)


def _path(found: Item, deed: str) -> str:
    if found.get("subject") == "hold" and deed == "withdraw":
        return path_of("batches", found["batchId"], "hold", deed)
    if found.get("subject") == "hold":
        raise typer.BadParameter(f"a hold is signed off with `matoolkit hold approve {found['batchId']}`")
    if found.get("phaseId") is None:
        return path_of("batches", found["batchId"], "init", deed)
    return path_of("batches", found["batchId"], "phases", found["phaseId"], deed)


def _chosen(session: Session, batch: int, phase: str | None, *, init: bool) -> Item:
    """Return what is meant; without a name it is the only thing that waits."""
    items: list[Item] = list(session.client.pages(path_of("batches", batch, "approvals")))
    if init:
        chosen = [item for item in items if item.get("subject") == "init"]
    elif phase is not None:
        chosen = [item for item in items if str(item.get("phaseName") or "").casefold() == phase.casefold()]
    else:
        chosen = _waiting(items) if len(items) > 1 else items
    if len(chosen) > 1:
        chosen = _waiting(chosen) or chosen
    if len(chosen) == 1:
        return chosen[0]
    raise _refusal(batch, phase, items, init=init)


def _waiting(items: Iterable[Item]) -> list[Item]:
    return [item for item in items if item.get("state") not in ("begun", "given")]


def _refusal(batch: int, phase: str | None, items: Sequence[Item], *, init: bool) -> Exception:
    if not items:
        return NothingToSign(f"batch {batch}", "nothing in it asks for one")
    names = [str(item["phaseName"]) if item.get("phaseName") else f"--{item['subject']}" for item in items]
    wanted = "--init" if init else phase
    if wanted is not None:
        return UnknownApproval(batch, wanted, names)
    return typer.BadParameter(f"name one of: {', '.join(names)}")


def _in_words(found: Item) -> str:
    members = counted(int(found.get("memberCount") or 0), "member")
    late = " who joined later" if found.get("isForLate") else ""
    start = wording.moment(found.get("batchStartTime"))
    begins = f", T {start}" if start else ""
    return f"batch {found['batchId']}, {_subject(found)}: {members}{late}, version {found['version']}{begins}"
