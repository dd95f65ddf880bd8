"""`matoolkit runbook`, the commands that ask the admin API: publish, look at and put out of use."""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Group

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.files import name_of, read_file, write_file
from matoolkit.cli.lint_output import print_findings
from matoolkit.cli.options import DryRun, Name, Reason, Replace, To, Version, Watch, Yes
from matoolkit.cli.output import stdout, write
from matoolkit.cli.runbook_view import STATUS, status_view
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, Form, Item, number, print_items, status, when
from matoolkit.cli.watching import watch as watch_it
from matoolkit.errors import ProblemOfServer
from matoolkit.runbook.source import MAX_BYTES
from matoolkit.words import counted, out_of_use_told, published_told, repeats_told

app = typer.Typer()

_VERSIONS = (
    Column("NAME", "name"),
    number("VERSION", "version"),
    status("STATUS", lambda item: "active" if item.get("isActive") else "inactive"),
    when("PUBLISHED", "createdAt"),
    Column("BY", "publishedBy"),
    Column("LAST ERROR", "lastError"),
)
_PUBLISHED = (
    Column("RUNBOOK", "name"),
    number("VERSION", "version"),
    Column("NEW", "isNew"),
    Column("DRY RUN", "isDryRun"),
)
_IMPACTS = (
    number("BATCH", "batchId"),
    when("T", "startTime"),
    Column("EFFECT", "effect"),
    Column("REPEATED PHASES", "repeatedPhases"),
)

_MOST_DELAYS = 10


class Overdue(StrEnum):
    """What batches in flight do with phases that are past due."""

    RERUN = "rerun"
    IGNORE = "ignore"


@app.command()
@asks_the_api
def publish(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The runbook; - is standard input.")],
    name: Annotated[
        str | None, typer.Option(help="Refuse the document unless this is its name.", show_default=False)
    ] = None,
    overdue: Annotated[Overdue, typer.Option(help="What batches in flight do with phases past due.")] = Overdue.RERUN,
    *,
    rerun_init: Annotated[bool, typer.Option("--rerun-init", help="Batches in flight run their init again.")] = False,
    enable: Annotated[bool, typer.Option("--enable", help="Switch automation on as well.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Make a new version even if the document has not changed.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Publish a runbook as its next version. If phases would run again, the command asks first.

    Exit code 1: it has errors, which are shown with their lines.
    """
    content = read_file(file, MAX_BYTES)
    options = {"name": name, "overdueBehavior": overdue.value, "rerunInit": rerun_init, "force": again}
    shown = "<stdin>" if file == "-" else name_of(file)
    send = partial(session.client.send_yaml, path_of("runbooks"), content, **options, enable=enable)
    try:
        if not dry_run and not yes:
            _ask_before_repeating(send(dryRun=True))
        done = send(dryRun=dry_run)
    except ProblemOfServer as problem:
        print_findings(shown, content, problem.errors)
        raise
    print_findings(shown, content, done.get("warnings") or [])
    if not session.is_for_people:
        session.show(done, _PUBLISHED)
        return
    impacts = done.get("impacts") or []
    if impacts:
        print_items(impacts, _IMPACTS, session.form)
    for impact in impacts:
        if names := dict.fromkeys(one["signedBy"] for one in impact.get("voidedApprovals") or ()):
            session.say(f"batch {impact['batchId']}: sign-offs that count no more: {', '.join(names)}")
    session.say(_said(done, enable=enable))
    _tell_delays(session, done)
    if not done.get("automationEnabled"):
        name = wording.text(done.get("name"))
        session.say(
            f"automation of {name} is off: nobody is found in its source before `matoolkit automation enable {name}`"
        )


@app.command("list")
@asks_the_api
def list_(session: Session) -> None:
    """List the active version of every runbook."""
    found = session.client.whole_list(path_of("runbooks"))
    session.show_all(found, _VERSIONS, nothing="no runbook is active: `matoolkit runbook publish FILE`")


@app.command()
@asks_the_api
def get(
    session: Session,
    name: Name,
    version: Version = None,
    to: To = None,
    *,
    force: Replace = False,
) -> None:
    """Print a runbook's document: the active version, or the newest if none is active. -o json prints all about it."""
    found = _document(session, name, version)
    if to is not None:
        write_file(to, [str(found.get("yamlContent")).encode()], replace=force)
        session.say(f"{found.get('name')} v{found.get('version')} is in {name_of(to)}")
    elif session.is_for_people or session.form is Form.YAML:
        write(str(found.get("yamlContent")))
    else:
        session.show(found, _VERSIONS)


@app.command()
@asks_the_api
def versions(session: Session, name: Name) -> None:
    """List all versions of a runbook, newest first."""
    session.show_all(session.client.whole_list(path_of("runbooks", name, "versions")), _VERSIONS, nothing="none")


@app.command()
@asks_the_api
def delete(
    session: Session,
    name: Name,
    number_: Annotated[
        int | None, typer.Argument(metavar="VERSION", min=1, help="The active version.", show_default=False)
    ] = None,
    version: Version = None,
    reason: Reason = None,
    *,
    yes: Yes = False,
) -> None:
    """Deactivate the active version of a runbook: no new members are found, batches in flight go on."""
    wanted = number_ or version
    if wanted is None or (number_ and version and number_ != version):
        raise typer.BadParameter("say which version, once: VERSION or --version", param_hint="VERSION")
    confirm(f"put {name} v{wanted} out of use?", yes=yes)
    done = session.client.delete(path_of("runbooks", name, "versions", wanted), reason=reason)
    if session.is_for_people:
        session.say(out_of_use_told(wording.text(done.get("name")), wanted))
    else:
        session.show(done, _VERSIONS)


@app.command("status")
@asks_the_api
def status_(session: Session, name: Name, *, watch: Watch = False) -> None:
    """Say how a runbook is doing: its last tick, rows set aside, whom it left alone, what is held, and why."""

    def ask() -> dict[str, Any]:
        return session.client.get(path_of("runbooks", name, "status"))

    def draw(items: Sequence[Item], console: Any) -> Any:
        return Group(*status_view(items[0], console))

    if watch:
        watch_it(session, lambda: [ask()], draw)
    elif session.is_for_people:
        console = stdout()
        for line in status_view(ask(), console, is_wide=session.form is Form.WIDE):
            console.print(line)
    else:
        session.show(ask(), STATUS)


def _ask_before_repeating(planned: dict[str, Any]) -> None:
    """Ask, if batches in flight would run phases again (rule V1)."""
    repeating = [impact for impact in planned.get("impacts") or [] if impact.get("repeatedPhases")]
    if repeating:
        phases = [str(name) for impact in repeating for name in impact["repeatedPhases"]]
        confirm(f"{repeats_told(phases, [str(impact.get('batchId')) for impact in repeating])}; publish?", yes=False)


def _document(session: Session, name: str, version: int | None) -> dict[str, Any]:
    if version is None:
        return session.client.get(path_of("runbooks", name))
    return session.client.get(path_of("runbooks", name, "versions", version))


def _tell_delays(session: Session, done: dict[str, Any]) -> None:
    """Say which phases freezes and windows keep until they are late (rule K6)."""
    listed = (done.get("delays") or [])[:_MOST_DELAYS]
    for delay in listed:
        session.say(wording.text(delay.get("sentence")))
    more = int(done.get("delayCount") or 0) - len(listed)
    if more:
        session.say(f"and {counted(more, 'phase')} more that freezes and windows keep too long: `-o json` lists 100")


def _said(done: dict[str, Any], *, enable: bool) -> str:
    return published_told(
        wording.text(done.get("name")),
        int(done.get("version") or 0),
        len(done.get("impacts") or []),
        is_new=bool(done.get("isNew")),
        is_dry_run=bool(done.get("isDryRun")),
        enables=enable,
    )
