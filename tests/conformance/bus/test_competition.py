"""Competing consumers, waking up, and clocks that disagree."""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import text

from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.clock import Clock, SystemClock, VirtualClock
from matoolkit.store.listening import Listener
from tests.databases import Database
from tests.threads import in_threads

from .messages import added, ids, receive


def take_all(bus: SqlBus) -> list[str]:
    taken: list[str] = []
    while pile := receive(bus, 50):
        taken += ids(bus.complete_now(pile))
    return taken


def test_m8_competing_consumers_never_get_the_same_message(database: Database) -> None:
    buses = [SqlBus(database.open(), SystemClock()) for _ in range(4)]
    buses[0].send([added(number) for number in range(2000)])
    tasks: list[Callable[[], list[str]]] = [lambda bus=bus: take_all(bus) for bus in buses]  # type: ignore[misc]
    counts = Counter(name for taken in in_threads(tasks) for name in taken)
    assert len(counts) == 2000
    assert set(counts.values()) == {1}


def test_m8_publishers_and_consumers_at_once_lose_and_repeat_nothing(database: Database) -> None:
    buses = [SqlBus(database.open(), SystemClock()) for _ in range(4)]
    taken: list[str] = []

    def publish(bus: SqlBus, first: int) -> None:
        for start in range(first, first + 500, 25):
            bus.send([added(number) for number in range(start, start + 25)])

    def consume(bus: SqlBus) -> None:
        for _ in range(10_000):
            taken.extend(take_all(bus))
            if len(taken) >= 1000:
                return

    in_threads(
        [
            lambda: publish(buses[0], 0),
            lambda: publish(buses[1], 500),
            lambda: consume(buses[2]),
            lambda: consume(buses[3]),
        ]
    )
    assert len(taken) == len(set(taken)) == 1000


@pytest.mark.parametrize("ahead", [timedelta(minutes=1), timedelta(days=-400)])
def test_m8_the_clock_of_a_process_does_not_matter(database: Database, ahead: timedelta) -> None:
    """A process whose clock is a minute ahead would take locked messages away from others."""
    wrong: Clock = VirtualClock(SystemClock().now() + ahead)
    right, skewed = SqlBus(database.open(), SystemClock()), SqlBus(database.open(), wrong)
    right.send([added(1)])
    assert len(receive(right)) == 1
    assert receive(skewed) == []
    skewed.send([added(2)])
    assert ids(receive(right)) == ["member-added-2-0"]


def waits_until(bus: SqlBus, act: Callable[[], None]) -> bool:
    """Tell whether somebody who waits for messages is woken by something."""
    woken = threading.Event()

    def wait() -> None:
        bus.wait(EVENTS_OF_ORCHESTRATOR, 30)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    act()
    thread.join(31)
    return woken.is_set() and bool(receive(bus))


def test_who_waits_is_woken_by_a_message_of_the_same_process(database: Database) -> None:
    bus = SqlBus(database.open(), SystemClock())
    assert waits_until(bus, lambda: bus.send([added(1)]))


def test_who_waits_is_woken_by_a_message_of_another_process(database: Database) -> None:
    bus, other = (SqlBus(database.open(), SystemClock()) for _ in range(2))
    bus.start()
    try:
        assert waits_until(bus, lambda: other.send([added(1)]))
    finally:
        bus.stop()


def test_a_message_published_between_looking_and_waiting_is_not_missed(database: Database) -> None:
    bus = SqlBus(database.open(), SystemClock())
    assert receive(bus) == []
    bus.send([added(1)])
    bus.wait(EVENTS_OF_ORCHESTRATOR, 30)
    assert len(receive(bus)) == 1


def test_listening_goes_on_after_the_connection_broke(database: Database) -> None:
    heard = threading.Event()
    listener = Listener(database.open(), lambda _topic: heard.set())
    listener.start()
    bus = SqlBus(database.open(), SystemClock())
    numbers = count()

    def is_heard() -> bool:
        """Publish until it is heard, as long as a new connection may take."""
        heard.clear()
        for _ in range(60):
            bus.send([added(next(numbers))])
            if heard.wait(0.25):
                return True
        return False

    try:
        if database.kind == "postgresql":
            assert is_heard()
            with bus._store.transaction() as tx:  # noqa: SLF001
                tx.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"))
            assert is_heard()
        else:
            assert not listener._thread.is_alive()  # noqa: SLF001 - SQLite cannot tell, so nobody listens
    finally:
        listener.stop()
