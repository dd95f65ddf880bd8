"""`matoolkit member`: one person in all batches, and all that was done for it."""

from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.options import All, BatchOption, DryRun, Limit, Name, Reason, Yes, given
from matoolkit.cli.output import stdout
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, Form, number, print_item, print_items, status, when
from matoolkit.cli.undo_words import UndoVersion, details_of_exclusion
from matoolkit.cli.whom import Who, anybody_meant, key_in_runbook, key_meant, member_meant
from matoolkit.errors import UnknownPerson

app = typer.Typer(no_args_is_help=True)

_ENROLMENTS = (
    number("BATCH", "batchId"),
    number("ID", "id"),
    Column("KEY", "memberKey"),
    status("STATE", "state"),
    Column("RUNBOOK", "runbookName"),
    status("BATCH STATUS", "batchStatus"),
    when("T", "batchStartTime"),
)
_MEMBER = (
    number("MEMBER", "id"),
    Column("KEY", "memberKey"),
    number("BATCH", "batchId"),
    Column("RUNBOOK", "runbookName"),
    status("BATCH STATUS", "batchStatus"),
    when("T", "batchStartTime"),
    status("STATE", "state"),
    Column("COMPLETED", "lastCompletedPhase"),
    number("EPOCH", "epoch"),
    Column("PILOT", "isPilot"),
    when("ADDED", "addedAt"),
    when("LEFT", "removedAt"),
    Column("REASON", "removeReason"),
    when("UNDONE", "undoneAt"),
    when("FAILED", "failedAt"),
    Column("DATA", "data"),
    Column("OUTPUTS", "outputs"),
)
_INCLUDED = (
    Column("RUNBOOK", "runbookName"),
    Column("KEY", "memberKey"),
    when("T", "batchTime"),
    number("BATCH", "batchId"),
    Column("WAITS FOR", "waitsFor"),
)
_EXCLUDED = (
    Column("RUNBOOK", "runbookName"),
    Column("KEY", "memberKey"),
    Column("LEAVES", "leaves"),
    Column("UNDOES", lambda item: (item.get("undo") or {}).get("batchId", "")),
)
_EXCLUSIONS = (
    Column("KEY", "memberKey"),
    when("SINCE", "excludedAt"),
    Column("BY", "excludedBy"),
    Column("REASON", "reason"),
)
_Key = Annotated[str, typer.Argument(help="Key of the member, in any case, or an address in its row.")]
_STEPS = (
    number("EPOCH", "epoch"),
    Column("PHASE", "phaseName"),
    Column("STEP", "stepName"),
    status(),
    number("TRY", "attempt"),
    when("ENDED", "completedAt"),
    Column("ERROR", "errorMessage"),
)
_ROLLBACKS = (number("EPOCH", "epoch"), Column("UNDOES", "sequenceName"), Column("BECAUSE", "cause"), *_STEPS[2:])


@app.command()
@asks_the_api
def find(
    session: Session,
    part: Annotated[
        str, typer.Argument(metavar="PART", help="A key or a part of it, in any case, or an address in a row.")
    ],
    limit: Limit = 100,
    *,
    all_: All = False,
) -> None:
    """Find people by a part of their key, or by an address in their row, in every batch in which they are or were.

    Those of the newest batches come first.
    """
    nothing = "no batch has or had such a member"
    if "@" in part and not any(True for _ in session.client.pages(path_of("members"), 1, keyContains=part)):
        session.show_all(anybody_meant(session, part), _ENROLMENTS, nothing=nothing)
        return
    found = session.client.pages(path_of("members"), None if all_ else limit, keyContains=part)
    session.show_pages(found, _ENROLMENTS, nothing=nothing)


@app.command()
@asks_the_api
def include(
    session: Session,
    name: Name,
    key: _Key,
    reason: Reason = None,
) -> None:
    """Include somebody who is kept outside: by a person (`exclude`), because T has passed, or because it is done.

    For somebody who is excluded this only ends the exclusion; the next tick treats its row like any other.
    """
    asked = {"memberKey": key_in_runbook(session, name, key), "reason": reason}
    done = session.client.post(path_of("runbooks", name, "members", "include"), asked)
    if not session.is_for_people:
        session.show(done, _INCLUDED)
        return
    if done.get("wasExcluded"):
        session.say(f"{wording.text(done.get('memberKey'))} is no longer excluded: {_what_follows(done)}")
        return
    where = f"batch {done['batchId']}" if done.get("batchId") else "a new batch"
    waits_for = wording.text(done.get("waitsFor"))
    ending = f"; it waits, {waits_for}" if waits_for else " with the next tick"
    start = wording.moment(done.get("batchTime"))
    session.say(f"{wording.text(done.get('memberKey'))} joins {where} of {start}{ending}")


def _what_follows(done: dict[str, Any]) -> str:
    start = wording.moment(done.get("batchTime"))
    waits_for = wording.text(done.get("waitsFor"))
    if not start:
        return "its row counts again when the source has one"
    return f"its row of {start} counts again" + (f"; it waits, {waits_for}" if waits_for else " with the next tick")


@app.command()
@asks_the_api
def exclude(
    session: Session,
    name: Name,
    key: _Key,
    reason: Reason = None,
    version: UndoVersion = None,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Undo what was done for it in its last batch.")] = False,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="With --yes: exclude a key that nobody has yet, too.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Keep somebody out of all batches of a runbook, whatever the source says, until it is included again.

    If it is under way, its work stops. What was done stays, unless you say `--undo`.
    """
    asked = {"memberKey": key_in_runbook(session, name, key), "undo": undo, "version": version}
    path = path_of("runbooks", name, "members", "exclude")
    planned = session.client.preview(f"{path}/preview", asked)
    for sentence in details_of_exclusion(planned):
        session.say(sentence)
    if dry_run:
        if not session.is_for_people:
            session.show(planned, _EXCLUDED)
        session.say("dry run: nothing was changed")
        return
    why = given(reason)
    if yes and not unknown and not planned["isKnown"]:
        # Nobody looks at the sentence above. With a typing error the person would still move.
        raise UnknownPerson(
            key, None, hint="correct the key, or say `--unknown` to exclude somebody who is yet to come"
        )
    if not yes:
        confirm(f"exclude {wording.text(planned.get('memberKey'))} from {wording.text(name)}?", yes=yes)
    done = session.client.post(path, {**asked, "reason": why})
    if session.is_for_people:
        session.say(f"{wording.text(done.get('memberKey'))} is excluded until `matoolkit member include`")
    else:
        session.show(done, _EXCLUDED)


@app.command()
@asks_the_api
def excluded(session: Session, name: Name, limit: Limit = 100, *, all_: All = False) -> None:
    """List the people who are kept out of all batches of a runbook."""
    found = session.client.pages(path_of("runbooks", name, "members", "excluded"), None if all_ else limit)
    session.show_pages(found, _EXCLUSIONS, nothing="nobody is excluded")


@app.command()
@asks_the_api
def history(session: Session, who: Who, batch: BatchOption = None) -> None:
    """Show everything that was done for a person, in all its batches, newest first, at most 20."""
    if batch is not None:
        member = member_meant(session, batch, who)["id"]
        places = [session.client.get(path_of("batches", batch, "members", member))]
    else:
        places = session.client.whole_list(path_of("members", "history"), key=key_meant(session, who))
    if not session.is_for_people:
        session.show_all(places, _MEMBER, nothing="")
        return
    for at, place in enumerate(places):
        if at:
            stdout().print()
        _print_history(place, session.form)


def _print_history(found: dict[str, Any], form: Form) -> None:
    print_item(found, _MEMBER, form)
    for steps, columns in ((found.get("steps"), _STEPS), (found.get("rollbacks"), _ROLLBACKS)):
        if steps:
            stdout().print()
            print_items(steps, columns, form)
