"""`matoolkit batch undo`: take back what was done for members of a batch."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from matoolkit.cli.batch_progress import Outcome
from matoolkit.cli.client import path_of
from matoolkit.cli.commands.batch import exit_with
from matoolkit.cli.commands.batch_failures import group_like
from matoolkit.cli.options import Batch, DryRun, Reason, Wait, Watch, Yes, given
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, number
from matoolkit.cli.undo_words import UndoVersion, details_of_undo, undo_in_words
from matoolkit.cli.watching import HowFar, watch_items
from matoolkit.cli.watching import wait as wait_for
from matoolkit.cli.whom import Members, member_meant
from matoolkit.domain.states import ENDED_STEPS, FAILED_STEPS, MemberState
from matoolkit.words import counted

app = typer.Typer()

_UNDO = (
    number("BATCH", "batchId"),
    number("VERSION", "version"),
    Column("RUNS FOR", "running"),
    Column("ROLLED BACK", "rolledBack"),
)
_PROGRESS = (
    number("BATCH", "batchId"),
    number("UNDONE", "members"),
    number("UNDER WAY", "undoing"),
    Column("STEPS", "steps"),
)

_State = Annotated[MemberState | None, typer.Option("--state", help="Only members in this state.")]
_Like = Annotated[int | None, typer.Option(min=1, help="Members that failed like this step; `failures` names one.")]


@app.command()
@asks_the_api
def undo(
    session: Session,
    batch: Batch,
    reason: Reason = None,
    member: Members = None,
    state: _State = None,
    like: _Like = None,
    version: UndoVersion = None,
    *,
    dry_run: DryRun = False,
    wait: Wait = False,
    watch: Watch = False,
    yes: Yes = False,
) -> None:
    """Undo members of a batch in any status: everybody, or those that you choose. What would happen is shown first.

    The steps of `on_member_removed` run for them. The source does not bring them back at that time; a new time does.
    --wait waits until all has run; exit code 1 if a step failed.
    """
    keys = [member_meant(session, batch, who)["memberKey"] for who in member or ()]
    asked: dict[str, Any] = {"memberKeys": keys or None, "state": state, "version": version}
    if like is not None:
        asked |= group_like(session, batch, like)
    planned = session.client.preview(path_of("batches", batch, "undo", "preview"), asked)
    for sentence in details_of_undo(planned):
        session.say(sentence)
    if dry_run:
        if not session.is_for_people:
            session.show(planned, _UNDO)
        session.say(f"dry run: {undo_in_words(planned)}; nothing was changed")
        return
    why = given(reason)
    if not yes:
        confirm(f"batch {batch}: {undo_in_words(planned)}. Go ahead?", yes=yes)
    before = _failed(progress_of(session, batch)) if wait else 0
    done = session.client.post(path_of("batches", batch, "undo"), {**asked, "reason": why})
    session.say(f"batch {batch}: {undo_in_words(done)}")
    if watch:
        watch_items(session, lambda: [progress_of(session, batch)], _PROGRESS)
        return
    outcome = _wait_until_undone(session, batch, before) if wait else None
    if not session.is_for_people:
        session.show(done, _UNDO)
    exit_with(outcome)


def _wait_until_undone(session: Session, batch: int, failed_before: int) -> Outcome:
    """Wait until nothing is being undone in a batch any more, and say how it ended."""
    seen = wait_for(session, lambda: progress_of(session, batch), lambda item: not item["undoing"], _how_far)
    failed = _failed(seen) - failed_before
    undone = f"batch {batch}: {counted(int(seen['members']), 'member')} undone"
    sentence = f"{undone}, {counted(failed, 'step')} failed" if failed else undone
    session.say(sentence)
    return Outcome(is_good=not failed, sentence=sentence)


def progress_of(session: Session, batch: int) -> dict[str, Any]:
    """Ask how far the undo of a batch has come."""
    return session.client.get(path_of("batches", batch, "undo"))


def _failed(seen: Mapping[str, Any]) -> int:
    return sum(count for status, count in seen["steps"].items() if status in FAILED_STEPS)


def _how_far(seen: Mapping[str, Any]) -> HowFar:
    done = sum(count for status, count in seen["steps"].items() if status in ENDED_STEPS)
    return HowFar(done, sum(seen["steps"].values()), f"batch {seen['batchId']}: {seen['undoing']:,} being undone")
