"""Piles that a host settles all or nothing (rule M6): no message makes a call raise, and none spoils another's."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import text

from matoolkit.bus.draining import Letter
from matoolkit.bus.envelope import sealed
from matoolkit.bus.handed import MOST_TRIES, PATIENCE_SECONDS, HandedPiles
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, LOCK_DURATION
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.errors import StoreError, StoreUnavailable
from matoolkit.ports import Delivery, Received
from matoolkit.store import Store
from matoolkit.store.sql.transaction import Transaction
from tests.databases import NOON

from .messages import added, dead_letters
from .state import changes
from .test_consumer import Handler

EVERYBODY = [f"user{number}" for number in range(100)]


def pile(*numbers: int, deliveries: int = 1) -> list[Letter]:
    """Return messages as a host hands them over."""
    envelopes = sealed([added(number) for number in numbers])
    return [
        Letter(
            Received(EVENTS_OF_ORCHESTRATOR, "", place, one.message_id, one.message_type, one.body, deliveries),
            one.properties_json,
            NOON,
        )
        for place, one in enumerate(envelopes)
    ]


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def piles(store: Store, handler: Handler, clock: VirtualClock) -> HandedPiles:
    return HandedPiles(store, EVENTS_OF_ORCHESTRATOR, handler, clock)


def test_m4_a_pile_is_handled_in_one_commit(piles: HandedPiles, store: Store, handler: Handler) -> None:
    piles.handle(pile(*range(100)))
    assert handler.piles == [100]
    assert changes(store) == sorted(EVERYBODY)


def test_m6_a_message_that_fails_is_tried_alone_three_times_and_then_kept(
    piles: HandedPiles, store: Store, handler: Handler
) -> None:
    handler.poison = {"user7": ZeroDivisionError("broken")}
    piles.handle(pile(*range(100)))
    assert changes(store) == sorted({*EVERYBODY} - {"user7"})
    assert handler.piles == [100, *[1] * (100 + MOST_TRIES - 1)]
    (letter,) = dead_letters(store)
    assert (letter.message_id, letter.reason) == ("member-added-7-0", "HandlingFailed")
    assert letter.description == "ZeroDivisionError: broken"
    assert (letter.topic, letter.subscription) == (EVENTS_OF_ORCHESTRATOR.topic, EVENTS_OF_ORCHESTRATOR.name)


def test_m6_a_message_that_works_at_the_second_try_is_no_dead_letter(store: Store, clock: VirtualClock) -> None:
    tries: list[int] = []

    def fail_first(_tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        tries.append(len(deliveries))
        if len(tries) < MOST_TRIES:
            raise ZeroDivisionError

    HandedPiles(store, EVENTS_OF_ORCHESTRATOR, fail_first, clock).handle(pile(1))
    assert (tries, dead_letters(store)) == ([1] * MOST_TRIES, [])


def test_m6_a_pile_of_nothing_but_failures_raises_nothing(piles: HandedPiles, store: Store, handler: Handler) -> None:
    handler.poison = {f"user{number}": ZeroDivisionError("broken") for number in range(5)}
    piles.handle(pile(*range(5)))
    assert len(dead_letters(store)) == 5


def test_m6_a_message_that_cannot_be_read_is_kept_at_once(piles: HandedPiles, store: Store, handler: Handler) -> None:
    letters = pile(1, 2)
    broken = replace(letters[0].received, body="{no JSON \0")
    piles.handle([replace(letters[0], received=broken), letters[1]])
    assert (changes(store), handler.piles) == (["user2"], [1])
    (letter,) = dead_letters(store)
    assert letter.reason == "Unreadable"


def test_m6_the_same_message_twice_in_a_pile_is_kept_once(piles: HandedPiles, store: Store, handler: Handler) -> None:
    handler.poison = {"user1": ZeroDivisionError("broken")}
    piles.handle(pile(1, 1, 2))
    assert changes(store) == ["user2"]
    assert len(dead_letters(store)) == 1


def test_m6_a_message_that_was_kept_and_comes_again_is_kept_once(
    piles: HandedPiles, store: Store, handler: Handler
) -> None:
    """The host gives a pile back whole if the database goes away after the dead letter was kept."""
    handler.poison = {"user1": ZeroDivisionError("broken")}
    piles.handle(pile(1))
    piles.handle(pile(1, deliveries=2))
    assert len(dead_letters(store)) == 1


class Flaky:
    """A database that is away for a number of tries."""

    def __init__(self, handler: Handler, away: float, clock: VirtualClock) -> None:
        self._handler, self._back_at, self._clock = handler, clock.monotonic() + away, clock

    def __call__(self, tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        if self._clock.monotonic() < self._back_at:
            raise StoreUnavailable("gone")
        self._handler(tx, deliveries)


def test_m6_a_call_waits_for_a_database_that_comes_back_soon(
    store: Store, handler: Handler, clock: VirtualClock
) -> None:
    """Giving the pile back at once would use up its ten deliveries in seconds."""
    HandedPiles(store, EVENTS_OF_ORCHESTRATOR, Flaky(handler, 30, clock), clock).handle(pile(*range(5)))
    assert len(changes(store)) == 5


def test_m6_a_database_that_stays_away_makes_the_call_raise_before_the_locks_end(
    store: Store, handler: Handler, clock: VirtualClock
) -> None:
    began = clock.monotonic()
    with pytest.raises(StoreUnavailable):
        HandedPiles(store, EVENTS_OF_ORCHESTRATOR, Flaky(handler, 3600, clock), clock).handle(pile(*range(5)))
    took = clock.monotonic() - began
    assert PATIENCE_SECONDS / 2 < took < LOCK_DURATION.total_seconds() - 10
    assert (changes(store), dead_letters(store)) == ([], [])


def refused(tx: Transaction, _deliveries: Sequence[Delivery]) -> None:
    """Do what no database does."""
    tx.execute(text("SELECT * FROM nothing_here"))


def test_m6_an_unknown_fault_of_the_database_that_hits_every_message_makes_none_a_dead_letter(
    store: Store, clock: VirtualClock
) -> None:
    with pytest.raises(StoreError):
        HandedPiles(store, EVENTS_OF_ORCHESTRATOR, refused, clock).handle(pile(*range(100)))
    assert dead_letters(store) == []


def test_m6_two_messages_that_the_database_refuses_do_not_bring_the_others_again(
    piles: HandedPiles, store: Store, handler: Handler
) -> None:
    """Those that worked speak for the database as long as the call lasts: no other messages come that could."""
    handler.poison = {"user7": StoreError("refused"), "user8": StoreError("refused")}
    piles.handle(pile(*range(100)))
    assert changes(store) == sorted({*EVERYBODY} - {"user7", "user8"})
    assert {letter.message_id for letter in dead_letters(store)} == {"member-added-7-0", "member-added-8-0"}
    assert handler.piles.count(1) == 98 + 2 * MOST_TRIES


def test_m6_messages_that_come_one_by_one_and_all_fail_become_no_dead_letters(
    store: Store, clock: VirtualClock
) -> None:
    piles = HandedPiles(store, EVENTS_OF_ORCHESTRATOR, refused, clock)
    piles.handle(pile(0))
    for number in range(1, 5):
        with pytest.raises(StoreError):
            piles.handle(pile(number))
    assert len(dead_letters(store)) == 1, "the first of them could be its own fault"


def test_m6_trouble_in_the_middle_of_a_pile_that_is_tried_alone_keeps_what_is_done(
    store: Store, handler: Handler, clock: VirtualClock
) -> None:
    handler.poison = {"user0": ZeroDivisionError("broken"), "user3": StoreUnavailable("gone")}
    piles = HandedPiles(store, EVENTS_OF_ORCHESTRATOR, handler, clock)
    with pytest.raises(StoreUnavailable):
        piles.handle(pile(*range(5)))
    done = changes(store)
    handler.poison.pop("user3")
    piles.handle(pile(*range(5), deliveries=2))
    assert {*done} <= {*changes(store)} == {"user1", "user2", "user3", "user4"}


@pytest.mark.parametrize(("point", "done"), [("consumer.handled", []), ("store.after_commit", ["user1", "user2"])])
def test_m1_a_call_that_is_cut_off_has_done_all_or_nothing(
    piles: HandedPiles, store: Store, point: str, done: Sequence[str]
) -> None:
    with pytest.raises(SimulatedCrash), crashing(point):
        piles.handle(pile(1, 2))
    assert changes(store) == done


def test_m6_what_was_delivered_often_goes_alone(piles: HandedPiles, handler: Handler) -> None:
    """It may have killed the process each time."""
    piles.handle(pile(1, 2, 3, deliveries=3))
    assert handler.piles == [1, 1, 1]
