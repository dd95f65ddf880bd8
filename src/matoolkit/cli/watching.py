"""Looking again and again: `--watch` shows every change, `--wait` shows how far it is until there is an outcome."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from rich.console import Console, Group, RenderableType

from matoolkit.cli.output import PlainConsole, stderr, write_json
from matoolkit.cli.session import Session
from matoolkit.cli.tables import Column, Item, has_only_letters, table
from matoolkit.errors import MatoolkitError

PAUSE_SECONDS = 2.0
# A watch survives a restart of the server, but not a server that stays away.
_MOST_MISSED = 30

Ask = Callable[[], Sequence[Item]]
IsOver = Callable[[Sequence[Item]], bool]


@dataclass(frozen=True, slots=True)
class HowFar:
    """How much of something is done, and what it is doing."""

    done: int
    total: int
    doing: str


def watch(
    session: Session,
    ask: Ask,
    draw: Callable[[Sequence[Item], Console], RenderableType],
    is_over: IsOver = lambda _: False,
) -> None:
    """Show what is asked for: redrawn on a terminal, else a line of JSON for each new or changed item."""
    console = PlainConsole()
    if not session.is_for_people or not console.is_terminal:
        _print_changes(session, ask, is_over)
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        for items in _looks(session, ask, is_over):
            live.update(draw(items, console), refresh=True)


def watch_items(session: Session, ask: Ask, columns: Sequence[Column]) -> None:
    """Watch a list."""
    watch(
        session,
        ask,
        lambda items, console: Group(*table(items, columns, console.width, letters=has_only_letters(console))),
    )


def wait(
    session: Session, ask: Callable[[], dict[str, Any]], is_over: Callable[[Item], bool], far: Callable[[Item], HowFar]
) -> dict[str, Any]:
    """Ask until it is over, and return what it is then; a terminal shows a bar, a log a line for every change."""
    last: dict[str, Any] = {}

    def look() -> Sequence[Item]:
        nonlocal last
        last = ask()
        return [last]

    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console = stderr()
    said = None
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn("{task.completed}/{task.total}", markup=False),
        console=PlainConsole(stderr=True),
        disable=not console.is_terminal,
        auto_refresh=False,
        transient=True,
    )
    with bar:
        task = bar.add_task("")
        for items in _looks(session, look, lambda items: is_over(items[0])):
            now = far(items[0])
            bar.update(task, description=now.doing, completed=now.done, total=max(now.total, 1), refresh=True)
            if not console.is_terminal and now.doing != said:
                said = now.doing
                console.print(f"waiting: {said}")
    return last


def _looks(session: Session, ask: Ask, is_over: IsOver) -> Iterator[Sequence[Item]]:
    """Ask, pause, ask; the first answer has to come, later ones may fail for a while."""
    items, missed = ask(), 0
    while True:
        if not missed:
            yield items
            if is_over(items):
                return
        session.clock.sleep(PAUSE_SECONDS)
        try:
            items, missed = ask(), 0
        except MatoolkitError as fault:
            missed += 1
            if not fault.transient or missed > _MOST_MISSED:
                raise


def _print_changes(session: Session, ask: Ask, is_over: IsOver) -> None:
    before: set[bytes] = set()
    for items in _looks(session, ask, is_over):
        written = [orjson.dumps(item) for item in items]
        for line in written:
            if line not in before:
                write_json(line)
        before = set(written)
