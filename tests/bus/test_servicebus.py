"""Azure Service Bus when things go wrong: links drop, answers get lost, the namespace refuses (rules M1, M6, M8).

The contract that it shares with the SQL bus is in test_contract.py.
"""

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from pydantic import SecretStr

from matoolkit.bus.consumer import Consumer
from matoolkit.bus.relay import CLAIM_DURATION, MAX_TRIES, Relay
from matoolkit.bus.servicebus import Address, ServiceBus
from matoolkit.bus.servicebus.bus import SEND_SECONDS
from matoolkit.bus.servicebus.inbox import MOST_AT_ONCE
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, LOCK_DURATION, ORCHESTRATOR_EVENTS, jobs_of_worker
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.messages import MemberAdded
from matoolkit.errors import (
    BusAddressInvalid,
    BusBusy,
    BusEntityMissing,
    BusLibraryMissing,
    BusSignInFailed,
    BusUnavailable,
    MessageRefused,
)
from matoolkit.ports import Delivery, Outgoing, Received, Subscription, Transaction
from matoolkit.store import Store
from tests.threads import in_threads
from tests.waiting import until

from .messages import added, dead_letters, ids, receive
from .namespace import Namespace, bodies

# The state is beside the point here: one kind of database is enough.
pytestmark = [pytest.mark.on("sqlite"), pytest.mark.waits]

KEY = "the-key-of-the-namespace="


@pytest.fixture
def bus(namespace: Namespace) -> ServiceBus:
    return namespace.bus


def events(namespace: Namespace, *, dead: bool = False) -> list[str | None]:
    return bodies(namespace.server, EVENTS_OF_ORCHESTRATOR, dead=dead)


def handled(store: Store, bus: ServiceBus, act: Callable[[Transaction, Sequence[Delivery]], None]) -> list[int]:
    """Let a consumer handle one pile, and return how large the piles were."""
    sizes: list[int] = []

    def handle(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        sizes.append(len(deliveries))
        act(tx, deliveries)

    Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, handle).turn()
    return sizes


def received(bus: ServiceBus, count: int) -> list[Received]:
    """Receive until there are so many: the SDK may return nothing before it notices that a link is gone."""
    found: list[Received] = []

    def look() -> bool:
        found.extend(receive(bus))
        return len(found) >= count

    until(look)
    return found


def nothing(_tx: Transaction, _deliveries: Sequence[Delivery]) -> None:
    return


# Links


def test_m8_links_that_dropped_are_opened_again_and_nobody_hears_of_it(namespace: Namespace, bus: ServiceBus) -> None:
    bus.send([added(1)])
    pile = receive(bus)
    namespace.server.cut()
    bus.send([added(2)])
    assert ids(received(bus, 1)) == ["member-added-2-0"]
    assert bus.renew(pile) == pile


def test_m8_what_came_over_a_link_that_dropped_is_settled_by_its_lock(namespace: Namespace, bus: ServiceBus) -> None:
    bus.send([added(1), added(2), added(3)])
    pile = receive(bus)
    namespace.server.cut()
    assert receive(bus) == []
    assert bus.complete_now(pile) == 3
    assert events(namespace) == []


def test_m8_links_that_were_idle_for_long_are_opened_again(namespace: Namespace, bus: ServiceBus) -> None:
    """Service Bus detaches a link after ten minutes without a message."""
    bus.send([added(1)])
    pile = receive(bus)
    namespace.server.detach_idle()
    bus.send([added(2)])
    assert ids(received(bus, 1)) == ["member-added-2-0"]
    assert bus.complete_now(pile) == 1


def test_m8_a_pile_whose_link_drops_unseen_does_not_wait_for_answers_that_cannot_come(
    namespace: Namespace, bus: ServiceBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: the SDK tells only some of the settlements that the link broke, and all waited for the others."""
    monkeypatch.setattr("matoolkit.bus.servicebus.links.SETTLE_SECONDS", 1000)
    bus.send([added(number) for number in range(40)])
    pile = received(bus, 40)
    namespace.server.cut()
    assert in_threads([lambda: bus.complete_now(pile)]) == [40]
    assert events(namespace) == []


def test_m8_messages_of_two_links_are_settled_in_one_call(namespace: Namespace, bus: ServiceBus) -> None:
    """Defect: the SDK numbers deliveries for each link, and takes one message for the other."""
    bus.send([added(1), added(2)])
    old = receive(bus)
    namespace.server.cut()
    bus.send([added(3), added(4)])
    new = received(bus, 2)
    assert bus.complete_now([*old, *new]) == 4
    assert events(namespace) == []


def test_m8_a_settlement_whose_answer_is_lost_is_asked_for_again(
    namespace: Namespace, bus: ServiceBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.bus.servicebus.links.SETTLE_SECONDS", 0.2)
    bus.send([added(1), added(2)])
    pile = receive(bus)
    namespace.server.faults.lost_settlements = 1
    # One of them is known to be done; the other was done too, and is no longer ours to settle.
    assert bus.complete_now(pile) == 1
    assert events(namespace) == []


def test_m8_what_a_busy_namespace_does_not_settle_is_settled_later(namespace: Namespace, bus: ServiceBus) -> None:
    bus.send([added(number) for number in range(10)])
    pile = receive(bus)
    namespace.server.faults.busy = 1
    with pytest.raises(BusBusy):
        bus.complete_now(pile)
    assert bus.complete_now(pile) == 10
    assert events(namespace) == []


def test_m8_no_pile_is_larger_than_can_be_settled_in_time(bus: ServiceBus) -> None:
    bus.send([added(number) for number in range(MOST_AT_ONCE + 50)])
    taken: list[str] = []
    while len(taken) < MOST_AT_ONCE + 50:
        pile = receive(bus, 1000)
        assert len(pile) <= MOST_AT_ONCE
        assert bus.complete_now(pile) == len(pile)
        taken += ids(pile)
    assert sorted(taken) == sorted(f"member-added-{number}-0" for number in range(MOST_AT_ONCE + 50))


def test_m8_sends_are_split_by_size_and_keep_their_order(bus: ServiceBus) -> None:
    large = [Outgoing(f"member-added-{number}-0", MemberAdded(1, "x" * 100_000, number)) for number in range(6)]
    bus.send(large)
    assert ids(receive(bus)) == [one.message_id for one in large]


# What is at hand


def test_m8_a_process_that_stops_gives_back_what_it_has(namespace: Namespace, bus: ServiceBus) -> None:
    # An open link may have asked for a message already.
    bus.stop()
    with namespace.another_process() as other:
        other.send([added(1), added(2), added(3)])
        other.wait(EVENTS_OF_ORCHESTRATOR, 5)
        assert len(receive(other, 2)) == 2
    found = sorted((one.message_id, one.delivery_count) for one in received(bus, 3))
    assert found == [("member-added-1-0", 2), ("member-added-2-0", 2), ("member-added-3-0", 1)]


def test_m8_a_message_that_was_kept_until_its_lock_is_nearly_over_is_given_back(
    namespace: Namespace, bus: ServiceBus, clock: VirtualClock
) -> None:
    bus.send([added(1)])
    bus.wait(EVENTS_OF_ORCHESTRATOR, 5)
    clock.advance(LOCK_DURATION - timedelta(seconds=5))
    (again,) = receive(bus)
    assert again.delivery_count == 2
    assert bus.complete_now([again]) == 1


# Publishing and settling


def test_m8_a_look_ends_although_messages_keep_coming(namespace: Namespace, bus: ServiceBus) -> None:
    """Defect: under a steady flow it ended when the pile was full, and results waited for seconds."""
    looked = threading.Event()

    def keep_sending() -> None:
        with namespace.another_process() as other:
            for number in range(MOST_AT_ONCE):
                if looked.is_set():
                    return
                other.send([added(number)])

    def look() -> int:
        try:
            return len(received(bus, 1))
        finally:
            looked.set()

    sizes: list[int] = []
    in_threads([keep_sending, lambda: sizes.append(look())])
    assert 0 < sizes[0] < MOST_AT_ONCE


def test_m8_messages_whose_lock_is_over_are_forgotten(bus: ServiceBus, clock: VirtualClock) -> None:
    """Defect: they were kept until the process stopped, with their bodies."""
    bus.send([added(1)])
    pile = receive(bus)
    clock.advance(LOCK_DURATION)
    assert bus.renew(pile) == []
    assert bus._out == {}  # noqa: SLF001
    assert len(receive(bus)) == 1
    clock.advance(LOCK_DURATION)
    assert len(receive(bus)) == len(bus._out) == 1  # noqa: SLF001


def test_m8_a_message_whose_lock_was_renewed_is_given_back_on_stop(namespace: Namespace, clock: VirtualClock) -> None:
    with namespace.another_process() as other:
        other.send([added(1)])
        pile = received(other, 1)
        clock.advance(LOCK_DURATION / 2)
        assert other.renew(pile) == pile
        clock.advance(LOCK_DURATION / 2 + timedelta(seconds=1))
        assert receive(other) == []
    assert [one.delivery_count for one in receive(namespace.bus)] == [2]


def test_m4_what_a_handler_publishes_leaves_before_its_messages_are_settled(
    namespace: Namespace, bus: ServiceBus, store: Store
) -> None:
    """Defect: settled first, a crash would leave the next jobs in the outbox until a sweep."""
    relay = Relay(store, bus)
    bus.send([added(1)])
    with pytest.raises(SimulatedCrash), crashing("relay.before_send"):
        handled(store, bus, lambda tx, _: relay.publish(tx, [added(2)]))
    assert events(namespace) == ["member-added-1-0"]


def test_m6_what_is_handled_is_settled_later_if_the_bus_goes_away_after_the_commit(
    namespace: Namespace, bus: ServiceBus, store: Store
) -> None:
    async def closed() -> None:
        bus._inbox(EVENTS_OF_ORCHESTRATOR).link.close()  # noqa: SLF001

    def go_away(tx: Transaction, _: Sequence[Delivery]) -> None:
        def cut() -> None:
            namespace.server.faults.unauthorised = True
            bus._do(closed())  # noqa: SLF001

        tx.on_commit.append(cut)

    bus.send([added(1)])
    assert handled(store, bus, go_away) == [1]
    assert events(namespace) == ["member-added-1-0"]
    namespace.server.faults.unauthorised = False
    assert handled(store, bus, nothing) == []
    assert events(namespace) == []


def test_m6_what_cannot_be_settled_on_one_subscription_keeps_no_other_waiting(
    namespace: Namespace, store: Store
) -> None:
    side = Subscription(ORCHESTRATOR_EVENTS, "side")
    namespace.server.subscribe(side.topic, side.name)
    with namespace.another_process() as other:
        other.send([added(1)])
        pile = other.receive(side, 10)
        namespace.server.delete(side.topic, side.name)
        with store.transaction() as tx:
            other.complete(tx, pile)
        assert ids(received(other, 1)) == ["member-added-1-0"]
    assert [one.delivery_count for one in receive(namespace.bus)] == [2]


def test_m1_a_send_whose_answer_is_lost_is_repeated_under_the_same_id(
    namespace: Namespace, bus: ServiceBus, store: Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timedelta(seconds=SEND_SECONDS) < CLAIM_DURATION
    monkeypatch.setattr("matoolkit.bus.servicebus.bus.SEND_SECONDS", 0.3)
    relay = Relay(store, bus)
    namespace.server.faults.lost_sends = 1
    with store.transaction() as tx:
        relay.publish(tx, [added(1)])
    clock.advance(CLAIM_DURATION)
    assert relay.sweep() == 1
    assert relay.sweep() == 0
    assert events(namespace) == ["member-added-1-0"]


def test_m6_a_busy_namespace_counts_no_failure_of_a_message(
    namespace: Namespace, bus: ServiceBus, store: Store, clock: VirtualClock
) -> None:
    relay = Relay(store, bus)
    namespace.server.faults.busy = 12
    with store.transaction() as tx:
        relay.publish(tx, [added(1)])
    for _ in range(11):
        clock.advance(CLAIM_DURATION)
        relay.sweep()
    assert events(namespace) == []
    clock.advance(CLAIM_DURATION)
    assert relay.sweep() == 1
    assert events(namespace) == ["member-added-1-0"]


def test_m6_a_busy_namespace_is_left_alone_for_a_while(
    namespace: Namespace, bus: ServiceBus, clock: VirtualClock
) -> None:
    namespace.server.faults.busy = 2
    for pause in (timedelta(seconds=0.5), timedelta(seconds=1)):
        for _ in range(3):
            with pytest.raises(BusBusy) as busy:
                bus.send([added(1)])
            assert busy.value.transient
        clock.advance(pause)
    bus.send([added(1)])
    assert events(namespace) == ["member-added-1-0"]


def test_m8_a_message_that_is_delivered_twice_is_handled_and_settled_twice(
    namespace: Namespace, bus: ServiceBus, store: Store
) -> None:
    namespace.server.faults.doubled = 1
    bus.send([added(1)])
    assert handled(store, bus, nothing) == [2]
    assert events(namespace) == []


def test_m8_a_process_whose_clock_is_ahead_settles_its_messages(namespace: Namespace, bus: ServiceBus) -> None:
    """Defect: the SDK compares the end of a lock with the machine's clock, and does not ask the bus."""
    namespace.server.faults.behind = LOCK_DURATION.total_seconds() * 2
    bus.send([added(number) for number in range(4)])
    done, kept, aside, back = received(bus, 4)
    assert bus.renew([kept]) == [kept]
    assert bus.complete_now([done, kept]) == 2
    bus.dead_letter(aside, "Unreadable", "a test")
    assert events(namespace, dead=True) == [aside.message_id]
    bus.abandon([back])
    assert ids(received(bus, 1)) == [back.message_id]


def test_m8_a_process_whose_clock_is_behind_settles_nothing_that_is_no_longer_its_own(
    namespace: Namespace, bus: ServiceBus
) -> None:
    namespace.server.faults.behind = -LOCK_DURATION.total_seconds() * 2
    bus.send([added(1)])
    pile = received(bus, 1)
    namespace.server.expire(EVENTS_OF_ORCHESTRATOR.topic, EVENTS_OF_ORCHESTRATOR.name)
    assert bus.renew(pile) == []
    assert bus.complete_now(pile) == 0
    assert events(namespace) == ["member-added-1-0"]


def test_m8_a_message_that_is_late_is_received_when_it_comes(
    namespace: Namespace, bus: ServiceBus, clock: VirtualClock
) -> None:
    namespace.server.faults.late = 1
    bus.send([added(1)])
    assert receive(bus) == []
    clock.advance(timedelta(seconds=namespace.server.faults.late_by))
    assert ids(receive(bus)) == ["member-added-1-0"]


# Messages that the bus never takes


@pytest.mark.parametrize("bad", ["x" * 130, "member-added-2-0"], ids=["by the SDK", "by the namespace"])
def test_m1_a_message_that_is_refused_holds_up_no_other_and_is_put_aside_in_the_end(
    namespace: Namespace, bus: ServiceBus, store: Store, clock: VirtualClock, bad: str
) -> None:
    namespace.server.faults.refused_id = "member-added-2-0"
    relay = Relay(store, bus)
    with store.transaction() as tx:
        relay.publish(tx, [added(1), Outgoing(bad, MemberAdded(1, "u2", 1)), added(3)])
    assert sorted(map(str, events(namespace))) == ["member-added-1-0", "member-added-3-0"]
    for _ in range(MAX_TRIES):
        clock.advance(CLAIM_DURATION)
        relay.sweep()
    (letter,) = dead_letters(store)
    assert (letter.message_id, letter.reason) == (bad, "Undeliverable")


def test_a_message_that_is_refused_is_named_and_stops_no_later_one(namespace: Namespace, bus: ServiceBus) -> None:
    with pytest.raises(MessageRefused, match=f"message {'x' * 130}: .*128") as refused:
        bus.send([Outgoing("x" * 130, MemberAdded(1, "u2", 1))])
    assert not refused.value.transient
    bus.send([added(1)])
    assert events(namespace) == ["member-added-1-0"]


# What a person has to put right


def test_a_subscription_that_does_not_exist_is_named_with_what_to_do(bus: ServiceBus) -> None:
    missing, fine = bus.probe([jobs_of_worker("nobody"), jobs_of_worker("worker-01")])
    assert isinstance(missing, BusEntityMissing)
    assert missing.message.startswith("worker-jobs/worker-nobody does not exist")
    assert missing.transient
    assert "bus create" in (missing.hint or "")
    assert fine is None


def test_an_identity_without_rights_is_told_which_roles_it_needs(namespace: Namespace, clock: VirtualClock) -> None:
    namespace.server.faults.unauthorised = True
    with namespace.another_process() as other:
        with pytest.raises(BusSignInFailed) as refused:
            other.send([added(1)])
        assert refused.value.transient
        assert "Data Sender" in (refused.value.hint or "")
        namespace.server.faults.unauthorised = False
        clock.advance(timedelta(seconds=1))
        other.send([added(1)])


def test_a_namespace_that_nobody_serves_is_unavailable_and_the_key_is_nowhere(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.bus.servicebus.links.OPEN_SECONDS", 0.3)
    address = f"Endpoint=sb://localhost:1;SharedAccessKeyName=n;SharedAccessKey={KEY};UseDevelopmentEmulator=true;"
    bus = ServiceBus(Address(connection_string=SecretStr(address)))
    with caplog.at_level(logging.DEBUG), pytest.raises(BusUnavailable) as away:
        bus.send([added(1)])
    bus.stop()
    assert "localhost:1" in away.value.message
    assert KEY not in f"{away.value!r} {away.value.hint} {caplog.text} {bus._connection.address!r}"  # noqa: SLF001


@pytest.mark.parametrize("address", ["nonsense", f"Endpoint=;SharedAccessKey={KEY}", f"{KEY};{KEY}"])
def test_a_connection_string_that_cannot_be_read_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(BusAddressInvalid) as invalid:
        ServiceBus(Address(connection_string=SecretStr(address)))
    assert KEY not in str(invalid.value)


def test_a_connection_string_of_one_topic_is_refused_before_anything_is_sent(namespace: Namespace) -> None:
    address = f"{namespace.server.connection_string}EntityPath=orchestrator-events"
    with pytest.raises(BusAddressInvalid, match="only for orchestrator-events") as invalid:
        ServiceBus(Address(connection_string=SecretStr(address)))
    assert "of the namespace" in (invalid.value.hint or "")


@pytest.mark.parametrize("missing", ["azure.servicebus", "azure.identity.aio", "aiohttp"])
def test_without_the_library_the_command_to_install_it_is_said(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BusLibraryMissing) as refused:
        ServiceBus(Address(namespace="contoso.servicebus.windows.net"))
    assert refused.value.hint == "pip install 'matoolkit[azure]'"


def test_any_thread_may_use_it_at_any_time(bus: ServiceBus) -> None:
    """The worker receives in one thread while it settles in another."""
    bus.send([added(number) for number in range(120)])
    taken: list[str] = []
    lock = threading.Lock()

    def work() -> None:
        while len(taken) < 120:
            pile = receive(bus, 15)
            if not pile:
                bus.wait(EVENTS_OF_ORCHESTRATOR, 0.05)
            assert bus.complete_now(pile) == len(pile)
            with lock:
                taken.extend(ids(pile))

    in_threads([work, work, work])
    assert len(set(taken)) == len(taken) == 120


def test_m8_competing_processes_never_get_the_same_message(namespace: Namespace, bus: ServiceBus) -> None:
    bus.send([added(number) for number in range(200)])

    def take_all(one: ServiceBus) -> list[str]:
        taken: list[str] = []
        while namespace.server.messages("orchestrator-events", "orchestrator"):
            pile = receive(one, 20)
            assert one.complete_now(pile) == len(pile)
            taken += ids(pile)
        return taken

    with namespace.another_process() as other:
        here, there = in_threads([lambda: take_all(bus), lambda: take_all(other)])
    assert len({*here, *there}) == len(here) + len(there) == 200
