"""`matoolkit batch`: what failed, grouped by error, and trying it again."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from matoolkit.cli.batch_progress import steps_of, wait_for_rest, wait_for_step
from matoolkit.cli.client import path_of
from matoolkit.cli.commands.batch import exit_with
from matoolkit.cli.files import name_of, read_file
from matoolkit.cli.options import Batch, DryRun, Reason, Wait, Watch, Yes
from matoolkit.cli.retry_words import details_of, is_undecided, retry_in_words
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, number
from matoolkit.cli.watching import watch_items
from matoolkit.cli.whom import Members, members_meant
from matoolkit.domain.retrying import DataChoice, VersionChoice
from matoolkit.domain.states import PhaseStatus
from matoolkit.errors import BodyTooLarge, UnknownFailure, UnreadableFile
from matoolkit.words import counted

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
# The size of a file, which travels as text inside the request.
_MOST_BYTES = 2 * 1024 * 1024


@app.command()
@asks_the_api
def failures(session: Session, batch: Batch, *, watch: Watch = False) -> None:
    """Group the failed steps of a batch by phase, step and cause, the largest group first, with one error of each."""

    def ask() -> list[dict[str, Any]]:
        return session.client.whole_list(path_of("batches", batch, "failures"))

    if watch:
        watch_items(session, ask, _FAILURES)
    elif session.show_all(ask(), _FAILURES, nothing="nothing has failed"):
        session.say(f"try a group again with `matoolkit batch retry {batch} --like …`")
    if not watch and (undo := int(session.client.get(path_of("batches", batch)).get("undoFailures") or 0)):
        told = f"{counted(undo, 'step')} that were to undo something failed too"
        session.say(f"{told}: `matoolkit undo-failure list --batch {batch}`")


_Like = Annotated[int | None, typer.Option(min=1, help="Members that failed like this step; `failures` names one.")]
_Phase = Annotated[str | None, typer.Option(help="Members that failed in this phase.")]
_Step = Annotated[str | None, typer.Option(help="Members that failed in this step.")]
_Error = Annotated[str | None, typer.Option(help="Members that failed with this error.")]
_Version = Annotated[
    VersionChoice | None,
    typer.Option(help="`current`: the batch's version even if a newer one waits. `active`: the active one."),
]
_From = Annotated[
    str | None, typer.Option("--from", help="Begin again with this phase, or with an earlier one not yet done.")
]
_Data = Annotated[DataChoice | None, typer.Option(help="`kept`: members keep their row.")]
_RowsFile = Annotated[str | None, typer.Option(metavar="FILE", help="CSV with the rows of members of a manual batch.")]
_Refresh = Annotated[bool, typer.Option("--refresh", help="Read the source now and take its rows.")]
_KeepDone = Annotated[
    bool, typer.Option("--keep-done", help="Do not repeat finished steps that used a value which has changed since.")
]


@app.command()
@asks_the_api
def retry(
    session: Session,
    batch: Batch,
    like: _Like = None,
    phase: _Phase = None,
    step: _Step = None,
    error: _Error = None,
    member: Members = None,
    version: _Version = None,
    begin_with: _From = None,
    data: _Data = None,
    rows: _RowsFile = None,
    reason: Reason = None,
    *,
    refresh: _Refresh = False,
    keep_done: _KeepDone = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    yes: Yes = False,
) -> None:
    """Retry failed members: all, or those that you choose. The command shows first what would happen.

    --wait waits until nothing is under way; exit code 1 if a member failed again.
    """
    asked: dict[str, Any] = {"phaseName": phase, "stepName": step, "error": error}
    asked |= {"memberIds": members_meant(session, batch, member)}
    asked |= {"version": version, "beginWith": begin_with, "keepDone": keep_done}
    asked |= {"data": DataChoice.REFRESHED if refresh else data, "rows": _csv_text(rows) if rows else None}
    if like is not None:
        asked |= group_like(session, batch, like)
    planned = session.client.preview(path_of("batches", batch, "retry", "preview"), asked)
    for sentence in details_of(planned):
        session.say(sentence)
    if dry_run:
        session.show(planned, _RETRY)
        session.say(f"dry run: {retry_in_words(planned)}; nothing was changed")
        return
    # If a decision is missing, the API refuses the retry and says how to decide.
    if not yes and not is_undecided(planned, begin_with, keep_done=keep_done):
        confirm(f"batch {batch}: {retry_in_words(planned)}. Go ahead?", yes=yes)
    _retry(session, batch, {**asked, "reason": reason}, wait=wait)


def _retry(session: Session, batch: int, asked: Mapping[str, Any], *, wait: bool) -> None:
    before = steps_of(session.client.get(path_of("batches", batch))) if wait else 0
    done = session.client.post(path_of("batches", batch, "retry"), asked)
    session.say(f"batch {batch}: {retry_in_words(done)}")
    outcome = None
    if wait:
        going_on, again = done["goingOn"], done["beginningAgain"]
        # A member that begins again gets its new steps only when the orchestrator handles the message.
        new = len(again) - _kept_waiting(session.client.get(path_of("batches", batch)), done)
        outcome = wait_for_rest(session, batch, {*going_on, *again}, before + new)
    if not session.is_for_people:
        session.show(done, _RETRY)
    exit_with(outcome)


@app.command("retry-init")
@asks_the_api
def retry_init(session: Session, batch: Batch, reason: Reason = None, *, wait: Wait = False) -> None:
    """Run a failed init again. --wait waits until it has ended; exit code 1 if it failed again."""
    done = session.client.post(path_of("batches", batch, "init", "retry"), {"reason": reason})
    session.say(f"batch {batch}: the init of version {done.get('version')} runs again")
    outcome = wait_for_step(session, batch, {"action": "init_dispatched"}) if wait else None
    if not session.is_for_people:
        session.show(done, _INIT)
    exit_with(outcome)


def group_like(session: Session, batch: int, like: int) -> dict[str, Any]:
    """Return what selects the members that failed like a step."""
    for group in session.client.whole_list(path_of("batches", batch, "failures")):
        if group.get("exampleStepId") == like:
            return {name: group.get(name) for name in ("phaseName", "stepName", "fingerprint")}
    raise UnknownFailure(batch, like)


def _kept_waiting(batch: Mapping[str, Any], done: Mapping[str, Any]) -> int:
    """Count members that begin again but get no step now: their phase is not due, or nothing is left."""
    pending = {
        phase.get("phaseName")
        for phase in batch.get("phases") or []
        if phase.get("status") == PhaseStatus.PENDING and phase.get("runbookVersion") == done["version"]
    }
    groups = [group for group in done["beginnings"] if group["phaseName"] is None or group["phaseName"] in pending]
    return sum(len(group["members"]) for group in groups)


def _csv_text(file: str) -> str:
    content = read_file(file, _MOST_BYTES)
    if len(content) > _MOST_BYTES:
        raise BodyTooLarge(_MOST_BYTES)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile(name_of(file), "it is not UTF-8 text") from None
