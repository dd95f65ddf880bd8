"""`matoolkit batch`: what failed, grouped by error, and trying it again."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.batch_progress import steps_of, wait_for_rest, wait_for_step
from matoolkit.cli.client import path_of
from matoolkit.cli.commands.batch import exit_with
from matoolkit.cli.options import Batch, DryRun, Reason, Wait, Watch, Yes
from matoolkit.cli.output import counted
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, number
from matoolkit.cli.watching import watch_items
from matoolkit.domain.retrying import VersionChoice
from matoolkit.errors import UnknownFailure

app = typer.Typer()

_FAILURES = (
    number("LIKE", "exampleStepId"),
    number("MEMBERS", "members"),
    Column("PHASE", "phaseName"),
    Column("STEP", "stepName"),
    Column("TYPE", "errorType"),
    Column("ERROR", "error"),
)
_RETRY = (
    number("BATCH", "batchId"),
    number("VERSION", "version"),
    Column("GOING ON", "goingOn"),
    Column("BEGINNING AGAIN", "beginningAgain"),
    Column("LEFT OUT", "leftOut"),
)
_INIT = (number("BATCH", "batchId"), number("VERSION", "version"))
_MOST_NAMED = 5


@app.command()
@asks_the_api
def failures(session: Session, batch: Batch, *, watch: Watch = False) -> None:
    """Group the failed steps of a batch by phase, step and error, the largest group first."""

    def ask() -> list[dict[str, Any]]:
        return session.client.whole_list(path_of("batches", batch, "failures"))

    if watch:
        watch_items(session, ask, _FAILURES)
    elif session.show_all(ask(), _FAILURES, nothing="nothing has failed"):
        session.say(f"try a group again with `matoolkit batch retry {batch} --like …`")


@app.command()
@asks_the_api
def retry(
    session: Session,
    batch: Batch,
    like: Annotated[
        int | None, typer.Option(min=1, help="Those that failed like this step; `failures` names one.")
    ] = None,
    phase: Annotated[str | None, typer.Option(help="Those that failed in this phase.")] = None,
    step: Annotated[str | None, typer.Option(help="Those that failed in this step.")] = None,
    error: Annotated[str | None, typer.Option(help="Those that failed with this error.")] = None,
    member: Annotated[list[int] | None, typer.Option(help="These members, by number; may be repeated.")] = None,
    version: Annotated[
        VersionChoice | None,
        typer.Option(help="`current`: the batch's version even if a newer one waits. `active`: the active one."),
    ] = None,
    begin_with: Annotated[
        str | None, typer.Option("--from", help="Begin again with this phase, or with an earlier one not yet done.")
    ] = None,
    reason: Reason = None,
    *,
    dry_run: DryRun = False,
    wait: Wait = False,
    yes: Yes = False,
) -> None:
    """Let failed members try again: all, or those that are chosen. What would happen is shown before.

    --wait waits until nothing is under way; exit code 1 if somebody failed again.
    """
    chosen: dict[str, Any] = {"phaseName": phase, "stepName": step, "error": error, "memberIds": member or None}
    chosen |= {"version": version, "beginWith": begin_with}
    if like is not None:
        chosen |= _group(session, batch, like)
    planned = session.client.preview(path_of("batches", batch, "retry", "preview"), chosen)
    if dry_run:
        session.show(planned, _RETRY)
        session.say(f"dry run: {_in_words(planned)}; nothing was changed")
        return
    if not yes:
        confirm(f"batch {batch}: {_in_words(planned)}. Go ahead?", yes=yes)
    before = steps_of(session.client.get(path_of("batches", batch))) if wait else 0
    done = session.client.post(path_of("batches", batch, "retry"), {**chosen, "reason": reason})
    session.say(f"batch {batch}: {_in_words(done)}")
    going_on, again = done["goingOn"], done["beginningAgain"]
    # Whoever begins again has no new step before the orchestrator has heard of it.
    outcome = wait_for_rest(session, batch, {*going_on, *again}, before + len(again)) if wait else None
    if not session.is_for_people:
        session.show(done, _RETRY)
    exit_with(outcome)


@app.command("retry-init")
@asks_the_api
def retry_init(session: Session, batch: Batch, reason: Reason = None, *, wait: Wait = False) -> None:
    """Let an init run again that failed. --wait waits until it has ended; exit code 1 if it failed again."""
    done = session.client.post(path_of("batches", batch, "init", "retry"), {"reason": reason})
    session.say(f"batch {batch}: the init of version {done.get('version')} runs again")
    outcome = wait_for_step(session, batch, {"action": "init_dispatched"}) if wait else None
    if not session.is_for_people:
        session.show(done, _INIT)
    exit_with(outcome)


def _group(session: Session, batch: int, like: int) -> dict[str, Any]:
    for group in session.client.whole_list(path_of("batches", batch, "failures")):
        if group.get("exampleStepId") == like:
            return {name: group.get(name) for name in ("phaseName", "stepName", "error")}
    raise UnknownFailure(batch, like)


def _in_words(plan: dict[str, Any]) -> str:
    parts = [f"version {plan['version']} runs{_other_version(plan)}"]
    if plan["goingOn"]:
        parts.append(f"{_named(plan['goingOn'])} go on from where they failed")
    parts += [f"{_named(group['members'])} {_where(group['phaseName'])}" for group in plan["beginnings"]]
    if plan["leftOut"]:
        parts.append(f"{_named(plan['leftOut'])} are in another batch")
    return "; ".join(parts)


def _other_version(plan: dict[str, Any]) -> str:
    active = plan["activeVersion"]
    return "" if active in (None, plan["version"]) else f" (the active one is {active})"


def _where(phase: str | None) -> str:
    return "have nothing left to do" if phase is None else f"begin again with {phase}"


def _named(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MOST_NAMED:,} more" if len(keys) > _MOST_NAMED else ""
    return f"{counted(len(keys), 'member')} ({wording.text(list(keys[:_MOST_NAMED]))}{more})"
