"""Who is meant: people name a member by its key, by an address in its row, or by its number."""

from typing import Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.session import Session
from matoolkit.errors import AmbiguousPerson, UnknownPerson

_HELP = "Key of the member, an address in its row, or its number."

Who = Annotated[str, typer.Argument(metavar="WHO", help=_HELP)]
Members = Annotated[
    list[str] | None,
    typer.Option("--member", metavar="WHO", help="These members, by key, address or number; may be repeated."),
]


def member_meant(session: Session, batch: int, who: str) -> dict[str, Any]:
    """Return the one member of a batch that is meant: its number, and its key."""
    found = _meant(session, who, batch)
    if len(found) != 1:
        _refuse(found, who, batch)
    return found[0]


def members_meant(session: Session, batch: int, names: list[str] | None) -> list[int] | None:
    """Return the numbers of the members of a batch that are meant."""
    return [int(member_meant(session, batch, who)["id"]) for who in names] if names else None


def key_meant(session: Session, who: str) -> str:
    """Return the key of the one person who is meant, in whatever batches it is."""
    found = _meant(session, who, None)
    if len({wording.text(one.get("memberKey")).casefold() for one in found}) != 1:
        _refuse(found, who, None)
    return str(found[0]["memberKey"])


def key_in_runbook(session: Session, runbook: str, who: str) -> str:
    """Return the key of somebody in a runbook: the key itself, or that of the member whose row has the address.

    A number is taken for a key: it may be that of a row that is in no batch.
    """
    if who.isdigit():
        return who
    name = runbook.casefold()
    found = [one for one in _meant(session, who, None) if wording.text(one.get("runbookName")).casefold() == name]
    keys = {wording.text(one.get("memberKey")).casefold(): str(one["memberKey"]) for one in found}
    if len(keys) > 1:
        _refuse(found, who, None)
    return next(iter(keys.values()), who)


def anybody_meant(session: Session, who: str) -> list[dict[str, Any]]:
    """Return everybody who may be meant, in all batches."""
    return _meant(session, who, None)


def _meant(session: Session, who: str, batch: int | None) -> list[dict[str, Any]]:
    return session.client.whole_list(path_of("members", "meant"), who=who, batchId=batch)


def _refuse(found: list[dict[str, Any]], who: str, batch: int | None) -> None:
    if not found:
        raise UnknownPerson(who, batch)
    raise AmbiguousPerson(
        who, [f"{one.get('memberKey')} (number {one.get('id')}, batch {one.get('batchId')})" for one in found]
    )
