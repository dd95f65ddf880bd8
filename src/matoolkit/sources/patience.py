"""Trying an HTTP request again while its trouble is of the kind that passes, for a bounded time."""

import math
from collections.abc import Callable

import httpx

from matoolkit.backoff import BUSY_STATUSES, Backoff, Tries, asked_wait
from matoolkit.clock import Clock
from matoolkit.errors import SourceFailed

# The time of the query limits what a source may ask for.
_BACKOFF = Backoff(count=5, first_seconds=1, longest_seconds=16, longest_asked_seconds=math.inf)


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
        tries = Tries(_BACKOFF, self._clock)
        while True:
            try:
                response = send()
            except httpx.RequestError as fault:
                pause = tries.failed()
                if tries.are_used_up:
                    raise unreachable(fault) from fault
            else:
                if response.status_code not in BUSY_STATUSES:
                    return response
                pause = tries.failed(asked_wait(response.headers, self._clock))
                if tries.are_used_up:
                    return response
            self.wait(pause)


def unreachable(fault: httpx.RequestError) -> SourceFailed:
    """Say that a server could not be reached; httpx's own texts hold no address."""
    return SourceFailed(f"the source could not be reached: {str(fault) or type(fault).__name__}")
