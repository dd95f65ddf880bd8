"""A batch at a glance: its phases on a time line, counts by status, failures by error, and what to do about them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from matoolkit.cli import wording
from matoolkit.cli.answers import printable
from matoolkit.domain.states import ENDED_BATCHES, OPEN_STEPS, PhaseStatus

WIDEST = 110
_BAR = 16
_NAME = 18
_MOST_FAILURES = 5

Item = Mapping[str, Any]


def batch_view(batch: Item, failures: Sequence[Item], now: datetime, width: int, *, letters: bool = False) -> Text:
    """Draw a batch in lines of at most this width."""
    lines = [
        *_header(batch, now, letters=letters),
        Text(),
        *_time_line(batch, now, letters=letters),
        *_failures(batch, failures, letters=letters),
    ]
    for line in lines:
        line.truncate(min(width, WIDEST), overflow="ellipsis")
    return Text("\n").join(lines)


def current_phases(batch: Item) -> list[Item]:
    """Return the phases that count, in the order of their time; those of an older version are superseded."""
    phases = [phase for phase in batch.get("phases") or [] if phase.get("status") != PhaseStatus.SUPERSEDED]
    return sorted(phases, key=lambda phase: (-int(phase.get("offsetMinutes") or 0), int(phase.get("phaseIndex") or 0)))


def steps_done(steps: Mapping[str, int]) -> tuple[int, int]:
    """Return how many steps have ended, and how many there are."""
    total = sum(steps.values())
    return total - sum(count for word, count in steps.items() if word in OPEN_STEPS), total


def _header(batch: Item, now: datetime, *, letters: bool) -> Iterator[Text]:
    version = max((int(phase.get("runbookVersion") or 0) for phase in batch.get("phases") or []), default=0)
    kind = " · manual" if batch.get("isManual") else ""
    yield Text.assemble(
        (f"batch {batch.get('id')}", "bold"),
        f" · {printable(batch.get('runbookName'), 60)}{f' v{version}' if version else ''}{kind} · ",
        wording.state(batch.get("status"), letters=letters),
    )
    start = wording.instant(batch.get("batchStartTime"))
    if start:
        sign = "T-" if start > now else "T+"
        yield _field("T", f"{wording.moment(batch.get('batchStartTime'))}, now {sign}{_gap(start, now)}")
    elif batch.get("isManual") and batch.get("status") not in ENDED_BATCHES:
        yield _field("T", f"none: `matoolkit batch advance {batch.get('id')}` starts what comes next")
    yield Text.assemble(_field("members"), wording.counts(batch.get("members") or {}, letters=letters))
    init = batch.get("initSteps") or []
    if init:
        by_state: dict[str, int] = {}
        for step in init:
            by_state[step.get("status", "?")] = by_state.get(step.get("status", "?"), 0) + 1
        yield Text.assemble(_field("init"), wording.counts(by_state, letters=letters))
    if batch.get("isHeld"):
        yield Text.assemble(_field("held"), (printable(batch.get("holdReason") or "waits for approval"), "bold yellow"))
        yield _field("", f"matoolkit hold show {batch.get('id')}")


def _time_line(batch: Item, now: datetime, *, letters: bool) -> Iterator[Text]:
    """List the phases by their time, with a mark where now is."""
    phases, is_marked = (
        current_phases(batch),
        batch.get("batchStartTime") is None or batch.get("status") in ENDED_BATCHES,
    )
    for phase in phases:
        due = wording.instant(phase.get("dueAt"))
        if not is_marked and due and due > now:
            yield _mark(now, letters=letters)
            is_marked = True
        yield _phase(phase, letters=letters)
    if not is_marked and phases:
        yield _mark(now, letters=letters)


def _mark(now: datetime, *, letters: bool) -> Text:
    arrow = ">" if letters else "▶"
    return Text(f"{arrow} now      {now:%a %d %b %H:%M} UTC {('-' if letters else '─') * 46}", style="cyan")


def _phase(phase: Item, *, letters: bool) -> Text:
    steps = phase.get("steps") or {}
    due = wording.instant(phase.get("dueAt"))
    done, total = steps_done(steps)
    failed = sum(steps.get(word, 0) for word in ("failed", "poll_timeout"))
    line = Text("  ")
    _add(line, Text(wording.offset(phase.get("offsetMinutes")), style="bold"), 8)
    _add(line, Text(f"{due:%a %d %b %H:%M}" if due else ""), 17)
    _add(line, wording.state(phase.get("status"), letters=letters), 13)
    _add(line, Text(printable(phase.get("phaseName"), 100)), _NAME)
    if total:
        _add(line, _bar(done, failed, total, letters=letters), _BAR + 1)
        line.append(f"{done:,}/{total:,}")
    return line


def _bar(done: int, failed: int, total: int, *, letters: bool) -> Text:
    full, empty = ("#", ".") if letters else ("━", "╌")
    red = -(-failed * _BAR // total)
    green = max((done * _BAR // total) - red, 0)
    return Text.assemble((full * green, "green"), (full * red, "bold red"), (empty * (_BAR - green - red), "dim"))


def _failures(batch: Item, failures: Sequence[Item], *, letters: bool) -> Iterator[Text]:
    if not failures:
        return
    yield Text()
    yield Text("failures by error", style="bold red")
    for group in failures[:_MOST_FAILURES]:
        members = int(group.get("members") or 0)
        where = f"{printable(group.get('phaseName'), 40)}/{printable(group.get('stepName'), 40)}"
        glyph = "x" if letters else "✖"
        yield Text.assemble(
            (f"  {glyph} {members:,} ", "bold red"),
            f"{'member' if members == 1 else 'members'} in {where}: ",
            printable(group.get("error"), 300),
        )
        yield Text(f"      matoolkit batch retry {batch.get('id')} --like {group.get('exampleStepId')}", style="cyan")
    rest = len(failures) - _MOST_FAILURES
    if rest > 0:
        yield Text(f"  and {rest} more: matoolkit batch failures {batch.get('id')}")


def _field(title: str, value: str = "") -> Text:
    return Text.assemble((f"{title:<9}", "dim"), value)


def _add(line: Text, cell: Text, width: int) -> None:
    """Add a cell that takes its width, and one blank at least."""
    cell.truncate(width - 1, overflow="ellipsis")
    line.append_text(cell)
    line.append(" " * (width - cell_len(cell.plain)))


def _gap(start: datetime, now: datetime) -> str:
    return wording.distance(start - now) if abs(start - now) >= timedelta(minutes=1) else "0"
