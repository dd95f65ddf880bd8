"""How states, times and counts are said to people: a state is a colour, a glyph and a word; a time has its zone."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console
from rich.text import Text

from matoolkit.cli.answers import printable
from matoolkit.runbook.offsets import Offset
from matoolkit.words import LOOKS, UNKNOWN, distance

_STYLES = {
    "detected": "cyan",
    "init_dispatched": "blue",
    "active": "blue",
    "completed": "green",
    "failed": "bold red",
    "cancelled": "yellow",
    "removed": "yellow",
    "pending": "dim",
    "dispatched": "blue",
    "polling": "cyan",
    "succeeded": "green",
    "poll_timeout": "bold red",
    "waiting": "cyan",
    "under_way": "blue",
    "done": "green",
    "undoing": "yellow",
    "undone": "yellow",
    "left": "dim",
    "stopped": "yellow",
    "inactive": "dim",
    "skipped": "dim",
    "superseded": "dim",
    "open": "bold red",
    "resent": "green",
    "discarded": "yellow",
    "enabled": "green",
    "disabled": "yellow",
    "ok": "green",
    "missing": "bold red",
    "unknown": "yellow",
    "held": "bold yellow",
    "late": "bold yellow",
    "budget": "bold red",
    "approval": "bold yellow",
    "paused": "bold yellow",
    "frozen": "cyan",
    "overdue": "bold yellow",
    "undo_failed": "bold magenta",
    "source": "bold red",
    "scheduler": "bold yellow",
    "silent": "bold yellow",
    "dead_letter": "bold yellow",
}
# Whether times are told in the zone of this machine; else they are UTC.
_is_local = ContextVar("_is_local", default=False)
_NO_CONSOLE = Console(width=80, force_terminal=False)


def state(word: object, *, letters: bool = False) -> Text:
    """Return a state as colour, glyph and word."""
    told = printable(word, 40)
    look = LOOKS.get(told, UNKNOWN)
    return Text(f"{look.letter if letters else look.glyph} {told.replace('_', ' ')}", style=_STYLES.get(told, ""))


def counts(by_state: Mapping[str, int], *, letters: bool = False) -> Text:
    """Return counts by state in one line."""
    parts = [Text.assemble(f"{count:,} ", state(word, letters=letters)) for word, count in by_state.items() if count]
    return Text(", " if letters else " · ").join(parts) if parts else Text("none", style="dim")


def cut(line: Text, width: int, *, letters: bool = False) -> None:
    """Cut a line to a width, with a mark where there is one."""
    line.truncate(width, overflow="crop" if letters else "ellipsis")


def wrapped(line: Text, width: int, indent: int = 0) -> list[Text]:
    """Break a line that is too long into several, of which all but the first are indented; nothing is cut."""
    if line.cell_len <= width:
        return [line]
    first, rest = line[:indent], line[indent:]
    parts = rest.wrap(_NO_CONSOLE, max(width - indent, 1), overflow="fold")
    return [Text.assemble(" " * indent if at else first, part) for at, part in enumerate(parts)]


@contextmanager
def local_times(*, wanted: bool) -> Iterator[None]:
    """Tell times in the zone of this machine, if that is wanted."""
    before = _is_local.set(wanted)
    try:
        yield
    finally:
        _is_local.reset(before)


def zoned(at: datetime) -> datetime:
    """Return a time in the zone in which times are told."""
    return at.astimezone() if _is_local.get() else at.astimezone(UTC)


def times_are() -> str:
    """Say in which zone times are told, for a heading; its summer time may differ from time to time."""
    return "local time" if _is_local.get() else "UTC"


def instant(value: object) -> datetime | None:
    """Read a time of an answer; anything else is None."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found.astimezone(UTC) if found and found.tzinfo else None


def moment(value: object, *, exactly: bool = False) -> str:
    """Write a time with its zone, to the minute or to the second."""
    found = instant(value)
    if found is None:
        return ""
    return f"{zoned(found):{'%Y-%m-%d %H:%M:%S' if exactly and found.second else '%Y-%m-%d %H:%M'} %Z}"


def offset(minutes: object) -> str:
    """Write a distance from T as runbooks do."""
    return str(Offset(minutes)) if isinstance(minutes, int) else ""


def speed_text(speed: int) -> str:
    """Say how fast a calendar runs."""
    return f"runs {speed:,} times as fast as the clock: a day takes {distance(timedelta(days=1) / speed)}"


def text(value: Any) -> str:
    """Write any value of an answer in one line."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return str(value)
        case list():
            return ", ".join(text(item) for item in value)
        case dict():
            return ", ".join(f"{printable(key, 200)}={text(item)}" for key, item in value.items())
    return printable(value)
