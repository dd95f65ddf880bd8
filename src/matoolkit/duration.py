"""Durations as people write them: `30s`, `15m`, `2h`, `7d`."""

import re
from datetime import timedelta

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PATTERN = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)

MAX_DURATION = timedelta(days=3650)


def parse_duration(text: str) -> timedelta:
    """Read a duration; anything but a number and one unit is a `ValueError` whose text says what is wrong."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError("is not a duration: write a number and a unit, such as 30s, 15m, 2h or 7d")
    duration = timedelta(seconds=int(match[1]) * _UNIT_SECONDS[match[2]])
    if duration > MAX_DURATION:
        raise ValueError(f"is longer than the longest duration allowed, {format_duration(MAX_DURATION)}")
    return duration


def format_duration(duration: timedelta) -> str:
    """Write a duration in the largest unit that holds it exactly: 90 minutes is `90m`, two hours `2h`."""
    seconds = int(duration.total_seconds())
    for unit in ("d", "h", "m"):
        if seconds and seconds % _UNIT_SECONDS[unit] == 0:
            return f"{seconds // _UNIT_SECONDS[unit]}{unit}"
    return f"{seconds}s"
