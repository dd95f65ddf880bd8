"""`matoolkit hold`: batches that wait for a person's approval."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.commands.batch import BATCHES, cancel_after_asking
from matoolkit.cli.moments import given_moment
from matoolkit.cli.options import All, DryRun, HeldBatch, Limit, OneHeldBatch, Reason, RunbookOption, Watch, Yes
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, number, when
from matoolkit.cli.watching import watch_items
from matoolkit.words import counted

app = typer.Typer(no_args_is_help=True)

_MOST_NAMED = 5
_REFUSED = 5


def _new_dues(hold: Mapping[str, Any]) -> list[str]:
    dues = hold.get("newDues") or []
    return [f"{wording.text(due.get('phaseName'))} {wording.moment(due.get('dueAt'))}" for due in dues]


def _delays(hold: Mapping[str, Any]) -> list[str]:
    return [wording.text(delay.get("sentence")) for delay in hold.get("delays") or []]


_HOLDS = (*BATCHES[:-1], Column("HELD FOR", "holdReason"))
_HOLD = (
    number("BATCH", "batchId"),
    Column("RUNBOOK", "runbookName"),
    Column("KIND", "kind"),
    Column("REASON", "reason"),
    when("HELD SINCE", "heldAt"),
    when("NEW T", "newStart"),
    Column("PHASES THEN", _new_dues),
    Column("LATE THEN", _delays),
    Column("VOIDED THEN", "voidedApprovals"),
    number("COUNT", "memberCount"),
    Column("MEMBERS", "members"),
    Column("APPROVED", "isApproved"),
    Column("BY", "approvedBy"),
    Column("SIGN-OFFS", "signOffs"),
    Column("WAITS FOR", "waitsFor"),
    Column("KEY", "holdKey"),
)
_MEMBERS = (number("ID", "id"), Column("KEY", "memberKey"))
_LATE = (Column("BATCHES", "batchIds"), number("MEMBERS", "memberCount"), Column("DRY RUN", "isDryRun"))
_DECIDED = {"approve": "approved", "cancel": "cancelled"}
_NOT_BEGUN = ("late", "repeat")

Late = Annotated[bool, typer.Option("--late", help="All batches that are held as late, with `--before`.")]
Before = Annotated[
    str | None, typer.Option("--before", metavar="DATE", help="Those whose T lies before this date or time.")
]


@app.command("list")
@asks_the_api
def list_(session: Session, *, watch: Watch = False) -> None:
    """List the batches that wait for a person's approval, newest first."""
    found = session.client.pages(path_of("holds"))
    if watch:
        watch_items(session, lambda: list(found), _HOLDS)
    else:
        session.show_pages(found, _HOLDS, nothing="nothing is held")


@app.command()
@asks_the_api
def show(session: Session, batch: HeldBatch) -> None:
    """Show what a batch is held for: how many would leave and the first 100 of them, or when it would start."""
    hold = session.client.get(path_of("batches", batch, "hold"))
    session.show(hold, _HOLD)
    if then := _overdue(session, hold):
        session.say(f"with that start these phases would be overdue and begin at once: {then}")
    named, count = len(hold.get("members") or []), int(hold.get("memberCount") or 0)
    if named < count:
        session.say(f"the first {named:,} of {count:,}; `matoolkit hold members {batch} --all` lists all")


@app.command()
@asks_the_api
def members(session: Session, batch: HeldBatch, limit: Limit = 100, *, all_: All = False) -> None:
    """List exactly the members that a hold is about."""
    found = session.client.pages(path_of("batches", batch, "hold", "members"), None if all_ else limit)
    session.show_pages(found, _MEMBERS, nothing="the hold is about no member")


@app.command()
@asks_the_api
def approve(
    session: Session,
    batch: OneHeldBatch = None,
    key: str | None = typer.Option(None, "--key", help="Approve only if it is still this hold; `show` prints it."),
    before: Before = None,
    runbook: RunbookOption = None,
    reason: Reason = None,
    *,
    late: Late = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Approve what a batch is held for, if it is still what was shown; or many late batches at once."""
    one = _meant(batch, before, late=late, dry_run=dry_run)
    if one is None:
        _decide_late(session, "approve", before, runbook, reason, dry_run=dry_run, yes=yes)
        return
    hold = session.client.get(path_of("batches", one, "hold"))
    if not yes:
        then = _overdue(session, hold)
        confirm(f"batch {one}: {_in_words(hold)}{f'; overdue then: {then}' if then else ''}. Approve?", yes=yes)
    # An empty key, such as that of a variable without a value, must not approve what nobody has compared.
    asked = {"holdKey": hold.get("holdKey") if key is None else key, "reason": reason}
    done = session.client.post(path_of("batches", one, "hold", "approve"), asked)
    if session.is_for_people:
        if progress := wording.text(done.get("signOffs")):
            session.say(f"batch {one}: {_in_words(hold)}: signed off; {progress}")
            return
        waits_for = wording.text(done.get("waitsFor"))
        session.say(f"batch {one}: {_in_words(hold)}: approved" + (f"; it waits, {waits_for}" if waits_for else ""))
    else:
        session.show(done, BATCHES)


@app.command()
@asks_the_api
def cancel(
    session: Session,
    batch: OneHeldBatch = None,
    before: Before = None,
    runbook: RunbookOption = None,
    reason: Reason = None,
    *,
    late: Late = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Cancel a batch that is held, for good; or many late batches at once."""
    one = _meant(batch, before, late=late, dry_run=dry_run)
    if one is None:
        _decide_late(session, "cancel", before, runbook, reason, dry_run=dry_run, yes=yes)
        return
    session.client.get(path_of("batches", one, "hold"))
    cancel_after_asking(session, one, reason, yes=yes)


def _overdue(session: Session, hold: dict[str, Any]) -> str:
    """Name the phases that would be past due if a batch got the start that it is held for."""
    now = session.clock.now()
    dues = [(due.get("phaseName"), wording.instant(due.get("dueAt"))) for due in hold.get("newDues") or []]
    return wording.text([name for name, at in dues if at is not None and at <= now])


def _meant(batch: int | None, before: str | None, *, late: bool, dry_run: bool) -> int | None:
    """Return the chosen batch, or none if many late ones are chosen; both or neither is a mistake."""
    if batch is not None and dry_run:
        # Ignoring `--dry-run` would make the decision for real.
        raise typer.BadParameter("`--dry-run` goes with `--late`; `matoolkit hold show` says what a batch is held for")
    if late == (before is not None) == (batch is None):
        return batch
    raise typer.BadParameter("name a batch, or say `--late --before DATE`")


def _decide_late(
    session: Session,
    what: str,
    before: str | None,
    runbook: str | None,
    reason: str | None,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    path = path_of("holds", "late", what)
    asked = {"before": given_moment(before or ""), "runbookName": runbook, "reason": reason}
    if not (yes or dry_run):
        found = session.client.post(path, asked | {"dryRun": True})
        confirm(f"{_counted(found)} whose T lies before {before}. {what.capitalize()} them?", yes=yes)
    done = session.client.post(path, asked | {"dryRun": dry_run})
    if session.is_for_people:
        session.say(f"{_counted(done)}: {'would be ' if dry_run else ''}{_DECIDED[what]}")
        if signed := done.get("signedIds"):
            session.say(f"signed off, and more sign-offs are missing: batch {', '.join(map(str, signed))}")
        for refused in (done.get("refused") or [])[:_MOST_NAMED]:
            session.say(f"batch {refused['batchId']}: {wording.text(refused['detail'])} [{refused['code']}]")
    else:
        session.show(done, _LATE)
    if done.get("refused") and not (done.get("batchIds") or done.get("signedIds")):
        raise typer.Exit(_REFUSED)


def _counted(found: dict[str, Any]) -> str:
    number_of = len(found.get("batchIds") or [])
    members = counted(int(found.get("memberCount") or 0), "member")
    return f"{number_of:,} late {'batch' if number_of == 1 else 'batches'} with {members}"


def _in_words(hold: dict[str, Any]) -> str:
    members = hold.get("members") or []
    if hold.get("kind") in _NOT_BEGUN:
        return f"{wording.text(hold.get('reason'))}; it would begin"
    if members:
        count = max(int(hold.get("memberCount") or 0), len(members))
        more = f" and {count - _MOST_NAMED:,} more" if count > _MOST_NAMED else ""
        return f"{counted(count, 'member')} would leave ({wording.text(members[:_MOST_NAMED])}{more})"
    start = wording.moment(hold.get("newStart"))
    return f"it would start at {start}" if start else wording.text(hold.get("reason"))
