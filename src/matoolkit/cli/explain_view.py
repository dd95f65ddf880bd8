"""An explanation in sentences: what waits, how many wait, until when, and the command that ends it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from rich.text import Text

from matoolkit.cli import wording
from matoolkit.cli.answers import printable
from matoolkit.words import counted, distance, gap_to

Item = Mapping[str, Any]

_INDENT, _COUNT, _GAP = 2, 8, 4
# Where the time at which something ends says what happens then; the sentences of gates say it themselves.
_UNTIL = {"not_due": "before", "job_out": "lost at", "retry": "at", "poll": "given up at"}
_APART = frozenset({"job_out", "poll"})
_MOST_NAMED = 5
_UNEXPLAINED = "has no reason to wait: this is a bug in matoolkit, please report it"


@dataclass(frozen=True, slots=True)
class _Told:
    """A reason as it is written: how many, what, and the command."""

    count: int | None
    sentence: str
    command: str


def batch_lines(found: Item, now: datetime, width: int | None, *, letters: bool = False) -> Iterator[Text]:
    """Write what explains a batch."""
    dot = ", " if letters else " · "
    yield Text(dot.join(_head(found, now)), style="bold")
    if found.get("whys"):
        yield from _table([_told(why, now) for why in found["whys"]], width)
    phases = {phase["phaseName"]: phase for phase in found["phases"]}
    seen: set[str | None] = set()
    for name, lines in groupby(found["lines"], lambda line: line.get("phaseName")):
        seen.add(name)
        if name is not None:
            yield Text(f"{' ' * _INDENT}{_phase_head(name, phases.get(name), now, dot)}", style="bold")
        yield from _table([_told(line, now) for line in lines], width)
    of_all = {why.get("gateId") for why in found["whys"]} - {None}
    for name, phase in phases.items():
        # What keeps the whole batch is said above, and when phases are due below; what else keeps them is said here.
        whys = [why for why in phase["whys"] if found.get("phaseName") or why.get("gateId") not in of_all]
        if name not in seen and any(why["kind"] != "not_due" or found.get("phaseName") for why in whys):
            yield Text(f"{' ' * _INDENT}{_phase_head(name, phase, now, dot)}", style="bold")
            yield from _table([_told(why, now) for why in whys], width)
    if not found["whys"] and not found["lines"] and not phases:
        yield Text(f"{' ' * _INDENT}nothing is open in it")
    yield from _rest(found, now)


def member_lines(found: Item, now: datetime, width: int | None, *, letters: bool = False) -> Iterator[Text]:
    """Write what explains a member."""
    dot = ", " if letters else " · "
    head = [printable(found["memberKey"]), f"batch {found['batchId']}", printable(found["runbookName"], 60)]
    if name := found.get("phaseName"):
        head.append(printable(name))
    yield Text(dot.join([*head, str(found["status"]), *_start(found, now)]), style="bold")
    told = [_told(why, now) for why in found["whys"]]
    yield from _table(told or [_Told(None, "nothing is open for it", "")], width)
    yield from _rest(found, now)


def _head(found: Item, now: datetime) -> Iterator[str]:
    yield f"batch {found['batchId']}"
    yield printable(found["runbookName"], 60)
    if name := found.get("phaseName"):
        yield printable(name)
    yield str(found["status"]).replace("_", " ")
    yield from _start(found, now)


def _start(found: Item, now: datetime) -> Iterator[str]:
    start = wording.instant(found.get("batchStartTime"))
    if start is not None:
        yield f"T {wording.moment(found['batchStartTime'])}, now {gap_to(start, now)}"


def _phase_head(name: str, phase: Item | None, now: datetime, dot: str) -> str:
    told = [printable(name)]
    if phase is not None:
        due = wording.instant(phase.get("dueAt"))
        told.append(str(phase["status"]))
        if due is not None:
            ago = f"{distance(now - due)} ago" if due <= now else f"in {distance(due - now)}"
            told.append(f"due {wording.moment(phase['dueAt'])} ({phase['offset']}), {ago}")
    return dot.join(told)


def _told(why: Item, now: datetime) -> _Told:
    kind, until = str(why["kind"]), wording.instant(why.get("until"))
    sentence = printable(why["sentence"])
    if detail := why.get("detail"):
        sentence = f"{sentence} ({printable(detail, 300)})"
    if until is not None and kind in _UNTIL:
        members = int(why.get("members") or 1)
        first = "the first " if members > 1 and kind != "not_due" else ""
        comma = "," if first or kind in _APART else ""
        when = f"in {distance(until - now)}" if until > now else "now"
        sentence = f"{sentence}{comma} {first}{_UNTIL[kind]} {wording.moment(why['until'])}, {when}"
    samples = why.get("samples") or []
    if samples and len(samples) == why.get("members") and len(samples) < _MOST_NAMED:
        sentence = f"{sentence}: {', '.join(printable(one['memberKey'], 60) for one in samples)}"
    return _Told(why.get("members"), sentence, printable(why.get("command") or ""))


def _table(rows: Sequence[_Told], width: int | None) -> Iterator[Text]:
    """Write reasons, each with its command beside it; below it where there is no room."""
    widest = max((len(row.sentence) for row in rows), default=0)
    commands = max((len(row.command) for row in rows), default=0)
    has_counts = any(row.count is not None for row in rows)
    left = _INDENT + (_COUNT + 1 if has_counts else _INDENT)
    fits = width is None or left + widest + _GAP + commands <= width
    for row in rows:
        count = f"{row.count:>{_COUNT},} " if row.count is not None else " " * (left - _INDENT)
        line = Text.assemble(" " * _INDENT, (count, "bold"), row.sentence)
        if row.command and fits:
            line.append(" " * (widest - len(row.sentence) + _GAP))
            line.append(row.command, style="cyan")
        yield from [line] if width is None else wording.wrapped(line, width, left)
        if row.command and not fits:
            yield Text.assemble(" " * (left + _INDENT), (row.command, "cyan"))


def _rest(found: Item, now: datetime) -> Iterator[Text]:
    for one in found.get("next") or ():
        yield Text(_next(one, now))
    for one in found.get("unexplained") or ():
        what = printable(one["what"])
        things = int(one["things"])
        others = f" and {counted(things - 1, 'other')}" if things > 1 else ""
        yield Text(f"{what} of batch {one['batchId']}{others} {_UNEXPLAINED}", style="bold red")


def _next(one: Item, now: datetime) -> str:
    at = wording.instant(one["at"])
    where = ", ".join(filter(None, (one.get("offset"), f"in {distance(at - now)}" if at and at > now else None)))
    return f"next: {printable(one['sentence'])}, {wording.moment(one['at'])}" + (f" ({where})" if where else "")
