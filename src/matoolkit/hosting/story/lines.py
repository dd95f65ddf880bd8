"""A line of the story: when, in which batch, what kind of thing, and what exactly."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
# From here on seconds, then minutes, then hours are not worth showing.
_MOST_SECONDS, _MOST_MINUTES, _MOST_HOURS = 10 * _MINUTE, 10 * _HOUR, 10 * _DAY


class Mark(StrEnum):
    """What kind of thing happened, in a word. Things of one moment are told in this order."""

    FOUND = "found"
    SET_ASIDE = "set aside"
    DUE = "due"
    JOINED = "joined"
    LEFT = "left"
    DONE = "done"
    WAITS = "waits"
    AGAIN = "again"
    FAILED = "failed"
    UNDONE = "undone"
    MIGRATED = "migrated"
    ENDED = "ended"
    HELD = "held"
    CHANGED = "changed"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened; `start` is the T of its batch."""

    at: datetime
    mark: Mark
    text: str
    batch: int | None = None
    start: datetime | None = None

    @property
    def offset(self) -> str:
        """When it happened as seen from T: `T-1m40s`."""
        return "" if self.start is None else offset_text(self.at.replace(microsecond=0) - self.start)


def offset_text(after: timedelta) -> str:
    """Write a time as seen from T, no more exactly than helps: `T-1m40s`, `T-12m`, `T+5d`."""
    seconds = round(after.total_seconds())
    sign, left = "-" if seconds <= 0 else "+", abs(seconds)
    if left >= _MOST_HOURS:
        return f"T{sign}{left // _DAY}d"
    if left >= _MOST_MINUTES:
        return f"T{sign}{left // _HOUR}h"
    if left >= _MOST_SECONDS:
        return f"T{sign}{left // _MINUTE}m"
    minutes, rest = divmod(left, _MINUTE)
    if not minutes:
        return f"T{sign}{rest}s" if rest else "T-0"
    return f"T{sign}{minutes}m{rest}s" if rest else f"T{sign}{minutes}m"


def moment_text(instant: datetime, now: datetime) -> str:
    """Write when something is or was: of another day than today, the date as well."""
    return f"{instant:%H:%M:%S}" if instant.date() == now.date() else f"{instant:%Y-%m-%d %H:%M}"
