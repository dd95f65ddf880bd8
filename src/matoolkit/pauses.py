"""A pause after a fault: until it is over nobody tries again, in any thread."""

import random
import threading
from collections.abc import Callable

from matoolkit.clock import Clock


class Pause:
    """The time before which nobody tries; one for all threads."""

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._ends_at = clock.monotonic()

    @property
    def is_on(self) -> bool:
        """Whether nobody should try now."""
        return self._clock.monotonic() < self._ends_at

    def extend(self, seconds: float) -> None:
        """Let nobody try for that long from now; a longer pause stays as it is."""
        with self._lock:
            self._ends_at = max(self._ends_at, self._clock.monotonic() + seconds)

    def restart(self, seconds: float) -> None:
        """Let nobody try for that long from now, even if the pause was longer."""
        with self._lock:
            self._ends_at = self._clock.monotonic() + seconds

    def wait(self) -> None:
        """Sleep until the pause is over, also when it is made longer meanwhile."""
        while (left := self._ends_at - self._clock.monotonic()) > 0:
            # Not all threads come back at the same moment.
            self._clock.sleep(left + self._jitter() * min(left, 1.0))
