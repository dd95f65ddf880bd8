"""Looks that take long are taken beside the pages, once for all who watch, and not too often."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.errors import StoreUnavailable
from matoolkit.web.dearlooks import DearLooks
from tests.waiting import until


def test_a_quick_look_is_seen_at_once(clock: VirtualClock) -> None:
    assert DearLooks(1, clock, patience=60).soon("key", lambda: 7) == 7


def test_a_page_does_not_wait_for_a_slow_look_and_shows_the_last_one_meanwhile() -> None:
    looks, gate, answers = DearLooks(0, SystemClock(), patience=0.01), threading.Event(), iter((1, 2))

    def slow() -> int:
        gate.wait(60)
        gate.clear()
        return next(answers)

    assert looks.soon("key", slow) is None
    gate.set()
    until(lambda: looks.soon("key", slow) == 1)
    assert looks.soon("key", slow) == 1, "the second look is still being taken"
    gate.set()
    until(lambda: looks.soon("key", slow) == 2)


def counting(seen: list[int]) -> Callable[[], int]:
    def look() -> int:
        seen.append(1)
        return len(seen)

    return look


def test_a_look_is_good_for_a_while_unless_something_was_changed(clock: VirtualClock) -> None:
    looks, seen = DearLooks(1000, clock, patience=60), list[int]()
    assert [looks.soon("key", counting(seen)) for _ in range(3)] == [1, 1, 1]
    looks.forget()
    assert looks.soon("key", counting(seen)) == 2


def test_a_database_that_is_away_is_said(clock: VirtualClock) -> None:
    def away() -> int:
        raise StoreUnavailable("it is away")

    with pytest.raises(StoreUnavailable):
        DearLooks(1, clock, patience=60).soon("key", away)


def test_after_a_failure_the_next_look_does_not_wait_for_as_long_as_the_last_one_took(clock: VirtualClock) -> None:
    looks, away = DearLooks(1, clock, patience=60), [False, True, False]

    def look() -> int:
        clock.advance(timedelta(seconds=3))
        if away.pop(0):
            raise StoreUnavailable("it is away")
        return len(away)

    assert looks.soon("key", look) == 2
    looks.forget()
    with pytest.raises(StoreUnavailable):
        looks.soon("key", look)
    assert looks.soon("key", look) == 0
