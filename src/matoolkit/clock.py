"""The only module that may ask what time it is.

Everything that depends on time takes a `Clock`. The system runs on `SystemClock`;
tests and simulation run on `VirtualClock`, where a week passes in no time at all.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from matoolkit.errors import NaiveTime, TimeOutOfRange

_LONGEST = timedelta(days=365_000)


class Clock(Protocol):
    """What the system may know about time."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never going backwards: for measuring, not for telling time."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never going backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Block this thread for that long."""
        time.sleep(seconds)


class VirtualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, start: datetime) -> None:
        self._now = as_utc(start)
        self._elapsed = timedelta()

    def now(self) -> datetime:
        """Return the instant to which the clock was last moved."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that have passed on this clock; a `jump` does not count."""
        return self._elapsed.total_seconds()

    def sleep(self, seconds: float) -> None:
        """Pass the time at once."""
        self.advance(timedelta(seconds=seconds))

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        if by < timedelta():
            raise ValueError(f"time does not pass backwards (by {by}); use jump() for a clock that is set back")
        self._now += by
        self._elapsed += by

    def jump(self, to: datetime) -> None:
        """Set the clock, forwards or back, as an operator or NTP would: no time passes."""
        self._now = as_utc(to)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a calendar runs, and since when; it began at the time that it was then (rule U5)."""

    speed: int
    origin: datetime

    def at(self, real: datetime) -> datetime:
        """Return the time of the calendar at a real time."""
        return self.origin + (real - self.origin) * self.speed

    def real(self, instant: datetime) -> datetime:
        """Return the real time at which the calendar has come to an instant."""
        return self.origin + (instant - self.origin) / self.speed

    def lasting(self, real: timedelta) -> timedelta:
        """Return how much time of the calendar passes during a real one, within what a calendar can hold."""
        return min(real * self.speed, _LONGEST)


class FastClock:
    """A clock that shows the calendar of a pace. Measuring and sleeping stay real: requests and locks do not hurry."""

    def __init__(self, base: Clock, pace: Pace) -> None:
        self._base = base
        self.pace = pace

    def now(self) -> datetime:
        """Return the present instant of the calendar."""
        return self.pace.at(self._base.now())

    def monotonic(self) -> float:
        """Real seconds since some fixed moment."""
        return self._base.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let that many real seconds pass."""
        self._base.sleep(seconds)


def as_utc(instant: datetime) -> datetime:
    """Return the same instant in UTC; a time without zone is refused, for it is not an instant."""
    if instant.tzinfo is None:
        raise NaiveTime(instant)
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise TimeOutOfRange(instant) from None
