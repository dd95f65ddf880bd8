"""What happens, told as it happens.

The story is read from the state, not from the log: what is told is what was committed, whichever process did it.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from matoolkit.clock import Clock
from matoolkit.errors import StoreError
from matoolkit.hosting.story.calendar import batches_told, phases_told, rows_told
from matoolkit.hosting.story.lines import Line, Mark
from matoolkit.hosting.story.look import Comparison, Look, look_at
from matoolkit.hosting.story.people import members_told, rollbacks_told, steps_told
from matoolkit.hosting.story.summaries import summaries
from matoolkit.store import Store

__all__ = ["Line", "Mark", "Story", "lines_between"]

_PAUSE_SECONDS = 0.5
_ORDER = {mark: place for place, mark in enumerate(Mark)}
# What ends first is told first when both end at one moment.
_TELLERS = (phases_told, batches_told, rows_told, members_told, steps_told, rollbacks_told)


class Story:
    """Looks at the state again and again, and tells what has changed since it began."""

    def __init__(self, store: Store, clock: Clock, tell: Callable[[Sequence[Line]], None]) -> None:
        self._store = store
        self._clock = clock
        self._tell = tell
        self._seen = look_at(store, Look())

    def so_far(self) -> list[Line]:
        """Return where every batch stands."""
        return summaries(self._seen, self._clock.now())

    def tell_until(self, stop: threading.Event) -> None:
        """Tell until told to stop."""
        while not stop.wait(_PAUSE_SECONDS):
            self.tell()

    def tell(self) -> None:
        """Tell what has changed since the last time; a database that is away is looked at again later."""
        try:
            seen = look_at(self._store, self._seen)
        except StoreError:
            return
        lines = lines_between(self._seen, seen, self._clock.now())
        self._seen = seen
        if lines:
            self._tell(lines)


def lines_between(before: Look, after: Look, now: datetime) -> list[Line]:
    """Return what happened between two looks, in the order in which it did."""
    looks = Comparison(before, after, now)
    told = [line for tell in _TELLERS for line in tell(looks)]
    return sorted(told, key=lambda line: (line.at, _ORDER[line.mark]))
