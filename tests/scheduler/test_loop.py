"""The loop: ticks never overlap, whatever goes wrong is tried again, and being told to stop ends it (rule T10)."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.errors import StoreUnavailable
from matoolkit.ports import Piece
from matoolkit.scheduler.loop import SchedulerLoop
from matoolkit.store import Store
from matoolkit.store.automation import last_tick
from tests.scheduler.calendar import TICK, Calendar, People

SWEEP = 30.0


class Pauses(threading.Event):
    """An event that keeps the pauses it is asked for, and is set after so many of them."""

    def __init__(self, clock: VirtualClock, most: int) -> None:
        super().__init__()
        self._clock = clock
        self._most = most
        self.taken: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.taken.append(timeout or 0.0)
        self._clock.advance(timedelta(seconds=timeout or 0.0))
        if len(self.taken) == self._most:
            self.set()
        return self.is_set()


class Slow(People):
    """A source that takes long to answer."""

    def __init__(self, clock: VirtualClock, takes: timedelta) -> None:
        super().__init__()
        self._clock = clock
        self._takes = takes

    def pieces(self, query: str) -> Iterator[Piece]:
        self._clock.advance(self._takes)
        yield from super().pieces(query)


@pytest.fixture
def calendar(store: Store, clock: VirtualClock) -> Calendar:
    made = Calendar(store, clock)
    made.publish()
    return made


@pytest.mark.parametrize(
    ("takes", "pause"), [(timedelta(), 300), (timedelta(seconds=80), 220), (timedelta(minutes=1, seconds=29), 211)]
)
def test_t10_the_next_tick_begins_an_interval_after_the_last_one_began(
    calendar: Calendar, clock: VirtualClock, takes: timedelta, pause: float
) -> None:
    calendar.people = Slow(clock, takes)
    stop = Pauses(clock, most=2)
    SchedulerLoop(calendar.scheduler, SWEEP).tick_until(stop)
    assert stop.taken == [pause, pause]
    assert calendar.people.reads == 2


def test_t10_a_tick_that_takes_longer_than_the_interval_is_followed_by_the_next_at_once(
    calendar: Calendar, clock: VirtualClock
) -> None:
    class Kept(Slow):
        def pieces(self, query: str) -> Iterator[Piece]:
            yield from super().pieces(query)
            calendar.scheduler.sweep()  # as the other thread does, so that the lease lasts

    calendar.people = Kept(clock, TICK * 2)
    calendar.scheduler.lease._length = TICK * 9  # noqa: SLF001 - nobody sweeps while this test waits
    stop = Pauses(clock, most=3)
    SchedulerLoop(calendar.scheduler, SWEEP).tick_until(stop)
    assert stop.taken == [0.0, 0.0, 0.0]


def test_t10_while_another_scheduler_works_this_one_looks_often(
    calendar: Calendar, store: Store, clock: VirtualClock
) -> None:
    first = Calendar(store, clock, name="first")
    assert first.scheduler.lease.hold()
    stop = Pauses(clock, most=4)
    SchedulerLoop(calendar.scheduler, SWEEP).tick_until(stop)
    # The other one's lease has run out after ninety seconds without a sign of life.
    assert stop.taken == [SWEEP, SWEEP, SWEEP, 300]
    assert calendar.people.reads == 1


def test_a_tick_that_fails_is_tried_again_soon(
    calendar: Calendar, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [StoreUnavailable("the database is away")]
    held = calendar.scheduler.lease.hold

    def hold() -> bool:
        if failures:
            raise failures.pop()
        return held()

    monkeypatch.setattr(calendar.scheduler.lease, "hold", hold)
    stop = Pauses(clock, most=2)
    SchedulerLoop(calendar.scheduler, SWEEP).tick_until(stop)
    assert stop.taken == [SWEEP, 300]


def test_being_told_to_stop_ends_a_tick_before_its_next_transaction(calendar: Calendar, clock: VirtualClock) -> None:
    calendar.in_source("ada")

    class Stopped(People):
        def pieces(self, query: str) -> Iterator[Piece]:
            calendar.stop.set()
            stop.set()
            yield from super().pieces(query)

    stop = Pauses(clock, most=1)
    calendar.people = Stopped(calendar.people.rows)
    SchedulerLoop(calendar.scheduler, SWEEP).tick_until(stop)
    assert calendar.batches() == []
    with calendar.store.reading() as tx:
        assert last_tick(tx, "wave") is None


def test_t9_sweeps_make_the_lease_last_and_go_on_after_trouble(
    calendar: Calendar, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[int] = []
    sweep = calendar.scheduler.lease.hold

    def hold() -> bool:
        swept.append(1)
        if len(swept) == 1:
            raise StoreUnavailable("the database is away")
        return sweep()

    monkeypatch.setattr(calendar.scheduler.lease, "hold", hold)
    SchedulerLoop(calendar.scheduler, SWEEP).sweep_until(Pauses(clock, most=4))
    assert len(swept) == 3
