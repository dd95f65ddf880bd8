"""Offsets of phases from the cutover time T: `T-5d`, `T-90s`, `T-0`, `T+2h` (rule R3)."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from matoolkit.duration import format_duration, parse_duration

OFFSET_PATTERN = r"^T[-+](0|[0-9]{1,9}[smhd])$"
_PATTERN = re.compile(OFFSET_PATTERN, re.ASCII)

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Offset:
    """A distance from T in whole minutes: positive before T, negative after."""

    minutes: int

    def due_at(self, batch_start_time: datetime) -> datetime:
        """When a phase with this offset is due, within the calendar: some sources write 9999-12-31 for "not yet"."""
        try:
            return batch_start_time - timedelta(minutes=self.minutes)
        except OverflowError:
            return _FIRST if self.minutes > 0 else _LAST

    def __str__(self) -> str:
        if self.minutes == 0:
            return "T-0"
        sign = "-" if self.minutes > 0 else "+"
        return f"T{sign}{format_duration(timedelta(minutes=abs(self.minutes)))}"


def parse_offset(text: str) -> Offset:
    """Read an offset; anything else is a `ValueError` whose text says what is wrong.

    Seconds round away from T, so a phase is never later than written before T and never earlier after it.
    """
    if _PATTERN.fullmatch(text) is None:
        raise ValueError("is not an offset")
    sign, distance = text[1], text[2:]
    seconds = 0 if distance == "0" else int(parse_duration(distance).total_seconds())
    minutes = -(-seconds // 60)
    return Offset(minutes if sign == "-" else -minutes)
