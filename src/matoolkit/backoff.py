"""When to try a call again: how long to wait, how often, and for how long in all.

A service that asks for a wait (Retry-After) gets it. Otherwise the waits double. Each is drawn between half of its
longest and all of it: callers that failed together do not come back together, and a service in trouble gets time.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from matoolkit.clock import Clock

# A thread does not sleep longer than this for a service; if that is too early, the service asks again.
LONGEST_ASKED_FOR = 900.0
# The statuses by which a web service says that the same call may work later.
BUSY_STATUSES = frozenset({429, 500, 502, 503, 504})
# A number as large as this is a moment, counted in seconds since 1970.
_FIRST_MOMENT = 1_000_000_000
# Doubling more often than this would only lead to numbers that no float holds.
_MOST_DOUBLINGS = 30

Jitter = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often to try again after the first try, how long to wait before each try, and how long all may take."""

    count: int = 5
    first_seconds: float = 2
    longest_seconds: float = 120
    total_seconds: float = math.inf
    longest_asked_seconds: float = LONGEST_ASKED_FOR

    def longest(self, tries: int) -> float:
        """Return the longest wait after so many tries: twice as long each time, up to a limit."""
        return min(self.longest_seconds, self.first_seconds * 2.0 ** min(tries - 1, _MOST_DOUBLINGS))


class Tries:
    """The tries of one call."""

    def __init__(self, backoff: Backoff, clock: Clock, jitter: Jitter = random.random) -> None:
        self._backoff = backoff
        self._clock = clock
        self._jitter = jitter
        self._ends_at = clock.monotonic() + backoff.total_seconds
        self.count = 0
        self.are_used_up = False

    def failed(self, asked: float | None = None) -> float:
        """Count a try that failed, and return how many seconds to wait before the next one.

        `asked` is the wait that the service asks for. A wait that would last beyond the end of all tries is not begun:
        they are used up.
        """
        self.count += 1
        if asked is None:
            seconds = self._backoff.longest(self.count) * (0.5 + 0.5 * self._jitter())
        else:
            seconds = min(asked, self._backoff.longest_asked_seconds)
        is_too_late = self._clock.monotonic() + seconds > self._ends_at
        self.are_used_up = self.count > self._backoff.count or is_too_late
        return seconds


def asked_wait(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Return the seconds that a service asks to wait; None if it does not ask.

    Retry-After holds seconds or a date. Exchange has Rate-Limit-Reset, which may also count from 1970.
    """
    # A date is told by the service's own clock where the answer shows it, because clocks differ.
    now = _moment(headers.get("Date", "")) or clock.now()
    for name in ("Retry-After", "Rate-Limit-Reset"):
        found = _seconds(headers.get(name, "").strip(), now)
        if found is not None:
            return max(found, 0.0)
    return None


def _seconds(text: str, now: datetime) -> float | None:
    if text.isascii() and text.replace(".", "", 1).isdigit():
        number = float(text)
        return number - now.timestamp() if number >= _FIRST_MOMENT else number
    moment = _moment(text)
    return None if moment is None else (moment - now).total_seconds()


def _moment(text: str) -> datetime | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
