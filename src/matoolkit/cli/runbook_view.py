"""How a runbook is doing: its last tick, the rows it could not use, whom it left alone, and what waits for a person."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from matoolkit.cli import wording
from matoolkit.cli.tables import Column, Item, fields, has_only_letters, number, status, table, when
from matoolkit.words import CHANGES, changes_told, rows_told

_ROWS = ("rowsRead", "rowsSetAside", "rowsIgnored")


def _tick(item: Item) -> dict[str, Any]:
    return item.get("lastTick") or {}


def _rows(item: Item) -> str:
    tick = _tick(item)
    return rows_told(*(tick.get(name, 0) for name in _ROWS)) if tick else ""


def _changes(item: Item) -> str:
    tick = _tick(item)
    return changes_told({word: tick.get(f"members{word.capitalize()}") or 0 for word in CHANGES}) if tick else ""


STATUS = (
    Column("RUNBOOK", "runbookName"),
    number("VERSION", "version"),
    Column("ACTIVE", "isActive"),
    status("AUTOMATION", lambda item: "enabled" if item.get("automationEnabled") else "disabled"),
    Column("BATCHES", "batches", wording.counts),
    number("HELD", "heldCount"),
    number("EXCLUDED", "excludedCount"),
    Column("LAST TICK", lambda item: _tick(item).get("finishedAt"), wording.moment),
    Column("ROWS", _rows),
    Column("MEMBERS", _changes),
    Column("LAST ERROR", "lastError"),
    when("AT", "lastErrorAt"),
)
_SET_ASIDE = (Column("REASON", "reason"), Column("KEY", "key"), Column("DETAIL", "detail"))
_LEFT_ALONE = (
    number("BATCH", "batch_id"),
    number("ROWS", "count"),
    Column("WHY", "seen"),
    Column("SUCH AS", "samples"),
)
_HELD = (number("BATCH", "batchId"), when("T", "batchStartTime"), when("SINCE", "heldAt"), Column("HELD FOR", "reason"))


def status_view(seen: Item, console: Console, *, is_wide: bool = False) -> Iterator[Text]:
    """Write all of it, line by line."""
    plain, letters = not console.is_terminal, has_only_letters(console)
    width = None if plain or is_wide else console.width
    yield from fields(seen, STATUS, plain=plain, letters=letters)
    tick = _tick(seen)
    aside = tick.get("setAside") or {}
    reasons = ", ".join(f"{count:,} {wording.text(why)}" for why, count in (aside.get("counts") or {}).items())
    sections: Sequence[tuple[str, Sequence[Item], Sequence[Column]]] = (
        (f"set aside: {reasons}; such as", aside.get("samples") or [], _SET_ASIDE),
        ("left alone", tick.get("remarks") or [], _LEFT_ALONE),
        ("held until a person decides: `matoolkit hold show ID`", seen.get("held") or [], _HELD),
    )
    for title, items, columns in sections:
        if items:
            yield from (Text(), Text(title, style="bold"))
            yield from table(items, columns, width, letters=letters, plain=plain)
