"""When to come back: what a service asks for, and one pause that all threads keep (rule W4)."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from matoolkit.clock import Clock
from matoolkit.settings import WorkerSettings

# Whatever a service asks for, a thread does not sleep longer than this; it will be told again.
LONGEST_ASKED_FOR = 900.0
# A number as large as this is a moment, counted in seconds since 1970.
_FIRST_MOMENT = 1_000_000_000

Jitter = Callable[[], float]


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """How often a call is tried again, and how long to wait before each try where the service does not say."""

    count: int = 5
    first_seconds: float = 2
    longest_seconds: float = 120

    @classmethod
    def of(cls, settings: WorkerSettings) -> "RetryLimits":
        """Read them from the worker's settings."""
        return cls(settings.max_retry_count, settings.base_retry_delay_seconds, settings.max_retry_delay_seconds)

    def backoff(self, attempt: int, jitter: Jitter) -> float:
        """Seconds to wait after a try: twice as long each time, and somewhere between half of that and all of it."""
        longest = min(self.longest_seconds, self.first_seconds * 2.0 ** min(attempt - 1, 30))
        return longest * (0.5 + 0.5 * jitter())


class SharedPause:
    """The time before which nobody calls an API of the tenant; one for all threads."""

    def __init__(self, clock: Clock, jitter: Jitter = random.random) -> None:
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._ends_at = clock.monotonic()

    def extend(self, seconds: float) -> None:
        """Let nobody call for that long from now; a longer pause stays as it is."""
        with self._lock:
            self._ends_at = max(self._ends_at, self._clock.monotonic() + seconds)

    def wait(self) -> None:
        """Sleep until the pause is over, also when it is made longer meanwhile."""
        while (left := self._ends_at - self._clock.monotonic()) > 0:
            # Not all threads come back at the same moment.
            self._clock.sleep(left + self._jitter() * min(left, 1.0))


def asked_for(response: httpx.Response, clock: Clock) -> float | None:
    """Seconds that a service asks to wait: Retry-After in seconds or as a date, or Exchange's Rate-Limit-Reset."""
    for name in ("Retry-After", "Rate-Limit-Reset"):
        found = _seconds(response.headers.get(name, "").strip(), _now(response, clock))
        if found is not None:
            return min(max(found, 0.0), LONGEST_ASKED_FOR)
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


def _now(response: httpx.Response, clock: Clock) -> datetime:
    """Return the service's own time where it tells it: clocks differ."""
    return _moment(response.headers.get("Date", "")) or clock.now()
