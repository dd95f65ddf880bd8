"""Trying an HTTP request again while its trouble is of the kind that passes, for a bounded time."""

from collections.abc import Callable, Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime

import httpx

from matoolkit.clock import Clock
from matoolkit.errors import SourceFailed

_BUSY = frozenset({429, 500, 502, 503, 504})
_PAUSES = (1, 2, 4, 8, 16)


class Patience:
    """How long one query may take in all, and the waits within that time."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._ends_at = clock.monotonic() + seconds

    def wait(self, seconds: float) -> None:
        """Let time pass; it is an error if the query's time would be over by then."""
        if self._clock.monotonic() + seconds > self._ends_at:
            raise SourceFailed(
                f"the source did not return the result within {self._seconds:.0f} seconds",
                hint="make the query quicker, or look at what keeps the source busy",
            )
        self._clock.sleep(seconds)

    def answer(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Send until there is an answer other than 'busy'; the last of several tries counts, whatever it is."""
        for pause in _PAUSES:
            response = _unless_broken(send)
            if response is not None and response.status_code not in _BUSY:
                return response
            self.wait(pause if response is None else self._asked_for(response, pause))
        try:
            return send()
        except httpx.RequestError as fault:
            raise unreachable(fault) from fault

    def _asked_for(self, response: httpx.Response, otherwise: float) -> float:
        """Read Retry-After, which holds seconds or a date."""
        text = response.headers.get("Retry-After", "").strip()
        if text.isascii() and text.isdigit():
            return float(text[:9])
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return otherwise
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - self._clock.now()).total_seconds())


def unreachable(fault: httpx.RequestError) -> SourceFailed:
    """Say that a server could not be reached; httpx's own texts hold no address."""
    return SourceFailed(f"the source could not be reached: {str(fault) or type(fault).__name__}")


def growing_pauses(first: float, longest: float) -> Iterator[float]:
    """Seconds between two questions, each half as long again as the one before."""
    pause = first
    while True:
        yield pause
        pause = min(longest, pause * 1.5)


def _unless_broken(send: Callable[[], httpx.Response]) -> httpx.Response | None:
    try:
        return send()
    except httpx.RequestError:
        return None
