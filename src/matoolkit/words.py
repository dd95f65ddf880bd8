"""How numbers, durations and states are said, the same at the command line and on the pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

# What a state means to a person who looks at many; a colour stands for each.
Role = Literal["wait", "run", "poll", "done", "fail", "held", "undo", "gone"]


@dataclass(frozen=True, slots=True)
class Look:
    """The sign of a state: a glyph of one column, a letter for terminals that have no others, and its role."""

    glyph: str
    letter: str
    role: Role


_WAITING, _RUNNING = Look("○", "o", "wait"), Look("◐", "~", "run")
_DONE, _FAILED, _GONE = Look("✔", "+", "done"), Look("✖", "x", "fail"), Look("⊘", "-", "gone")
_UNDONE = Look("↶", "<", "undo")
UNKNOWN = Look("?", "?", "wait")

LOOKS: Mapping[str, Look] = {
    "detected": _WAITING,
    "init_dispatched": _RUNNING,
    "active": Look("●", "*", "run"),
    "completed": _DONE,
    "failed": _FAILED,
    "cancelled": _GONE,
    "removed": _GONE,
    "pending": _WAITING,
    "dispatched": _RUNNING,
    "polling": Look("…", ".", "poll"),
    "succeeded": _DONE,
    "poll_timeout": _FAILED,
    "waiting": _WAITING,
    "under_way": _RUNNING,
    "done": _DONE,
    "undoing": _UNDONE,
    "undone": _UNDONE,
    "left": _GONE,
    "stopped": _GONE,
    "inactive": _GONE,
    "skipped": _GONE,
    "superseded": _GONE,
    "open": _FAILED,
    "resent": _DONE,
    "discarded": _GONE,
    "enabled": _DONE,
    "disabled": _GONE,
    "ok": _DONE,
    "missing": _FAILED,
    "unknown": UNKNOWN,
    "held": Look("‖", "!", "held"),
    "budget": Look("✖", "x", "fail"),
    "approval": Look("✎", "?", "held"),
    "paused": Look("‖", "!", "held"),
    "frozen": Look("❄", "*", "wait"),
    "overdue": Look("◷", "!", "held"),
    "undo_failed": Look("↶", "<", "undo"),
    "source": Look("!", "!", "fail"),
    "scheduler": Look("◌", "!", "held"),
    "silent": Look("◌", "!", "held"),
    "dead_letter": Look("✉", "m", "held"),
    "early": _WAITING,
    "late": Look("◷", "!", "held"),
    "rejected": _FAILED,
    "given": _DONE,
    "begun": _RUNNING,
}

NOTHING_NEEDS_A_PERSON = (
    "Nothing needs a person: no batch is held or paused, no phase is overdue or late, nobody has failed, nothing waits "
    "to be approved or undone, the last ticks worked, no worker with jobs is silent, and every message was handled."
)
_MOST_NAMED = 5

# What a tick does to members.
CHANGES = ("added", "removed", "moved", "returned", "refreshed")


def counted(number: int, noun: str) -> str:
    """Write `1 error`, `2 errors`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def distance(between: timedelta) -> str:
    """Write a duration in its two largest units: `2d 3h`, `14m`, `40s`."""
    seconds = int(abs(between.total_seconds()))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [f"{number}{unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if number]
    return " ".join(parts[:2]) or f"{seconds}s"


def minute_told(at: datetime | None) -> str:
    """Tell a time to the minute, for sentences."""
    return "no time" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def gap_to(start: datetime, at: datetime) -> str:
    """Write where a time stands relative to T: `T-4d 2h`, `T+14m`."""
    return f"T{'+' if at > start else '-'}{distance(start - at)}"


def rows_told(read: int, set_aside: int, ignored: int) -> str:
    """Say what a tick did with the rows of a source."""
    return f"{read:,} read, {set_aside:,} set aside, {ignored:,} for batches that have ended"


def changes_told(changes: Mapping[str, int]) -> str:
    """Say how many members a tick added, removed, and so on."""
    return ", ".join(f"{count:,} {word}" for word, count in changes.items() if count) or "nobody was changed"


def switch_told(name: str, *, enabled: bool) -> str:
    """Say how the automation of a runbook is."""
    return f"automation of {name} is {'on' if enabled else 'off'}"


def published_told(name: str, version: int, batches: int, *, is_new: bool, is_dry_run: bool, enables: bool) -> str:
    """Say what a publication did, or would do."""
    which = f"{name} v{version}"
    inflight = f"{batches:,} {'batch' if batches == 1 else 'batches'} in flight"
    if not is_new:
        return f"{which} is active as it is; nothing {'would change' if is_dry_run else 'was changed'}"
    if is_dry_run:
        return f"dry run: would publish {which}, {inflight}; nothing was changed"
    return f"published {which}, {inflight}{'; automation is on' if enables else ''}"


def repeats_told(phases: Iterable[str], batches: Sequence[str]) -> str:
    """Say which phases would run again in which batches."""
    more = f" and {len(batches) - _MOST_NAMED:,} more" if len(batches) > _MOST_NAMED else ""
    return f"{', '.join(dict.fromkeys(phases))} would run again in batch {', '.join(batches[:_MOST_NAMED])}{more}"


def out_of_use_told(name: str, version: int) -> str:
    """Say what deactivating a version did."""
    return f"{name} v{version} is out of use; batches in flight go on"


def made_told(batch: int, members: int, phases: str) -> str:
    """Say what a new manual batch holds."""
    return f"batch {batch} has {counted(members, 'member')}; phases: {phases}"


def advanced_told(batch: int, action: str, phase: str, members: int, steps: int, following: str) -> str:
    """Say what began when a manual batch was advanced."""
    after = f"{counted(steps, 'step')}{f'; next: {following}' if following else ''}"
    match action:
        case "init_dispatched":
            return f"batch {batch}: init has begun, {after}"
        case "phase_dispatched":
            return f"batch {batch}: phase '{phase}' has begun, {counted(members, 'member')}, {after}"
        case _:
            return f"batch {batch}: nothing is left to do"
