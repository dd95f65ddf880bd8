"""Looks that take long with many members: they are taken beside the pages, which wait for them only for a moment."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from matoolkit.clock import Clock

_PATIENCE_SECONDS = 0.2
_MOST_KEPT = 100
# A look is good for twenty times as long as it took, up to a minute, so that looking takes a twentieth of the time.
_SHARE, _LONGEST = 20, 60.0

SeenT = TypeVar("SeenT")


@dataclass(slots=True)
class _Dear:
    """What was seen last, when that look began and how long it took, and the look that is being taken."""

    begun_at: float = float("-inf")
    took: float = 0.0
    seen: Any = None
    under_way: Future[None] | None = None


class DearLooks:
    """Looks that one thread takes, one after another, however many people watch."""

    def __init__(self, seconds: float, clock: Clock, patience: float = _PATIENCE_SECONDS) -> None:
        self.patience = patience
        self._seconds = seconds
        self._clock = clock
        self._kept: dict[Hashable, _Dear] = {}
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dear-look")

    def soon(self, key: Hashable, look: Callable[[], SeenT]) -> SeenT | None:
        """Return what is seen within a moment, else what was seen last; nothing if that is still to come."""
        with self._lock:
            if len(self._kept) > _MOST_KEPT:
                self._kept.clear()
            kept = self._kept.setdefault(key, _Dear())
            is_free = kept.under_way is None or kept.under_way.done()
            age = self._clock.monotonic() - kept.begun_at
            if is_free and age >= max(self._seconds, min(_SHARE * kept.took, _LONGEST)):
                kept.begun_at = self._clock.monotonic()
                kept.under_way = self._thread.submit(self._take, kept, look)
            under_way = kept.under_way
        try:
            if under_way is not None:
                under_way.result(self.patience)
        except TimeoutError:
            pass
        return cast("SeenT | None", kept.seen)

    def forget(self) -> None:
        """Let everything be looked at anew; until then what was seen last is shown."""
        with self._lock:
            for kept in self._kept.values():
                kept.begun_at = float("-inf")

    def _take(self, kept: _Dear, look: Callable[[], object]) -> None:
        begun = self._clock.monotonic()
        # A look that fails is no reason to wait for long before the next.
        kept.took = 0.0
        kept.seen = look()
        kept.took = self._clock.monotonic() - begun
