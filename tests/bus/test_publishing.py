"""Rule M1: a state change and the messages it causes are one transaction."""

from collections.abc import Callable

import pytest

from matoolkit.bus.relay import Relay
from matoolkit.bus.sql import SqlBus
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.store import Store, open_store
from tests.databases import Database

from .messages import added, ids, receive
from .state import change, changes

pytestmark = pytest.mark.both_executions


def test_m1_messages_are_published_when_the_transaction_commits_and_not_before(
    bus: SqlBus, store: Store, database: Database, clock: VirtualClock
) -> None:
    other = SqlBus(database.open(clock, patience_seconds=0.1))
    with store.transaction() as tx:
        change(tx, ["one"], clock.now())
        bus.publish(tx, [added(1)])
        if database.kind == "postgresql":
            assert receive(other) == []
    assert ids(receive(other)) == ["member-added-1-0"]


def test_m1_what_is_rolled_back_publishes_nothing(bus: SqlBus, store: Store, clock: VirtualClock) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        change(tx, ["one"], clock.now())
        bus.publish(tx, [added(1)])
        raise ZeroDivisionError
    assert receive(bus) == []
    # The id was not used up by the attempt.
    bus.send([added(1)])
    assert ids(receive(bus)) == ["member-added-1-0"]


def test_m1_nothing_is_published_or_taken_back_in_a_transaction_of_another_database(bus: SqlBus, store: Store) -> None:
    other = open_store("sqlite://")
    with other.transaction() as tx:
        for publisher in (bus, Relay(store, bus)):
            with pytest.raises(ValueError, match="another database"):
                publisher.publish(tx, [added(1)])
        with pytest.raises(ValueError, match="another database"):
            bus.withdraw(tx, ["step-1-attempt-1"])
    assert receive(bus) == []


@pytest.mark.parametrize(("point", "survives"), [("store.before_commit", False), ("store.after_commit", True)])
def test_m1_a_crash_leaves_both_the_state_and_the_message_or_neither(
    bus: SqlBus, store: Store, clock: VirtualClock, point: str, survives: bool
) -> None:
    """Defect: published before the commit, a message tells of a state that never was."""
    with pytest.raises(SimulatedCrash), crashing(point), store.transaction() as tx:
        change(tx, ["one"], clock.now())
        bus.publish(tx, [added(1)])
    assert bool(changes(store)) is survives
    assert bool(receive(bus)) is survives


def test_m4_the_number_of_statements_does_not_grow_with_the_pile(
    bus: SqlBus, store: Store, statements: Callable[[], list[str]]
) -> None:
    def statements_for(first: int, count: int) -> int:
        statements()
        bus.send([added(number) for number in range(first, first + count)])
        pile = receive(bus, count)
        assert len(bus.renew(pile)) == bus.complete_now(pile) == count
        return len(statements())

    assert statements_for(0, 3) == statements_for(100, 700)
