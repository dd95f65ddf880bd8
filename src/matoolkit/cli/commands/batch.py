"""`matoolkit batch`: find batches, make them from CSV, move them, and see how they are doing."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.batch_progress import Outcome, ended, outcome_of_batch, run_to_its_end, wait_for_batch, wait_for_step
from matoolkit.cli.batch_view import batch_view, current_phases
from matoolkit.cli.client import path_of
from matoolkit.cli.files import name_of, read_file
from matoolkit.cli.options import All, Batch, Limit, Name, Reason, RunbookOption, Wait, Watch, Yes
from matoolkit.cli.output import stdout
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, has_only_letters, number, status, when
from matoolkit.cli.watching import watch as watch_it
from matoolkit.cli.watching import watch_items
from matoolkit.domain.states import BatchStatus
from matoolkit.errors import BodyTooLarge
from matoolkit.words import advanced_told, counted, made_told

if TYPE_CHECKING:
    from matoolkit.cli.http import Client

app = typer.Typer(no_args_is_help=True)

MOST_BYTES = 50 * 1024 * 1024
_MOST_NAMED = 10

BATCHES = (
    number("ID", "id"),
    Column("RUNBOOK", "runbookName"),
    status(),
    when("T", "batchStartTime"),
    Column("PHASE", "currentPhase"),
    number("MEMBERS", "memberCount"),
    number("DONE", lambda item: (item.get("memberStates") or {}).get("done", 0)),
    number("FAILED", lambda item: (item.get("members") or {}).get("failed", 0)),
    Column("HELD", lambda item: "held" if item.get("isHeld") else ""),
)
PHASES = (
    Column("PHASE", "phaseName"),
    Column("OFFSET", "offsetMinutes", wording.offset),
    when("DUE", "dueAt"),
    status(),
    number("VERSION", "runbookVersion"),
    Column("STEPS", "steps", wording.counts),
)
_CREATED = (
    number("BATCH", "batchId"),
    status(),
    number("MEMBERS", "memberCount"),
    number("SKIPPED", "skippedCount"),
    Column("PHASES", "availablePhases"),
)
_ADVANCED = (
    number("BATCH", "batchId"),
    Column("ACTION", "action"),
    Column("PHASE", "phaseName"),
    number("MEMBERS", "memberCount"),
    number("STEPS", "stepCount"),
    Column("NEXT", "nextPhase"),
)
_CANCELLED = (
    number("BATCH", "batchId"),
    number("PHASES", "phases"),
    number("STEPS", "steps"),
    number("JOBS IN FLIGHT", "jobsInFlight"),
    number("COMPENSATIONS", "compensationsFinishing"),
)


@app.command("list")
@asks_the_api
def list_(
    session: Session,
    runbook: RunbookOption = None,
    wanted: Annotated[
        BatchStatus | None, typer.Option("--status", help="Only in this state.", show_default=False)
    ] = None,
    manual: Annotated[
        bool | None, typer.Option("--manual/--automated", help="Only manual ones, or only others.", show_default=False)
    ] = None,
    held: Annotated[
        bool | None, typer.Option("--held/--not-held", help="Only those that wait for approval.", show_default=False)
    ] = None,
    limit: Limit = 100,
    *,
    all_: All = False,
    watch: Watch = False,
) -> None:
    """List batches, newest first."""
    query = {"runbook": runbook, "status": wanted and wanted.value, "manual": manual, "held": held}
    found = session.client.pages(path_of("batches"), None if all_ else limit, **query)
    if watch:
        watch_items(session, lambda: list(found), BATCHES)
    else:
        session.show_pages(found, BATCHES, nothing="there is no such batch")


@app.command()
@asks_the_api
def get(session: Session, batch: Batch, *, watch: Watch = False, wait: Wait = False) -> None:
    """Show a batch: its phases on a time line, counts by status, failures by error.

    --watch shows it live until the batch has ended. --wait waits for that; exit code 1 if it failed or was cancelled.
    """
    if watch:

        def draw(items: Any, console: Any) -> Any:
            return _drawn(session, items[0], console)

        watch_it(session, lambda: [whole_batch(session.client, batch)], draw, lambda items: ended(items[0]))
        if wait:
            raise typer.Exit(outcome_of_batch(session.client.get(path_of("batches", batch))).exit_code)
        return
    outcome = wait_for_batch(session, batch) if wait else None
    seen = whole_batch(session.client, batch)
    if session.is_for_people:
        console = stdout()
        console.print(_drawn(session, seen, console))
    else:
        session.show(seen, BATCHES)
    exit_with(outcome)


@app.command()
@asks_the_api
def phases(session: Session, batch: Batch, *, watch: Watch = False) -> None:
    """List the phases of a batch, superseded ones included, with the counts of their steps."""

    def ask() -> list[dict[str, Any]]:
        return session.client.whole_list(path_of("batches", batch, "phases"))

    if watch:
        watch_items(session, ask, PHASES)
    else:
        session.show_all(ask(), PHASES, nothing="the batch has no phases yet")


@app.command()
@asks_the_api
def create(
    session: Session,
    runbook: Name,
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV with its members; - is standard input.")],
    reason: Reason = None,
) -> None:
    """Make a manual batch from the rows of a CSV file; nothing runs before it is advanced."""
    form = {"runbookName": runbook, **({"reason": reason} if reason else {})}
    done = upload(session, path_of("batches"), form, file)
    if session.is_for_people:
        number, members = int(done.get("batchId") or 0), int(done.get("memberCount") or 0)
        session.say(made_told(number, members, wording.text(done.get("availablePhases"))))
        session.say(f"start it with `matoolkit batch advance {number}`")
    else:
        session.show(done, _CREATED)


@app.command()
@asks_the_api
def advance(
    session: Session,
    batch: Batch,
    reason: Reason = None,
    *,
    wait: Wait = False,
    auto: Annotated[bool, typer.Option("--auto", help="Go on, phase by phase, until nothing is left to do.")] = False,
) -> None:
    """Let a manual batch go on: its init first, then phase by phase.

    --wait waits until what was started has ended; exit code 1 if it failed.
    """
    steps: list[dict[str, Any]] = []

    def go_on() -> dict[str, Any]:
        steps.append(_advance(session, batch, reason))
        return steps[-1]

    if auto:
        outcome: Outcome | None = run_to_its_end(session, batch, go_on)
    else:
        done = go_on()
        outcome = wait_for_step(session, batch, done) if wait else None
    if not session.is_for_people:
        session.show_all(steps, _ADVANCED, nothing="") if auto else session.show(steps[0], _ADVANCED)
    exit_with(outcome)


@app.command()
@asks_the_api
def cancel(session: Session, batch: Batch, reason: Reason = None, *, yes: Yes = False) -> None:
    """Cancel a batch: nothing more is dispatched, and compensations that have begun finish.

    Jobs that no worker has seen are taken back; on Azure Service Bus every job that was sent counts as in flight.
    """
    cancel_after_asking(session, batch, reason, yes=yes)


def cancel_after_asking(session: Session, batch: int, reason: str | None, *, yes: bool) -> None:
    """Cancel a batch, once a person has seen what stops."""
    if not yes:
        seen = session.client.get(path_of("batches", batch))
        open_ = sum(phase.get("status") in ("pending", "dispatched") for phase in current_phases(seen))
        name, members = wording.text(seen.get("runbookName")), counted(int(seen.get("memberCount") or 0), "member")
        about = f"batch {batch} of {name}, {members}, {counted(open_, 'open phase')}"
        confirm(f"{about}: nothing is undone, `matoolkit batch undo {batch}` would do that. Cancel it?", yes=yes)
    done = session.client.post(path_of("batches", batch, "cancel"), {"reason": reason})
    if not session.is_for_people:
        session.show(done, _CANCELLED)
        return
    stopped = f"{counted(int(done.get('phases') or 0), 'phase')} and {counted(int(done.get('steps') or 0), 'step')}"
    flying = int(done.get("jobsInFlight") or 0)
    session.say(f"batch {batch} is cancelled: {stopped} stopped, {counted(flying, 'job')} in flight cannot be recalled")


def whole_batch(client: "Client", batch: int) -> dict[str, Any]:
    """Return a batch with its failures by error."""
    return {
        **client.get(path_of("batches", batch)),
        "failures": client.whole_list(path_of("batches", batch, "failures")),
    }


def upload(session: Session, path: str, form: dict[str, str], file: str) -> dict[str, Any]:
    """Send a CSV file, and say what is odd about it."""
    content = read_file(file, MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise BodyTooLarge(MOST_BYTES)
    with session.busy(f"sending {len(content):,} bytes"):
        done = session.client.upload(path, form, "stdin.csv" if file == "-" else Path(name_of(file)).name, content)
    for warning in done.get("warnings") or []:
        session.say(f"warning: {wording.text(warning)}")
    skipped, count = (done.get("skipped") or [])[:_MOST_NAMED], int(done.get("skippedCount") or 0)
    if skipped:
        more = f" and {count - len(skipped):,} more" if count > len(skipped) else ""
        session.say(f"skipped, excluded or already in an unfinished batch: {wording.text(skipped)}{more}")
    return done


def exit_with(outcome: Outcome | None) -> None:
    """End as what was waited for has ended."""
    if outcome is not None and outcome.exit_code:
        raise typer.Exit(outcome.exit_code)


def _advance(session: Session, batch: int, reason: str | None) -> dict[str, Any]:
    done = session.client.post(path_of("batches", batch, "advance"), {"reason": reason})
    if not session.is_for_people:
        return done
    members, steps = int(done.get("memberCount") or 0), int(done.get("stepCount") or 0)
    phase, following = wording.text(done.get("phaseName")), wording.text(done.get("nextPhase"))
    session.say(advanced_told(batch, str(done.get("action")), phase, members, steps, following))
    return done


def _drawn(session: Session, seen: Any, console: Any) -> Any:
    width = console.width if console.is_terminal else None
    return batch_view(seen, seen["failures"], session.now(), width, letters=has_only_letters(console))
