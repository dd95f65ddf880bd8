"""Matrices of batches, kept for all who watch them: one look at the database, whose changes everybody gets.

The more a look costs, the rarer it is: looking takes a twentieth of the time at most. A batch of 100,000 members, whose
look takes seconds, is so looked at about once a minute.
"""

import gzip
import logging
import secrets
import threading
from array import array
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import orjson

from matoolkit.admin.matrix import Matrix, Numbers, read_matrix
from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import MatoolkitError
from matoolkit.store import Store

log = logging.getLogger(__name__)

_LOOKS_AT_ONCE = 2
_SHARE = 20
_MOST_KEPT = 12
# Who comes first after a while waits for a new look.
_OLD_SECONDS = 10.0
# A change is four bytes, a cell is one: with more changes than this, all cells are shorter.
_CHANGES_OF_CELLS = 8
_PIECE = 512
# A change has 24 bits for the number of its cell.
_MOST_CELLS = 1 << 24

Change: TypeAlias = tuple[str, Numbers]


@dataclass(frozen=True, slots=True)
class Shown:
    """A matrix at one look, its version, and each version of late with what changed after it, oldest first."""

    matrix: Matrix
    version: str
    changes: Sequence[Change]
    packed: bytes

    def since(self, version: str) -> "Numbers | None":
        """Return what has changed since a version, or nothing if that version is not known any more."""
        found = array("I")
        if version == self.version:
            return found
        place = next((place for place, (before, _) in enumerate(self.changes) if before == version), None)
        if place is None:
            return None
        for _, cells in self.changes[place:]:
            found.extend(cells)
        return found


@dataclass(slots=True)
class _Kept:
    """What was seen of a batch, when, how long that took, and the look that is being taken."""

    shown: Shown | None = None
    looked_at: float = float("-inf")
    took: float = 0.0
    running: "Future[Shown] | None" = None
    changes: deque[Change] = field(default_factory=deque)


class Matrices:
    """The matrices that somebody watches."""

    def __init__(self, store: Store, fresh_seconds: float, clock: Clock | None = None) -> None:
        self._store = store
        self._fresh_seconds = fresh_seconds
        self._clock = clock or SystemClock()
        self._kept: dict[int, _Kept] = {}
        self._lock = threading.Lock()
        self._lookers = ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="matrix")
        # Every process counts versions for itself, for all batches together: one that was given up and is kept again
        # must not give a version twice.
        self._name, self._numbers = secrets.token_hex(4), count(1)

    def version(self, batch_id: int) -> str:
        """Return the version of what is kept, at once; if it is time to, a look begins.

        Nobody looks for those who watch a batch without its matrix.
        """
        shown = self._asked(batch_id)[0] if batch_id in self._kept else None
        return shown.version if shown else ""

    def shown(self, batch_id: int) -> "Future[Shown]":
        """Return what is kept, or what the next look sees if that is old."""
        shown, running = self._asked(batch_id)
        if running is not None:
            return running
        assert shown is not None  # noqa: S101 - or else a look has begun
        found: Future[Shown] = Future()
        found.set_result(shown)
        return found

    def _asked(self, batch_id: int) -> "tuple[Shown | None, Future[Shown] | None]":
        with self._lock:
            kept = self._kept.pop(batch_id, None) or _Kept()
            self._kept[batch_id] = kept  # the one asked for last is the last
            if len(self._kept) > _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            age = self._clock.monotonic() - kept.looked_at
            if kept.running is None and age >= max(self._fresh_seconds, _SHARE * kept.took):
                kept.running = self._lookers.submit(self._look, batch_id, kept)
            is_old = kept.shown is None or age >= max(_OLD_SECONDS, 2 * _SHARE * kept.took)
            return kept.shown, kept.running if is_old else None

    def _look(self, batch_id: int, kept: _Kept) -> Shown:
        begun = self._clock.monotonic()
        try:
            matrix = read_matrix(self._store, batch_id, kept.shown.matrix if kept.shown else None)
            shown = self._next(kept, matrix)
        except MatoolkitError:
            # The store tells of its outages, and those who wait are answered.
            raise
        except Exception:
            log.exception("the matrix of batch %s could not be read", batch_id)
            raise
        else:
            kept.shown = shown
            return shown
        finally:
            with self._lock:
                kept.looked_at = self._clock.monotonic()
                kept.took = kept.looked_at - begun
                kept.running = None

    def _next(self, kept: _Kept, matrix: Matrix) -> Shown:
        before = kept.shown
        if before is not None and before.matrix is matrix:
            return before
        cells = _changes(before.matrix, matrix) if before else None
        if before is not None and cells is not None and not cells and before.matrix.columns == matrix.columns:
            return Shown(matrix, before.version, before.changes, before.packed)
        version = f"{self._name}-{next(self._numbers)}"
        if before is None or cells is None:
            kept.changes.clear()
        else:
            kept.changes.append((before.version, cells))
        while sum(len(one) for _, one in kept.changes) > len(matrix.cells) // _CHANGES_OF_CELLS:
            kept.changes.popleft()
        head = {
            "version": version,
            "members": len(matrix.members),
            "columns": [{"phase": column.phase, "step": column.step} for column in matrix.columns],
        }
        return Shown(matrix, version, list(kept.changes), gzip.compress(enveloped(head, matrix.cells), 1))


def enveloped(head: dict[str, Any], body: bytes) -> bytes:
    """Put a head before bytes: its length in four bytes, lowest first, itself as JSON, and the bytes."""
    written = orjson.dumps(head)
    return len(written).to_bytes(4, "little") + written + body


def _changes(before: Matrix, after: Matrix) -> "Numbers | None":
    """Return each cell that changed, its number above its new byte; nothing if cells mean something else now."""
    if before.columns != after.columns or before.members.ids != after.members.ids or len(after.cells) > _MOST_CELLS:
        return None
    changed = array("I")
    old, new = before.cells, after.cells
    for start in range(0, len(new), _PIECE):
        if old[start : start + _PIECE] != new[start : start + _PIECE]:
            here = range(start, min(start + _PIECE, len(new)))
            changed.extend(cell << 8 | new[cell] for cell in here if old[cell] != new[cell])
    return changed
