"""Looks at the database that many viewers share: whatever is asked twice within a second is read once."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from matoolkit.admin.looking import BatchLook, look_at_batch
from matoolkit.admin.progress import PhaseProgress, phase_progress
from matoolkit.admin.rates import KnownMinutes, Rates, rates_of_last_hour
from matoolkit.clock import Clock, SystemClock
from matoolkit.domain.states import DeadLetterStatus
from matoolkit.store import Store
from matoolkit.store.batches import BatchFilter, count_batches
from matoolkit.store.deadletters import dead_letter_counts
from matoolkit.store.undofailures import count_undo_failures
from matoolkit.web.dearlooks import DearLooks

_SECONDS = 1.0
_MOST_KEPT = 200

SeenT = TypeVar("SeenT")


@dataclass(frozen=True, slots=True)
class OpenMatters:
    """How much waits for a person, for the frame of every page."""

    holds: int
    dead_letters: int
    undo_failures: int


@dataclass(frozen=True, slots=True)
class Counted:
    """How members go through a phase, if one has begun."""

    progress: PhaseProgress | None


@dataclass(slots=True)
class _Kept:
    """A look, and when it was taken; only one viewer at a time takes it anew."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    taken_at: float = float("-inf")
    seen: Any = None


class Looks:
    """Looks that are good for a second; a change that is made here makes them all old."""

    def __init__(self, store: Store, seconds: float = _SECONDS, clock: Clock | None = None) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock or SystemClock()
        self._kept: dict[Hashable, _Kept] = {}
        self._lock = threading.Lock()
        self._minutes = KnownMinutes()
        self.dear = DearLooks(seconds, self._clock)

    def batch(self, batch_id: int) -> BatchLook:
        """Look at a batch."""
        return self.taken(("batch", batch_id), lambda: look_at_batch(self._store, batch_id))

    def progress(self, batch_id: int) -> Counted | None:
        """Look at how members go through the phase of a batch that runs or ran last; nothing while they are counted."""
        return self.dear.soon(("progress", batch_id), lambda: Counted(phase_progress(self._store, batch_id)))

    def rates(self) -> Rates:
        """Look at the last hour; minutes that are over are counted once."""
        return self.taken("rates", lambda: rates_of_last_hour(self._store, self._minutes))

    def open_matters(self) -> OpenMatters:
        """Count what waits for a person."""
        return self.taken("open", self._open_matters)

    def taken(self, key: Hashable, look: Callable[[], SeenT]) -> SeenT:
        """Return what was seen within the last second, or look."""
        with self._lock:
            if len(self._kept) > _MOST_KEPT:
                self._kept.clear()
            kept = self._kept.setdefault(key, _Kept())
        with kept.lock:
            if self._clock.monotonic() - kept.taken_at >= self._seconds:
                begun = self._clock.monotonic()
                kept.seen, kept.taken_at = look(), begun
            return cast("SeenT", kept.seen)

    def forget(self) -> None:
        """Let everything be looked at anew, because something was changed."""
        with self._lock:
            self._kept = {}
        self.dear.forget()

    def _open_matters(self) -> OpenMatters:
        with self._store.reading() as tx:
            return OpenMatters(
                count_batches(tx, BatchFilter(is_held=True)),
                dead_letter_counts(tx).get(DeadLetterStatus.OPEN, 0),
                count_undo_failures(tx),
            )
