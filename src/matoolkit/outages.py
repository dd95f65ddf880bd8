"""An outage is logged when it begins, once a minute while it lasts, and when it is over (one line each).

Every loop that tries again has an `Outage` and asks it how long to pause. What owns a connection has one too, and tells
of it for all its users: errors with `is_outage` are told there, and a loop that meets one only pauses.
"""

import logging
import threading
from collections.abc import Mapping

from matoolkit.backoff import Backoff
from matoolkit.clock import Clock, SystemClock

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 15.0
_REMIND_SECONDS = 60.0


class Outage:
    """Something that can fail for a while; safe to use from several threads.

    `what` is the subject of the lines, such as "the database" or "taking jobs". The owner of a connection tells of its
    outages; everybody else leaves that to the owner. `about` are the fields of the lines.
    """

    def __init__(
        self,
        what: str,
        log: logging.Logger,
        clock: Clock | None = None,
        *,
        is_owner: bool = False,
        about: Mapping[str, object] | None = None,
        first_seconds: float = FIRST_PAUSE_SECONDS,
        longest_seconds: float = LONGEST_PAUSE_SECONDS,
    ) -> None:
        self._what = what
        self._log = log
        self._clock = clock or SystemClock()
        self._is_owner = is_owner
        self._about = about
        # Without jitter: the tries of one loop meet nobody else's.
        self._backoff = Backoff(first_seconds=first_seconds, longest_seconds=longest_seconds)
        self._lock = threading.Lock()
        self._failures = 0
        self._began_at: float | None = None
        self._told_at: float | None = None
        self._worked_at: float | None = None

    @property
    def is_on(self) -> bool:
        """Whether the last try failed."""
        return self._began_at is not None

    def opened(self) -> None:
        """Note that it exists; this ends no outage."""
        if self._worked_at is None:
            self._worked_at = self._clock.monotonic()

    def beginning(self) -> float:
        """Return the moment at which a try begins, for `failed`."""
        return self._clock.monotonic()

    def failed(self, fault: Exception, begun: float | None = None) -> float:
        """Note a failed try, log it if it is time to, and return how many seconds to pause.

        A try that began before another one worked says nothing about the time after.
        """
        with self._lock:
            self._failures += 1
            pause = self._backoff.longest(self._failures)
            if begun is None or self._worked_at is None or begun >= self._worked_at:
                self._tell(fault)
            return pause

    def worked(self) -> None:
        """Note a try that worked, and log the end of an outage if there was one."""
        self._worked_at = self._clock.monotonic()
        if self._began_at is None and not self._failures:
            return
        with self._lock:
            if self._told_at is not None and self._began_at is not None:
                lasted = self._clock.monotonic() - self._began_at
                self._log.warning("%s works again after %.0f seconds", self._what, lasted, extra=self._about)
            self._failures = 0
            self._began_at = self._told_at = None

    def _tell(self, fault: Exception) -> None:
        now = self._clock.monotonic()
        is_new = self._began_at is None
        if self._began_at is None:
            self._began_at = now
        if not self._is_ours(fault) or (self._told_at is not None and now - self._told_at < _REMIND_SECONDS):
            return
        self._told_at = now
        said = "fails, and is tried again" if is_new else f"still fails after {now - self._began_at:.0f} seconds"
        why, bug = _told(fault)
        self._log.warning("%s %s: %s", self._what, said, why, exc_info=bug, extra=self._about)

    def _is_ours(self, fault: Exception) -> bool:
        if self._is_owner:
            # A connection that has never worked has no outage: the code that opens it reports the error.
            return self._worked_at is not None
        return not getattr(fault, "is_outage", False)


def _told(fault: Exception) -> tuple[str, Exception | None]:
    """Return the text of a fault; only a bug of ours comes with its traceback."""
    # Only our own exceptions have a `message`.
    message = getattr(fault, "message", None)
    return (message, None) if isinstance(message, str) else (f"{type(fault).__name__}: {fault}", fault)
