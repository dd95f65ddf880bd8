"""Wakes the threads of one process that wait for messages of a topic."""

import threading
from collections import Counter


class Doorbell:
    """A bell for each topic. Rings are counted, so that a ring between looking and waiting is not lost."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rings: Counter[str] = Counter()

    def ring(self, topic: str) -> None:
        """Wake all threads that wait for a topic."""
        with self._changed:
            self._rings[topic] += 1
            self._changed.notify_all()

    def count(self, topic: str) -> int:
        """How often the bell of a topic has rung."""
        return self._rings[topic]

    def wait(self, topic: str, seen: int, seconds: float) -> bool:
        """Wait for a ring after the ones seen, but not longer than that, and say whether there was one."""
        with self._changed:
            return self._changed.wait_for(lambda: self._rings[topic] > seen, timeout=seconds)
