"""The story of `matoolkit up` on a terminal or in a file: a line for each thing that happened."""

import logging
import textwrap
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from matoolkit.cli.answers import printable
from matoolkit.cli.tables import has_only_letters
from matoolkit.cli.wording import speed_text
from matoolkit.clock import Pace
from matoolkit.hosting.all_in_one import API_PORT, HOST, Places
from matoolkit.hosting.demo import NAME as DEMO
from matoolkit.hosting.story import Line, Mark

# Glyph, letter for terminals that have no glyphs, style.
_LOOKS = {
    Mark.FOUND: ("●", "*", "bold cyan"),
    Mark.SET_ASIDE: ("!", "!", "yellow"),
    Mark.DUE: ("▶", ">", "bold blue"),
    Mark.JOINED: ("+", "+", "cyan"),
    Mark.LEFT: ("-", "-", "yellow"),
    Mark.DONE: ("✔", "=", "green"),
    Mark.WAITS: ("…", ".", "dim"),
    Mark.AGAIN: ("↻", "~", "yellow"),
    Mark.FAILED: ("✖", "x", "bold red"),
    Mark.UNDONE: ("↶", "<", "magenta"),
    Mark.MIGRATED: ("★", "#", "bold green"),
    Mark.ENDED: ("■", "o", "bold"),
    Mark.HELD: ("‖", "!", "bold yellow"),
    Mark.CHANGED: ("≈", "~", "cyan"),
    Mark.WARNING: ("!", "!", "bold yellow"),
    Mark.NOTE: ("·", ".", "dim"),
}
_WORD = max(len(mark) for mark in Mark)
_LEAST_TEXT = 20
_LONGEST = 4000


class Teller:
    """Prints lines, from whichever thread they come; a terminal gets them wrapped, a file never."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._has_only_letters = has_only_letters(console)
        # A signal handler may print while the same thread prints a line.
        self._lock = threading.RLock()
        self._places: Places | None = None
        self._pace: Pace | None = None

    def welcome(self, places: Places) -> None:
        """Say what runs where; after a restart also where everything stands."""
        self._pace = places.pace
        names = ", ".join(places.runbooks) or "no runbook"
        told = "the demo" if names == DEMO else names
        head = Text.assemble(("M&A Toolkit", "bold"), f": the whole system in one process, on {told}")
        where = {
            "pages": f"{places.api_url}  (for a browser)",
            "admin API": f"{places.api_url}  (openapi.json describes it)",
            "tenant": f"{places.tenant_url}  (simulated; see /_tenant/users)",
            "state": places.database,
        }
        if places.pace is not None:
            where["time"] = speed_text(places.pace.speed)
        rows = [Text.assemble(f"  {name:<10} ", (what, "cyan")) for name, what in where.items()]
        stops = Text("  Ctrl-C stops it, the next start goes on from there. Times are UTC.\n", "dim")
        self._print(head, *rows, stops)
        if places.so_far is None:
            self._places = places
            return
        self._print(Text("It goes on where it was; `matoolkit up --fresh` starts again."))
        self._print(*(self._rendered(line) for line in places.so_far))
        self._print(*_hints(places))

    def tell(self, lines: Sequence[Line]) -> None:
        """Print lines, and once somebody is through, what to try next."""
        self._print(*(self._rendered(line) for line in lines))
        if self._places and any(line.mark is Mark.MIGRATED for line in lines):
            self._print(*_hints(self._places))
            self._places = None

    def _print(self, *texts: Text) -> None:
        with self._lock:
            for text in texts:
                self._console.print(text)

    def _rendered(self, line: Line) -> Text:
        batch = "" if line.batch is None else f"#{line.batch}"
        glyph, letter, style = _LOOKS[line.mark]
        text = Text.assemble(
            (f"{self._moment(line.at)} ", "dim"),
            f"{batch:<3}",
            (f"{line.offset:<8}", "dim"),
            (f"{letter if self._has_only_letters else glyph} {line.mark:<{_WORD}} ", style),
        )
        told = "\n".join(printable(part, _LONGEST) for part in line.text.splitlines())
        return text.append(self._wrapped(told, len(text)), style if line.mark is Mark.MIGRATED else "")

    def _moment(self, at: datetime) -> str:
        """Write a time; where time runs fast, the day and the speed as well."""
        if self._pace is None:
            return f"{at:%H:%M:%S}"
        return f"x{self._pace.speed} {at:%d %b %H:%M}"

    def calendar_time(self, real: datetime) -> datetime:
        """Return the time that the lines show at a time of the clock."""
        return real if self._pace is None else self._pace.at(real)

    def _wrapped(self, text: str, indent: int) -> str:
        room = self._console.width - indent
        if not self._console.is_terminal or room < _LEAST_TEXT:
            return text
        lines = [part for line in text.splitlines() for part in textwrap.wrap(line, room, break_on_hyphens=False)]
        return f"\n{' ' * indent}".join(lines)


class StoryHandler(logging.Handler):
    """Shows what else the system says; what concerns a batch is in the story already."""

    def __init__(self, teller: Teller) -> None:
        super().__init__()
        self._teller = teller

    def emit(self, record: logging.LogRecord) -> None:
        """Make a line of a record."""
        is_warning = record.levelno >= logging.WARNING
        if hasattr(record, "batch") or not (is_warning or record.name.startswith("matoolkit.hosting")):
            return
        at = self._teller.calendar_time(datetime.fromtimestamp(record.created, UTC))
        try:
            # The formatter masks secrets (rule W8).
            self._teller.tell([Line(at, Mark.WARNING if is_warning else Mark.NOTE, self.format(record))])
        except Exception:  # noqa: BLE001 - what cannot be told stops nobody
            self.handleError(record)


def _hints(places: Places) -> Iterator[Text]:
    yield Text("\nTry next, in another terminal:", "bold")
    commands = {
        ". .venv/bin/activate": "the command, on your path" if Path(".venv/bin/activate").exists() else "",
        f"export MATOOLKIT_API_URL={places.api_url}": ""
        if places.api_url == f"http://{HOST}:{API_PORT}"
        else "another port than usual",
        "matoolkit batch list": "what is under way",
        **_looks_at(places.runbooks),
        f"curl {places.tenant_url}/_tenant/users": "who is in the tenant now",
    }
    for command, why in commands.items():
        if why:
            yield Text.assemble("  ", (f"{command:<45} ", "cyan"), (f"# {why}", "dim"))
    yield Text("")


def _looks_at(runbooks: Sequence[str]) -> dict[str, str]:
    """Return what is worth a look; the demo's second batch moves on while one looks, and its first has a failure."""
    moving, name = (2, DEMO) if DEMO in runbooks else (1, next(iter(runbooks), "NAME"))
    return {
        f"matoolkit batch get {moving} --watch": "a batch, as it moves",
        "matoolkit batch failures 1": "what went wrong, by error",
        f"matoolkit runbook status {name}": "the last tick, rows set aside",
        f"matoolkit runbook get {name} --to {name}-2.yaml": "to change and publish it",
    }
