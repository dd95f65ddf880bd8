"""`matoolkit dead-letter`: messages that could not be handled."""

from typing import Annotated

import typer

from matoolkit.cli.client import path_of
from matoolkit.cli.options import All, Letter, Limit, Reason, Watch, Yes
from matoolkit.cli.session import Session, asks_the_api, confirm
from matoolkit.cli.tables import Column, number, status, when
from matoolkit.cli.watching import watch_items
from matoolkit.domain.states import DeadLetterStatus

app = typer.Typer(no_args_is_help=True)

_LETTERS = (
    number("ID", "id"),
    status(),
    Column("TYPE", "messageType"),
    Column("SUBSCRIPTION", "subscription"),
    number("TRIES", "deliveryCount"),
    when("SINCE", "deadLetteredAt"),
    Column("REASON", "reason"),
)
_LETTER = (
    *_LETTERS,
    Column("DESCRIPTION", "description"),
    Column("MESSAGE", "messageId"),
    when("DEALT WITH", "resolvedAt"),
    Column("BY", "resolvedBy"),
    Column("SENT AGAIN AS", "resentMessageId"),
    Column("PROPERTIES", "properties"),
    Column("BODY", "body"),
)
_RESENT = (number("LETTER", "letterId"), Column("SENT AS", "messageId"), Column("TRIED AGAIN", "retried"))


@app.command("list")
@asks_the_api
def list_(
    session: Session,
    wanted: Annotated[DeadLetterStatus, typer.Option("--status", help="Which ones.")] = DeadLetterStatus.OPEN,
    limit: Limit = 100,
    *,
    all_: All = False,
    watch: Watch = False,
) -> None:
    """List messages that could not be handled, newest first."""
    found = session.client.pages(path_of("dead-letters"), None if all_ else limit, status=wanted.value)
    if watch:
        watch_items(session, lambda: list(found), _LETTERS)
    else:
        session.show_pages(found, _LETTERS, nothing=f"no dead letter is {wanted.value}")


@app.command()
@asks_the_api
def show(session: Session, letter: Letter) -> None:
    """Show a dead letter with its content, which may hold parameters of a job."""
    session.show(session.client.get(path_of("dead-letters", letter)), _LETTER)


@app.command()
@asks_the_api
def resend(session: Session, letter: Letter, reason: Reason = None, *, yes: Yes = False) -> None:
    """Send a dead letter again; for a job, its step is retried."""
    confirm(f"send dead letter {letter} again?", yes=yes)
    done = session.client.post(path_of("dead-letters", letter, "resend"), {"reason": reason})
    if session.is_for_people:
        became = (
            f"sent again as {done['messageId']}" if done.get("messageId") else f"tried again: {done.get('retried')}"
        )
        session.say(f"dead letter {letter} was {became}")
    else:
        session.show(done, _RESENT)


@app.command()
@asks_the_api
def discard(session: Session, letter: Letter, reason: Reason = None, *, yes: Yes = False) -> None:
    """Discard a dead letter for good."""
    confirm(f"discard dead letter {letter}? It is not sent again.", yes=yes)
    done = session.client.post(path_of("dead-letters", letter, "discard"), {"reason": reason})
    if session.is_for_people:
        session.say(f"dead letter {letter} is discarded")
    else:
        session.show(done, _LETTERS)
