"""`matoolkit now`: what needs a person, of all batches and runbooks."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from matoolkit.cli import wording
from matoolkit.cli.client import path_of
from matoolkit.cli.options import Watch
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, Item, has_only_letters, number, status, table, when
from matoolkit.cli.watching import watch as look_again
from matoolkit.words import NOTHING_NEEDS_A_PERSON, counted

_MATTERS = (
    status("KIND", "kind"),
    Column("NEEDS A PERSON", "sentence"),
    Column("MORE", "detail"),
    when("SINCE", "since"),
    number("BATCH", "batchId"),
    when("T", "batchStartTime"),
    Column("COMMAND", "command"),
)


@asks_the_api
def now(session: Session, *, watch: Watch = False) -> None:
    """Say what needs a person, the most urgent first, and what comes next."""
    if watch:
        _watch(session)
        return
    seen = _seen(session)
    if session.show_all(seen["items"], _MATTERS, nothing=NOTHING_NEEDS_A_PERSON):
        session.say(f"{counted(seen['things'], 'thing')} {'needs' if seen['things'] == 1 else 'need'} a person")
    if not session.is_for_people:
        return
    for sentence in _what_comes(seen):
        session.say(sentence)


def _seen(session: Session) -> dict[str, Any]:
    return session.client.get(path_of("attention"))


def _watch(session: Session) -> None:
    last: dict[str, Any] = {}

    def ask() -> Sequence[Item]:
        nonlocal last
        last = _seen(session)
        items: Sequence[Item] = last["items"]
        return items

    def draw(items: Sequence[Item], console: Console) -> RenderableType:
        lines = table(items, _MATTERS, console.width, letters=has_only_letters(console))
        told = list(lines) if items else [Text(NOTHING_NEEDS_A_PERSON)]
        return Group(*told, Text(), *(Text(sentence, style="dim") for sentence in _what_comes(last)))

    look_again(session, ask, draw)


def _what_comes(seen: dict[str, Any]) -> list[str]:
    """Say what happens next by itself."""
    told = []
    if phase := seen.get("nextPhase"):
        what = f"{wording.text(phase.get('phaseName'))} of batch {phase.get('batchId')}"
        told.append(f"next: {what}, due {wording.moment(phase.get('dueAt'))}")
    if tick := wording.moment(seen.get("lastTickAt"), exactly=True):
        told.append(f"last tick: {tick}")
    return told
