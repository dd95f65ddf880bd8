"""Rules M4 and M6: piles in one commit, poison alone, trouble counts nothing."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from matoolkit.bus.consumer import Consumer
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, LOCK_DURATION, RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.delivery import MAX_DELIVERIES
from matoolkit.domain.messages import MemberAdded
from matoolkit.errors import StoreBusy, StoreDamaged, StoreError, StoreReadOnly, StoreUnavailable
from matoolkit.ports import Bus, Delivery, Received, Subscription
from matoolkit.store import Store, open_store, queue
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.upgrade import upgrade

from .messages import added, dead_letters, ids, put_aside, receive
from .state import change, changes


class Handler:
    """Writes down what it handles, and fails as it is told."""

    def __init__(self) -> None:
        self.piles: list[int] = []
        self.poison: dict[str, Exception] = {}

    def __call__(self, tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        self.piles.append(len(deliveries))
        keys = [delivery.message.member_key for delivery in deliveries if isinstance(delivery.message, MemberAdded)]
        change(tx, keys, tx.time())
        for key in keys:
            if key in self.poison:
                raise self.poison[key]


class NeverRenewing(SqlBus):
    """A bus that does not notice that locks were lost, so that completing must."""

    def renew(self, messages: Sequence[Received]) -> list[Received]:
        return list(messages)


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def consumer(store: Store, bus: SqlBus, handler: Handler) -> Consumer:
    return Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler)


@pytest.mark.both_buses
def test_m4_a_pile_is_handled_and_done_with_in_one_commit(
    consumer: Consumer, bus: Bus, store: Store, handler: Handler, clock: VirtualClock
) -> None:
    bus.send([added(number) for number in range(30)])
    assert consumer.turn() == 30
    assert handler.piles == [30]
    assert len(changes(store)) == 30
    clock.advance(LOCK_DURATION * 2)
    assert (consumer.turn(), handler.piles) == (0, [30])


@pytest.mark.both_buses
@pytest.mark.parametrize("point", ["bus.received", "consumer.handled", "store.before_commit"])
def test_m1_a_crash_before_the_commit_is_as_if_nothing_had_happened(
    consumer: Consumer, bus: Bus, store: Store, handler: Handler, clock: VirtualClock, point: str
) -> None:
    bus.send([added(1)])
    # In the state's database, receiving is a commit too.
    first = 2 if point == "store.before_commit" and isinstance(bus, SqlBus) else 1
    with pytest.raises(SimulatedCrash), crashing(point, on_hit=first):
        consumer.turn()
    assert changes(store) == []
    clock.advance(LOCK_DURATION)
    assert Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler).turn() == 1
    assert changes(store) == ["user1"]


def test_m1_a_crash_after_the_commit_repeats_nothing(
    consumer: Consumer, bus: SqlBus, store: Store, handler: Handler, clock: VirtualClock
) -> None:
    bus.send([added(1)])
    with pytest.raises(SimulatedCrash), crashing("store.after_commit", on_hit=2):
        consumer.turn()
    clock.advance(LOCK_DURATION * 2)
    assert Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler).turn() == 0
    assert changes(store) == ["user1"]


@pytest.mark.both_buses
def test_m6_a_message_that_fails_does_not_hold_up_the_others(
    consumer: Consumer, bus: Bus, store: Store, handler: Handler
) -> None:
    handler.poison = {"user2": ZeroDivisionError("broken")}
    bus.send([added(number) for number in range(5)])
    consumer.turn()
    assert changes(store) == ["user0", "user1", "user3", "user4"]
    assert handler.piles == [5, 1, 1, 1, 1, 1]
    (again,) = receive(bus)
    assert (again.message_id, again.delivery_count) == ("member-added-2-0", 2)


@pytest.mark.both_buses
def test_m6_a_message_that_fails_ten_times_is_put_aside_with_its_reason(
    consumer: Consumer, bus: Bus, store: Store, handler: Handler
) -> None:
    handler.poison = {"user1": ZeroDivisionError("broken")}
    bus.send([added(1)])
    for _ in range(MAX_DELIVERIES):
        assert dead_letters(store) == []
        assert consumer.turn() == 1
    ((*_, name, reason, description, _),) = put_aside(bus, store)
    assert (name, reason, description) == ("member-added-1-0", "HandlingFailed", "ZeroDivisionError: broken")
    assert consumer.turn() == 0


@pytest.mark.both_buses
def test_m6_trouble_with_the_database_counts_nothing_and_the_pile_is_tried_again(
    consumer: Consumer, bus: Bus, store: Store, handler: Handler
) -> None:
    bus.send([added(1), added(2)])
    handler.poison = {"user2": StoreUnavailable("gone")}
    for _ in range(MAX_DELIVERIES + 5):
        with pytest.raises(StoreUnavailable):
            consumer.turn()
    assert (changes(store), put_aside(bus, store)) == ([], [])
    handler.poison = {}
    assert consumer.turn() == 2
    assert changes(store) == ["user1", "user2"]


def refused(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
    """Do what no database does."""
    tx.execute(text("SELECT * FROM nothing_here"))


def test_m6_an_unknown_fault_of_the_database_counts_for_none_of_the_messages_it_hits(bus: SqlBus, store: Store) -> None:
    """A hundred messages became a hundred dead letters in ten turns."""
    bus.send([added(number) for number in range(100)])
    handler, is_well = Handler(), threading.Event()

    def handle(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        (handler if is_well.is_set() else refused)(tx, deliveries)

    consumer = Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handle)
    for _ in range(2 * MAX_DELIVERIES):
        with pytest.raises(StoreError, match="nothing_here"):
            consumer.turn()
    assert dead_letters(store) == []
    is_well.set()
    assert consumer.turn() == 100
    assert len(changes(store)) == 100


def test_m6_an_unknown_fault_counts_for_the_one_message_that_fails_beside_others(
    consumer: Consumer, bus: SqlBus, store: Store, handler: Handler
) -> None:
    handler.poison = {"user2": StoreError("cannot be stored")}
    bus.send([added(number) for number in range(5)])
    consumer.turn()
    assert changes(store) == ["user0", "user1", "user3", "user4"]
    (again,) = receive(bus)
    assert (again.message_id, again.delivery_count) == ("member-added-2-0", 2)


def test_m6_an_unknown_fault_counts_for_a_message_that_fails_alone_on_a_healthy_database(
    consumer: Consumer, bus: SqlBus, store: Store, handler: Handler
) -> None:
    handler.poison = {"user1": StoreError("cannot be stored")}
    bus.send([added(1)])
    for _ in range(MAX_DELIVERIES):
        assert consumer.turn() == 1
    (letter,) = dead_letters(store)
    assert letter.description == "StoreError: cannot be stored"


def test_m6_a_message_alone_does_not_count_its_failure_on_a_database_that_is_not_well(
    consumer: Consumer, bus: SqlBus, store: Store, handler: Handler
) -> None:
    handler.poison = {"user1": StoreError("something is wrong")}
    bus.send([added(1)])
    with store.transaction() as tx:
        tx.operations().rename_table("rollback_executions", "elsewhere")
    for _ in range(2 * MAX_DELIVERIES):
        with pytest.raises(StoreError, match="rollback_executions"):
            consumer.turn()
    assert dead_letters(store) == []
    with store.transaction() as tx:
        tx.operations().rename_table("elsewhere", "rollback_executions")
    handler.poison = {}
    assert consumer.turn() == 1
    assert changes(store) == ["user1"]


def test_m6_messages_that_come_one_by_one_and_all_fail_become_no_dead_letters(
    consumer: Consumer, bus: SqlBus, store: Store, handler: Handler
) -> None:
    handler.poison = {f"user{number}": StoreError("something is wrong") for number in range(5)}
    for number in range(5):
        bus.send([added(number)])
        for _ in range(2 * MAX_DELIVERIES):
            with suppress(StoreError):
                consumer.turn()
    assert len(dead_letters(store)) <= 1, "only the first one failed alone"


@pytest.mark.parametrize("most", [10, 500])
def test_m6_messages_that_all_fail_hold_up_no_other_and_then_count_it(
    bus: SqlBus, store: Store, handler: Handler, most: int
) -> None:
    consumer = Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler, most)
    handler.poison = {f"user{number}": StoreError("cannot be stored") for number in range(15)}
    bus.send([added(number) for number in range(15)])
    with pytest.raises(StoreError):
        consumer.turn()
    for number in range(100, 100 + 8 * MAX_DELIVERIES):
        bus.send([added(number)])
        with suppress(StoreError):
            consumer.turn()
    assert len(changes(store)) == 8 * MAX_DELIVERIES
    assert len(dead_letters(store)) == 15


def test_m6_a_damaged_database_is_no_fault_of_a_message(
    consumer: Consumer, bus: SqlBus, store: Store, handler: Handler
) -> None:
    handler.poison = {"user1": StoreDamaged("a page is broken")}
    bus.send([added(1)])
    for _ in range(2 * MAX_DELIVERIES):
        with pytest.raises(StoreDamaged):
            consumer.turn()
    assert dead_letters(store) == []


def test_m6_trouble_while_messages_are_tried_alone_keeps_those_not_tried_yet(
    bus: SqlBus, store: Store, handler: Handler
) -> None:
    bus.send([added(1), added(2), added(3)])
    handler.poison = {"user3": ZeroDivisionError("broken")}

    def fail_second(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        if len(handler.piles) == 2:
            handler.piles.append(0)
            raise StoreUnavailable("gone")
        handler(tx, deliveries)

    consumer = Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, fail_second)
    with pytest.raises(StoreUnavailable):
        consumer.turn()
    assert changes(store) == ["user1"]
    consumer.turn()
    assert changes(store) == ["user1", "user2"]


def test_m8_a_consumer_that_hangs_past_its_lock_changes_nothing_when_it_wakes_up(
    bus: SqlBus, store: Store, handler: Handler, clock: VirtualClock
) -> None:
    def hang(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        """Sleep until others have done the work, then go on as if nothing had happened."""
        change(tx, ["hung"], tx.time())

    bus.send([added(1), added(2)])
    hung = Consumer(store, NeverRenewing(store), EVENTS_OF_ORCHESTRATOR, hang)
    hung._pile = bus.receive(EVENTS_OF_ORCHESTRATOR, 10)  # noqa: SLF001 - it has received, and hangs
    clock.advance(LOCK_DURATION)
    assert Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler).turn() == 2
    hung.turn()
    assert changes(store) == ["user1", "user2"]


def test_m8_of_a_pile_that_another_process_has_a_part_of_the_rest_is_handled_once(
    bus: SqlBus, store: Store, handler: Handler, clock: VirtualClock
) -> None:
    class Slow(SqlBus):
        def receive(self, subscription: Subscription, most: int) -> list[Received]:
            """Receive, and be so slow that another process takes the first message."""
            received = super().receive(subscription, most)
            clock.advance(LOCK_DURATION)
            Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler, most=1).turn()
            return received

    bus.send([added(1), added(2), added(3)])
    slow = Consumer(store, Slow(store), EVENTS_OF_ORCHESTRATOR, handler)
    assert slow.turn() == 3
    assert changes(store) == ["user1"]
    assert slow.turn() == 2
    assert changes(store) == ["user1", "user2", "user3"]


def test_m8_what_another_process_takes_while_messages_are_tried_alone_is_left_to_it(
    bus: SqlBus, store: Store, handler: Handler, clock: VirtualClock
) -> None:
    other = Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, Handler())

    class Slow(SqlBus):
        def abandon(self, messages: Sequence[Received]) -> None:
            """Give a message back, and be so slow that another process takes that one and all the others."""
            super().abandon(messages)
            clock.advance(LOCK_DURATION)
            other.turn()

    handler.poison = {"user1": ZeroDivisionError("broken")}
    bus.send([added(1), added(2), added(3)])
    slow = Consumer(store, Slow(store), EVENTS_OF_ORCHESTRATOR, handler)
    assert slow.turn() == 3
    assert changes(store) == ["user1", "user2", "user3"]
    assert slow.turn() == 0


def test_m6_an_outage_of_a_night_fills_no_dead_letters(bus: SqlBus, store: Store, clock: VirtualClock) -> None:
    """Receiving works, handling does not, and two consumers take turns at failing."""
    bus.send([added(number) for number in range(5)])

    def busy(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        raise StoreBusy("somebody holds the batch")

    consumers = [Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, busy) for _ in range(2)]
    for _ in range(200):
        for consumer in consumers:
            with suppress(StoreBusy):
                consumer.turn()
        clock.advance(LOCK_DURATION / 4)
        bus.sweep()
    assert dead_letters(store) == []
    assert receive(bus) == [], "they are still locked by the consumer that keeps them"


@pytest.mark.both_buses
def test_m6_a_message_that_kills_its_process_takes_no_other_with_it(
    bus: Bus, store: Store, clock: VirtualClock
) -> None:
    def handler(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        keys = [delivery.message.member_key for delivery in deliveries if isinstance(delivery.message, MemberAdded)]
        if "user20" in keys:
            raise SimulatedCrash
        change(tx, keys, tx.time())

    bus.send([added(number) for number in range(50)])
    for _ in range(2 * MAX_DELIVERIES):
        with suppress(SimulatedCrash):
            Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler).turn()
        clock.advance(LOCK_DURATION)
        bus.sweep()
    assert [name for _, _, name, *_ in put_aside(bus, store)] == ["member-added-20-0"]
    assert len(changes(store)) == 49


def test_m8_a_bus_apart_is_done_with_messages_after_the_commit(
    store: Store, handler: Handler, clock: VirtualClock, tmp_path: Path
) -> None:
    """The shape of Azure Service Bus: no transaction in common, so a guarded handler sees a message again."""
    far = open_store(f"sqlite:///{tmp_path / 'far.db'}", clock=clock)
    upgrade(far)
    bus = SqlBus(far)
    bus.send([added(1), added(2)])
    with pytest.raises(SimulatedCrash), crashing("store.after_commit", on_hit=2):
        Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler).turn()
    assert changes(store) == ["user1", "user2"]
    clock.advance(LOCK_DURATION)
    consumer = Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler)
    assert consumer.turn() == 2
    assert handler.piles == [2, 2]
    clock.advance(LOCK_DURATION)
    assert consumer.turn() == 0
    far.close()


def test_m6_a_message_that_cannot_be_read_is_put_aside_at_once(
    consumer: Consumer, bus: SqlBus, store: Store, clock: VirtualClock
) -> None:
    now = clock.now()
    broken = queue.NewQueued(
        "orchestrator-events", "orchestrator", "x", "member-added", '{"BatchId": 1}', "{}", now, now + LOCK_DURATION
    )
    with store.transaction() as tx:
        queue.enqueue(tx, [broken], now, forget_before=now)
    bus.send([added(1)])
    consumer.turn()
    (letter,) = dead_letters(store)
    assert letter.reason == "Unreadable"
    assert "'MemberKey' is missing" in (letter.description or "")
    assert changes(store) == ["user1"]


@pytest.mark.parametrize(
    "body",
    ['{"JobId": "a", "Status": "Success", "DurationMs": "%s"}' % ("9" * 5000), "[]", '{"JobId": "\\ud800"}'],
)
def test_m6_whatever_is_wrong_with_a_message_it_stops_no_other(
    bus: SqlBus, store: Store, clock: VirtualClock, body: str
) -> None:
    now = clock.now()
    broken = queue.NewQueued(
        "worker-results", "orchestrator", "x", "worker-result", body, "{}", now, now + LOCK_DURATION
    )
    with store.transaction() as tx:
        queue.enqueue(tx, [broken], now, forget_before=now)
    assert Consumer(store, bus, RESULTS_OF_ORCHESTRATOR, lambda *_: None).turn() == 1
    assert [letter.reason for letter in dead_letters(store)] == ["Unreadable"]


def test_m6_an_error_that_no_database_could_store_is_still_a_reason(
    consumer: Consumer, bus: SqlBus, store: Store, handler: Handler
) -> None:
    handler.poison = {"user1": ValueError("\ud800\0")}
    bus.send([added(1)])
    for _ in range(MAX_DELIVERIES):
        consumer.turn()
    assert dead_letters(store)[0].description == "ValueError: \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"


def test_m4_what_a_handler_publishes_leaves_with_the_messages_it_handled(
    bus: SqlBus, store: Store, clock: VirtualClock
) -> None:
    def handler(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        bus.publish(tx, [added(int(delivery.received.message_id.split("-")[2]) + 100) for delivery in deliveries])

    bus.send([added(1), added(2)])
    Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handler).turn()
    assert ids(receive(bus)) == ["member-added-101-0", "member-added-102-0"]


def test_the_loop_handles_what_is_published_while_it_waits_and_stops_when_told(store: Store, handler: Handler) -> None:
    stop, handled = threading.Event(), threading.Event()
    bus = SqlBus(store)

    def handle(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        handler(tx, deliveries)
        tx.on_commit.append(handled.set)

    consumer = Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handle)
    loop = threading.Thread(target=consumer.run, args=(stop,))
    loop.start()
    for number in range(3):
        handled.clear()
        bus.send([added(number)])
        assert handled.wait(30)
    stop.set()
    loop.join(30)
    assert not loop.is_alive()
    assert changes(store) == ["user0", "user1", "user2"]


class NoPauses(threading.Event):
    """An event that nobody waits for."""

    def wait(self, _timeout: float | None = None) -> bool:
        return self.is_set()


def test_m6_the_loop_pauses_in_trouble_and_goes_on_afterwards(bus: SqlBus, store: Store, handler: Handler) -> None:
    stop = NoPauses()
    troubles = iter([StoreUnavailable("gone"), StoreReadOnly("a failover"), StoreBusy("a deadlock")])

    def handle(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        if trouble := next(troubles, None):
            raise trouble
        handler(tx, deliveries)
        tx.on_commit.append(stop.set)

    bus.send([added(1)])
    Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handle).run(stop)
    assert changes(store) == ["user1"]
    assert next(troubles, None) is None


def test_a_fault_that_is_no_trouble_ends_the_loop(
    consumer: Consumer, bus: SqlBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(bus, "receive", broken)
    with pytest.raises(ZeroDivisionError):
        consumer.run(threading.Event())
