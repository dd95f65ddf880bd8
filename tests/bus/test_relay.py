"""Rule M1 where state and bus are apart: two databases, an outbox in the one and a bus in the other."""

import threading
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from matoolkit.bus.envelope import Envelope
from matoolkit.bus.relay import CLAIM_DURATION, MAX_TRIES, Relay
from matoolkit.bus.sql import SqlBus
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.errors import BusUnavailable, MessageTooLarge
from matoolkit.hosting.process import sweep_regularly
from matoolkit.store import Store, open_store
from matoolkit.store.outbox import waiting_count
from matoolkit.store.upgrade import upgrade
from tests.databases import Database
from tests.threads import in_threads

from .messages import added, dead_letters, ids, receive
from .state import change, changes


@pytest.fixture
def far_bus(tmp_path: Path, clock: VirtualClock) -> Iterator[SqlBus]:
    far = open_store(f"sqlite:///{tmp_path / 'far.db'}", clock=clock)
    upgrade(far)
    yield SqlBus(far)
    far.close()


@pytest.fixture
def relay(store: Store, far_bus: SqlBus) -> Relay:
    return Relay(store, far_bus)


class Willing:
    """A bus on which every worker has a subscription."""

    def unreached(self, _worker_ids: Collection[str]) -> Collection[str]:
        return ()


class Unreachable(Willing):
    """A bus that is down."""

    def deliver(self, envelopes: Sequence[Envelope]) -> None:
        raise BusUnavailable(f"{len(envelopes)} messages cannot be sent")


def publish(relay: Relay, store: Store, *numbers: int) -> None:
    with store.transaction() as tx:
        change(tx, [str(number) for number in numbers], tx.time())
        relay.publish(tx, [added(number) for number in numbers])


def waiting(store: Store) -> int:
    with store.reading() as tx:
        return waiting_count(tx)


def test_m1_a_process_sends_its_messages_right_after_the_commit(relay: Relay, store: Store, far_bus: SqlBus) -> None:
    publish(relay, store, 1, 2)
    assert ids(receive(far_bus)) == ["member-added-1-0", "member-added-2-0"]
    assert waiting(store) == 0


def test_m1_what_is_rolled_back_is_not_sent(relay: Relay, store: Store, far_bus: SqlBus) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        relay.publish(tx, [added(1)])
        raise ZeroDivisionError
    assert (receive(far_bus), waiting(store), relay.sweep()) == ([], 0, 0)


@pytest.mark.parametrize("point", ["store.after_commit", "relay.before_send", "relay.after_send"])
def test_m1_what_a_crash_leaves_behind_is_sent_by_a_sweep_under_the_same_id(
    relay: Relay, store: Store, far_bus: SqlBus, clock: VirtualClock, point: str
) -> None:
    with pytest.raises(SimulatedCrash), crashing(point):
        publish(relay, store, 1)
    assert changes(store) == ["1"]
    assert waiting(store) == 1
    assert relay.sweep() == 0, "the claim of the dead process has not run out yet"
    clock.advance(CLAIM_DURATION)
    assert relay.sweep() == 1
    assert waiting(store) == 0
    assert ids(receive(far_bus)) == ["member-added-1-0"]


def test_m1_when_the_bus_is_down_the_state_stands_and_the_messages_wait(
    store: Store, far_bus: SqlBus, clock: VirtualClock
) -> None:
    publish(Relay(store, Unreachable()), store, 1, 2)
    assert changes(store) == ["1", "2"]
    assert waiting(store) == 2
    clock.advance(CLAIM_DURATION)
    assert Relay(store, Unreachable()).sweep() == 2
    clock.advance(CLAIM_DURATION)
    assert Relay(store, far_bus).sweep() == 2
    assert ids(receive(far_bus)) == ["member-added-1-0", "member-added-2-0"]


def test_a_bus_that_is_down_is_told_once_however_often_messages_are_published(
    store: Store, far_bus: SqlBus, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Unreachable):
        is_down = True

        def deliver(self, envelopes: Sequence[Envelope]) -> None:
            if self.is_down:
                super().deliver(envelopes)
            far_bus.deliver(envelopes)

    carrier = Failing()
    relay = Relay(store, carrier)
    for number in range(20):
        publish(relay, store, number)
    carrier.is_down = False
    publish(relay, store, 20)
    began, ended = caplog.messages
    assert began.startswith("sending what waits in the outbox fails, and is tried again: ")
    assert ended.startswith("sending what waits in the outbox works again after ")


def test_m1_two_relays_at_once_send_each_message_once(
    store: Store, database: Database, far_bus: SqlBus, clock: VirtualClock
) -> None:
    sent: list[str] = []

    class Noting(Willing):
        def deliver(self, envelopes: Sequence[Envelope]) -> None:
            sent.extend(envelope.message_id for envelope in envelopes)
            far_bus.deliver(envelopes)

    publish(Relay(store, Unreachable()), store, *range(50))
    clock.advance(CLAIM_DURATION)
    relays = [Relay(database.open(clock), Noting()) for _ in range(4)]
    assert sum(in_threads([relay.sweep for relay in relays])) == 50
    assert sorted(sent) == sorted(f"member-added-{number}-0" for number in range(50))


def test_m1_a_relay_that_was_overtaken_does_not_remove_what_another_is_sending(
    store: Store, far_bus: SqlBus, clock: VirtualClock
) -> None:
    class Slow(Willing):
        """Sends, and takes longer than its claim lasts."""

        def deliver(self, envelopes: Sequence[Envelope]) -> None:
            clock.advance(CLAIM_DURATION)
            overtaker.sweep()
            far_bus.deliver(envelopes)

    overtaker = Relay(store, Unreachable())
    publish(Relay(store, Slow()), store, 1)
    assert waiting(store) == 1, "the overtaker has it now, and it could not send it"
    clock.advance(CLAIM_DURATION)
    Relay(store, far_bus).sweep()
    assert waiting(store) == 0
    assert ids(receive(far_bus)) == ["member-added-1-0"], "the same id twice is one message"


class Picky(Willing):
    """A bus that refuses one message, and takes all others."""

    def __init__(self, bus: SqlBus, refused: str) -> None:
        self.bus, self.refused = bus, refused

    def deliver(self, envelopes: Sequence[Envelope]) -> None:
        if any(envelope.message_id == self.refused for envelope in envelopes):
            raise MessageTooLarge(self.refused, 1, 0)
        self.bus.deliver(envelopes)


def test_m1_a_message_that_the_bus_refuses_holds_up_no_other_and_is_put_aside_in_the_end(
    store: Store, far_bus: SqlBus, clock: VirtualClock
) -> None:
    relay = Relay(store, Picky(far_bus, "member-added-2-0"))
    publish(relay, store, 1, 2, 3)
    assert ids(receive(far_bus)) == ["member-added-1-0", "member-added-3-0"]
    for _ in range(MAX_TRIES):
        clock.advance(CLAIM_DURATION)
        relay.sweep()
    assert waiting(store) == 0
    (letter,) = dead_letters(store)
    assert (letter.message_id, letter.reason) == ("member-added-2-0", "Undeliverable")


def test_m1_two_piles_of_one_transaction_leave_together_and_in_order(
    relay: Relay, store: Store, far_bus: SqlBus
) -> None:
    with store.transaction() as tx:
        relay.publish(tx, [added(2)])
        relay.publish(tx, [added(1)])
    assert ids(receive(far_bus)) == ["member-added-2-0", "member-added-1-0"]


def test_m1_whatever_the_bus_raises_the_committed_state_is_no_failure(store: Store) -> None:
    class Broken(Willing):
        def deliver(self, envelopes: Sequence[Envelope]) -> None:
            raise OSError(f"the network is down, {len(envelopes)} messages wait")

    publish(Relay(store, Broken()), store, 1)
    assert (changes(store), waiting(store)) == (["1"], 1)


def test_leftovers_are_sent_by_a_timer_that_survives_failures(
    relay: Relay, store: Store, far_bus: SqlBus, clock: VirtualClock
) -> None:
    publish(Relay(store, Unreachable()), store, 1)
    clock.advance(CLAIM_DURATION)
    stop, calls = threading.Event(), count()

    def sweep() -> None:
        if next(calls) == 0:
            raise ZeroDivisionError
        relay.sweep()
        stop.set()

    sweep_regularly([sweep, far_bus.sweep], 0.001, stop)
    assert ids(receive(far_bus)) == ["member-added-1-0"]


def test_a_sweep_that_fails_again_and_again_is_told_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    stop, calls = threading.Event(), count()

    def sweep() -> None:
        if next(calls) < 20:
            raise ZeroDivisionError
        stop.set()

    sweep_regularly([sweep], 0.001, stop)
    began, ended = caplog.records
    assert began.getMessage().startswith("a sweep fails, and is tried again: ZeroDivisionError")
    assert began.exc_info is not None
    assert ended.getMessage().startswith("a sweep works again")
