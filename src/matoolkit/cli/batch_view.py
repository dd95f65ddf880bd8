"""A batch at a glance: its phases on a time line, counts by status, failures by error, and what to do about them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from matoolkit.cli import wording
from matoolkit.cli.answers import printable
from matoolkit.domain.states import ENDED_BATCHES, FAILED_STEPS, PhaseStatus, StepStatus
from matoolkit.words import counted, gap_to

_WIDEST = 110
_MOST_FAILURES = 5
# What a phase's line has besides its name and its bar. In a narrow terminal the times go first, and the counts last.
_RAIL, _OFFSET, _DUE, _STATE, _COUNTS = 2, 7, 17, 13, 16
_NAME_AND_BAR = 20
_FIELD, _INDENT = 9, 4

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Look:
    """How wide it may be, if there is a limit, and whether the terminal has only letters."""

    width: int | None
    letters: bool

    def pick(self, glyph: str, letter: str) -> str:
        return letter if self.letters else glyph

    @property
    def due(self) -> int:
        return _DUE if self._besides(_DUE) >= _NAME_AND_BAR else 0

    @property
    def bar(self) -> int:
        return self._free * 2 // 5

    @property
    def name(self) -> int:
        return self._free - self.bar

    @property
    def _free(self) -> int:
        return max(self._besides(self.due), _NAME_AND_BAR)

    def _besides(self, due: int) -> int:
        return (self.width or _WIDEST) - _RAIL - _OFFSET - due - _STATE - _COUNTS


def batch_view(
    batch: Item, failures: Sequence[Item], now: datetime, width: int | None, *, letters: bool = False
) -> Text:
    """Draw a batch in lines of at most this width; without a limit nothing is cut."""
    look = _Look(None if width is None else min(width, _WIDEST), letters)
    header, phases, failed = _header(batch, now, look), _time_line(batch, now, look), _failures(batch, failures, look)
    # What people decide by is never cut: the reason of a hold, an error, a command to type.
    lines = [*_whole(header, _FIELD, look), Text(), *_cut(phases, look), *_whole(failed, _INDENT, look)]
    return Text("\n").join(lines)


def _whole(lines: Iterable[Text], indent: int, look: _Look) -> Iterator[Text]:
    for line in lines:
        line.rstrip()
        yield from [line] if look.width is None else wording.wrapped(line, look.width, indent)


def _cut(lines: Iterable[Text], look: _Look) -> Iterator[Text]:
    for line in lines:
        line.rstrip()
        if look.width is not None:
            wording.cut(line, look.width, letters=look.letters)
        yield line


def current_phases(batch: Item) -> list[Item]:
    """Return the phases that count, in the order of their time; those of an older version are superseded."""
    phases = [phase for phase in batch.get("phases") or [] if phase.get("status") != PhaseStatus.SUPERSEDED]
    return sorted(phases, key=lambda phase: (-int(phase.get("offsetMinutes") or 0), int(phase.get("phaseIndex") or 0)))


def steps_done(steps: Mapping[str, int]) -> tuple[int, int]:
    """Return how many steps were done, well or not, and how many there are; a cancelled one was not done."""
    return sum(steps.get(word, 0) for word in (StepStatus.SUCCEEDED, *FAILED_STEPS)), sum(steps.values())


def _header(batch: Item, now: datetime, look: _Look) -> Iterator[Text]:
    number, status = batch.get("id"), batch.get("status")
    version = max((int(phase.get("runbookVersion") or 0) for phase in batch.get("phases") or []), default=0)
    name = f"{printable(batch.get('runbookName'), 60)}{f' v{version}' if version else ''}"
    dot = look.pick(" · ", ", ")
    told = f"{dot}{name}{f'{dot}manual' if batch.get('isManual') else ''}{dot}"
    yield Text.assemble((f"batch {number}", "bold"), told, wording.state(status, letters=look.letters))
    start = wording.instant(batch.get("batchStartTime"))
    if start:
        yield _field("T", f"{wording.moment(batch.get('batchStartTime'), exactly=True)}, now {gap_to(start, now)}")
    elif batch.get("isManual") and status not in ENDED_BATCHES:
        yield _field("T", f"none: `matoolkit batch advance {number}` starts what comes next")
    yield Text.assemble(_field("members"), wording.counts(batch.get("memberStates") or {}, letters=look.letters))
    init = Counter(str(step.get("status")) for step in batch.get("initSteps") or [])
    if init:
        yield Text.assemble(_field("init"), wording.counts(init, letters=look.letters))
    if undo := int(batch.get("undoFailures") or 0):
        yield Text.assemble(_field("undo"), (f"{counted(undo, 'step')} failed", "bold red"))
        yield _field("", f"matoolkit undo-failure list --batch {number}")
    if batch.get("isHeld"):
        yield Text.assemble(_field("held"), (printable(batch.get("holdReason") or "waits for approval"), "bold yellow"))
        yield _field("", f"matoolkit hold show {number}")


def _time_line(batch: Item, now: datetime, look: _Look) -> Iterator[Text]:
    """List the phases by their time, with a mark where now is."""
    phases = current_phases(batch)
    has_now = batch.get("batchStartTime") is not None and batch.get("status") not in ENDED_BATCHES
    due = [wording.instant(phase.get("dueAt")) for phase in phases]
    ahead = next((at for at, time in enumerate(due) if time and time > now), len(phases)) if has_now else None
    if phases:
        yield _titles(now, look)
    for at, phase in enumerate(phases):
        if at == ahead:
            yield _mark(now, look)
        yield _phase(phase, look, is_ahead=ahead is not None and at >= ahead)
    if phases and ahead == len(phases):
        yield _mark(now, look)


def _titles(now: datetime, look: _Look) -> Text:
    due = f"due, {wording.zoned(now):%Z}"[: look.due]
    sizes = ((_RAIL, ""), (_OFFSET, "offset"), (look.due, due), (_STATE, "state"), (look.name, "phase"))
    line = "".join(f"{title:<{size}}" for size, title in sizes)
    return Text(f"{line}{'steps done':<{look.bar}}", style="dim")


def _mark(now: datetime, look: _Look) -> Text:
    rest = look.pick("─", "-") * ((look.width or _WIDEST) - _RAIL - _OFFSET - _DUE)
    return Text(f"{look.pick('▶', '>')} {'now':<{_OFFSET}}{wording.zoned(now):%a %d %b %H:%M} {rest}", style="cyan")


def _phase(phase: Item, look: _Look, *, is_ahead: bool) -> Text:
    steps = phase.get("steps") or {}
    due = wording.instant(phase.get("dueAt"))
    done, total = steps_done(steps)
    failed = sum(steps.get(word, 0) for word in FAILED_STEPS)
    rail = (look.pick("╎", ":"), "dim") if is_ahead else (look.pick("┃", "|"), "cyan")
    line = Text.assemble(rail, " ")
    _add(line, Text(wording.offset(phase.get("offsetMinutes")), style="bold"), _OFFSET, look)
    if look.due:
        _add(line, Text(f"{wording.zoned(due):%a %d %b %H:%M}" if due else ""), look.due, look)
    _add(line, wording.state(phase.get("status"), letters=look.letters), _STATE, look)
    _add(line, Text(printable(phase.get("phaseName"), 100)), look.name, look)
    if total:
        _add(line, _bar(done, failed, total, look), look.bar, look)
        line.append(f"{done:,}/{total:,}")
        told = f" {look.pick('✖', 'x')}{failed:,}" if failed else ""
        if look.width is None or cell_len(line.plain) + len(told) <= look.width:
            line.append(told, style="bold red")
    return line


def _bar(done: int, failed: int, total: int, look: _Look) -> Text:
    full, empty, size = look.pick("━", "#"), look.pick("╌", "."), look.bar - 1
    red = -(-failed * size // total)
    green = max(done * size // total - red, 0)
    return Text.assemble((full * green, "green"), (full * red, "bold red"), (empty * (size - green - red), "dim"))


def _failures(batch: Item, failures: Sequence[Item], look: _Look) -> Iterator[Text]:
    if not failures:
        return
    yield Text()
    yield Text("failures by error", style="bold red")
    for group in failures[:_MOST_FAILURES]:
        members = int(group.get("members") or 0)
        where = f"{printable(group.get('phaseName'), 40)}/{printable(group.get('stepName'), 40)}"
        yield Text.assemble(
            (f"{look.pick('✖', 'x')} {members:,} ", "bold red"),
            f"{'member' if members == 1 else 'members'} in {where}: {printable(group.get('error'), 300)}",
        )
        # A retry of a cancelled batch is refused.
        if batch.get("status") != "cancelled":
            yield Text(f"    matoolkit batch retry {batch.get('id')} --like {group.get('exampleStepId')}", style="cyan")
    rest = len(failures) - _MOST_FAILURES
    if rest > 0:
        yield Text(f"and {rest} more: matoolkit batch failures {batch.get('id')}")


def _field(title: str, value: str = "") -> Text:
    return Text.assemble((f"{title:<{_FIELD}}", "dim"), value)


def _add(line: Text, cell: Text, width: int, look: _Look) -> None:
    """Add a cell that takes its width, and one blank at least."""
    if look.width is not None:
        wording.cut(cell, width - 1, letters=look.letters)
    line.append_text(cell)
    line.append(" " * max(width - cell_len(cell.plain), 1))
