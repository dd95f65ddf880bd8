"""A cache that keeps what was used last."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")

log = logging.getLogger(__name__)


class Recent(Generic[KeyT, ValueT]):
    """Keeps a number of values; when it is full, the one that was not used for longest makes room.

    A cache of statements is full only if a caller has something in a shape that belongs to the values. Its statements
    are then built or compiled again and again, which is slow and not wrong, so it is logged and work goes on.
    """

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._most = most
        self._values: OrderedDict[KeyT, ValueT] = OrderedDict()
        self._adding = threading.Lock()
        self._dropped = 0
        # How a key is looked up. Every statement comes by here, and most caches never get half full. Until one does,
        # nothing will be dropped soon, and it does not matter what was used last.
        self.get: Callable[[KeyT], ValueT | None] = self._values.get

    def __len__(self) -> int:
        return len(self._values)

    def _get_and_note(self, key: KeyT) -> ValueT | None:
        # No lock: each of the two calls is done at once or not at all.
        try:
            self._values.move_to_end(key)
        except KeyError:
            return None
        return self._values.get(key)  # unless another thread dropped it in between

    def add(self, key: KeyT, value: ValueT) -> ValueT:
        """Keep a value, and return it."""
        with self._adding:
            self._values[key] = value
            if len(self._values) * 2 >= self._most:
                self.get = self._get_and_note
            while len(self._values) > self._most:
                self._values.popitem(last=False)
                self._note_dropped()
        return value

    def _note_dropped(self) -> None:
        # Once for each filling of the cache: a line for every statement would bury the rest of the log.
        if self._dropped % self._most == 0:
            log.warning("more than %d %s: what was not used for longest is dropped", self._most, self._what)
        self._dropped += 1
