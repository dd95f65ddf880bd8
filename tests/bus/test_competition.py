"""Competing consumers, waking up, and clocks that disagree."""

import threading
from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest
from sqlalchemy import text

from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.store.listening import Listener
from tests.databases import Database
from tests.threads import in_threads

from .messages import added, ids, receive


def take_all(bus: SqlBus) -> list[str]:
    taken: list[str] = []
    while pile := receive(bus, 50):
        assert bus.complete_now(pile) == len(pile)
        taken += ids(pile)
    return taken


def test_m8_competing_consumers_never_get_the_same_message(database: Database) -> None:
    buses = [SqlBus(database.open()) for _ in range(4)]
    buses[0].send([added(number) for number in range(2000)])
    tasks: list[Callable[[], list[str]]] = [lambda bus=bus: take_all(bus) for bus in buses]  # type: ignore[misc]
    counts = Counter(name for taken in in_threads(tasks) for name in taken)
    assert len(counts) == 2000
    assert set(counts.values()) == {1}


def test_m8_publishers_and_consumers_at_once_lose_and_repeat_nothing(database: Database) -> None:
    buses = [SqlBus(database.open()) for _ in range(4)]
    taken: list[str] = []

    def publish(bus: SqlBus, first: int) -> None:
        for start in range(first, first + 500, 25):
            bus.send([added(number) for number in range(start, start + 25)])

    def consume(bus: SqlBus) -> None:
        while len(taken) < 1000:
            taken.extend(take_all(bus))

    in_threads(
        [
            lambda: publish(buses[0], 0),
            lambda: publish(buses[1], 500),
            lambda: consume(buses[2]),
            lambda: consume(buses[3]),
        ]
    )
    assert len(taken) == len(set(taken)) == 1000


def waits_until(bus: SqlBus, act: Callable[[], None]) -> bool:
    """Tell whether somebody who waits for messages is woken by something."""
    woken = threading.Event()

    def wait() -> None:
        bus.wait(EVENTS_OF_ORCHESTRATOR, 600)
        woken.set()

    threading.Thread(target=wait, daemon=True).start()
    act()
    return woken.wait(20) and bool(receive(bus))


@pytest.fixture
def _never_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing but a ring wake anybody up."""
    for name in ("_POLL_SECONDS", "_POLL_SECONDS_WHEN_TOLD"):
        monkeypatch.setattr(f"matoolkit.bus.sql.{name}", 60)


@pytest.mark.usefixtures("_never_polls")
def test_who_waits_is_woken_by_a_message_of_the_same_process(database: Database) -> None:
    bus = SqlBus(database.open())
    assert waits_until(bus, lambda: bus.send([added(1)]))


def test_who_waits_is_woken_by_a_message_of_another_process(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.bus.sql._POLL_SECONDS_WHEN_TOLD", 60)
    bus, other = (SqlBus(database.open()) for _ in range(2))
    bus.start()
    try:
        assert waits_until(bus, lambda: publish_until_heard(bus, other))
    finally:
        bus.stop()


def publish_until_heard(bus: SqlBus, other: SqlBus) -> None:
    """Publish until a bell rings: it takes a moment until the listener listens."""
    topic = EVENTS_OF_ORCHESTRATOR.topic
    for number in range(100):
        other.send([added(number)])
        if not bus._store.dialect.can_listen or bus._doorbell.wait(topic, 0, 0.1):  # noqa: SLF001
            return


@pytest.mark.usefixtures("_never_polls")
def test_a_message_published_between_looking_and_waiting_is_not_missed(database: Database) -> None:
    bus = SqlBus(database.open())
    assert receive(bus) == []
    bus.send([added(1)])
    bus.wait(EVENTS_OF_ORCHESTRATOR, 30)
    assert len(receive(bus)) == 1


def test_listening_goes_on_after_the_connection_broke(database: Database) -> None:
    heard = threading.Event()
    listener = Listener(database.open(), lambda _topic: heard.set())
    listener.start()
    bus = SqlBus(database.open())
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
                tx.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE query LIKE 'LISTEN%' AND datname = current_database()"
                    )
                )
            assert is_heard()
        else:
            assert not listener._thread.is_alive()  # noqa: SLF001 - SQLite cannot tell, so nobody listens
    finally:
        listener.stop()
