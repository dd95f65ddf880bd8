"""Patience with a directory that does not yet show what was just made.

Half a minute in all. For longer waits a retry of the step is better, because it holds no thread.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from matoolkit.backoff import Backoff
from matoolkit.clock import Clock
from matoolkit.worker.clients.failures import ObjectMissing, Unanswered

T = TypeVar("T")

_LOST_SECONDS = 5
# Without jitter: each thread waits for an object of its own.
_LOOKS = Backoff(count=5, first_seconds=1, longest_seconds=15)


def tries(clock: Clock) -> Iterator[bool]:
    """Let time pass between tries; each says whether it is the last."""
    for look in range(_LOOKS.count):
        yield False
        clock.sleep(_LOOKS.longest(look + 1))
    yield True


def until_true(clock: Clock, is_so: Callable[[], bool]) -> bool:
    """Look until something is so, or for long enough to know that it will not be."""
    return any(is_so() for _ in tries(clock))


def until_seen(clock: Clock, look: Callable[[], T | None]) -> T | None:
    """Look until there is something, or for long enough to know that there is nothing."""
    for _ in tries(clock):
        found = look()
        if found is not None:
            return found
    return None


def once_there(clock: Clock, act: Callable[[], T]) -> T:
    """Act on something that may not be there yet."""
    for is_last in tries(clock):
        try:
            return act()
        except ObjectMissing:
            if is_last:
                raise
    raise AssertionError("the last try returns or raises")


def wait_out_loss(clock: Clock, lost: Unanswered) -> None:
    """Give a call whose connection broke a moment to take effect; raise if it may still be at work after that."""
    if not lost.is_over:
        raise lost
    clock.sleep(_LOST_SECONDS)
