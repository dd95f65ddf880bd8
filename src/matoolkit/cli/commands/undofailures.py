"""`matoolkit undo-failure`: steps that were to undo something and failed."""

from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.options import All, Batch, DryRun, Limit, Reason, Watch, Yes
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, number, status, when
from matoolkit.cli.watching import watch_items
from matoolkit.words import counted

app = typer.Typer(no_args_is_help=True)

_FAILURES = (
    number("ID", "id"),
    number("BATCH", "batchId"),
    Column("MEMBER", "memberKey"),
    Column("UNDOES", "sequenceName"),
    Column("BECAUSE", "cause"),
    Column("STEP", "stepName"),
    status(),
    number("TRY", "attempt"),
    when("ENDED", "completedAt"),
    Column("ERROR", "errorMessage"),
)
_RETRIED = (number("BATCH", "batchId"), Column("STEPS", "stepIds"), Column("LEFT OUT", "leftOut"))


@app.command("list")
@asks_the_api
def list_(
    session: Session,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Only of this batch.", show_default=False)] = None,
    limit: Limit = 100,
    *,
    all_: All = False,
    watch: Watch = False,
) -> None:
    """List steps of rollbacks and removals that failed, newest first."""
    found = session.client.pages(path_of("undo-failures"), None if all_ else limit, batchId=batch)
    if watch:
        watch_items(session, lambda: list(found), _FAILURES)
    else:
        session.show_pages(found, _FAILURES, nothing="no step that was to undo something has failed")


@app.command()
@asks_the_api
def retry(
    session: Session,
    batch: Batch,
    step: Annotated[list[int] | None, typer.Option(help="These steps, by number; may be repeated.")] = None,
    reason: Reason = None,
    *,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Retry failed undo steps of a batch: all, or those that you choose. The command shows first what would happen."""
    path = path_of("batches", batch, "undo-failures", "retry")
    planned = session.client.preview(path, {"stepIds": step or None, "dryRun": True})
    for group in planned.get("leftOut") or []:
        session.say(f"left out, {wording.text(group.get('because'))}: {wording.text(group.get('stepIds'))}")
    told = counted(len(planned.get("stepIds") or []), "failed undo step")
    if dry_run:
        session.show(planned, _RETRIED)
        session.say(f"dry run: {told} of batch {batch} would run again; nothing was changed")
        return
    confirm(f"batch {batch}: {told} run again. Go ahead?", yes=yes)
    done: dict[str, Any] = session.client.post(path, {"stepIds": step or None, "reason": reason})
    if session.is_for_people:
        session.say(f"batch {batch}: {counted(len(done.get('stepIds') or []), 'failed undo step')} run again")
    else:
        session.show(done, _RETRIED)
