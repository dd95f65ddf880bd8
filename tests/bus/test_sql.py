"""What the bus in SQL tables does beyond the contract."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, make_dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import (
    DUPLICATE_WINDOW,
    EVENTS_OF_ORCHESTRATOR,
    LOCK_DURATION,
    RESULTS_OF_ORCHESTRATOR,
    TIME_TO_LIVE,
)
from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.domain.delivery import MAX_DELIVERIES
from matoolkit.errors import StoreBusy, StoreUnavailable
from matoolkit.ports import Received
from matoolkit.store import Store, queue
from matoolkit.store.deadletters import open_dead_letters
from matoolkit.store.schema import bus_messages, bus_recent_ids
from tests.databases import NOON, Database
from tests.threads import in_threads

from .messages import added, ids, job, receive

pytestmark = pytest.mark.both_executions


def test_the_order_of_the_fields_of_a_received_message_means_nothing(
    bus: SqlBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [field.name for field in fields(Received)]
    bus.send([added(1)])
    [before] = receive(bus)
    bus.abandon([before])
    monkeypatch.setattr(queue, "Received", make_dataclass("Received", reversed(names)))
    [after] = receive(bus)
    changed = {name for name in names if getattr(after, name) != getattr(before, name)}
    assert changed == {"lock_token", "delivery_count"}
    assert (before.delivery_count, after.delivery_count) == (1, 2)


def test_m8_two_subscriptions_of_one_name_get_the_messages_of_their_own_topics(bus: SqlBus) -> None:
    bus.send([added(1)])
    assert EVENTS_OF_ORCHESTRATOR.name == RESULTS_OF_ORCHESTRATOR.name
    assert bus.receive(RESULTS_OF_ORCHESTRATOR, 10) == []
    assert ids(receive(bus)) == ["member-added-1-0"]


def test_m8_a_message_whose_lock_ran_out_is_still_ours_while_nobody_else_has_it(
    bus: SqlBus, clock: VirtualClock
) -> None:
    bus.send([added(1)])
    pile = receive(bus)
    clock.advance(LOCK_DURATION * 3)
    assert bus.complete_now(pile) == len(pile)


@contextmanager
def unconfirmed_commits(store: Store) -> Iterator[None]:
    """Let every commit work, and its connection break before it says so."""
    commit = store.engine.dialect.do_commit

    def unconfirmed(connection: Any) -> None:
        commit(connection)
        raise StoreUnavailable("the connection broke")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store.engine.dialect, "do_commit", unconfirmed)
        yield


def test_m6_a_receipt_whose_commit_is_not_confirmed_is_no_delivery(
    bus: SqlBus, store: Store, clock: VirtualClock
) -> None:
    bus.send([added(1), added(2)])
    with unconfirmed_commits(store):
        for _ in range(MAX_DELIVERIES + 1):
            with pytest.raises(StoreUnavailable):
                bus.receive(EVENTS_OF_ORCHESTRATOR, 10)
            clock.advance(LOCK_DURATION * 2)
    bus.sweep()
    assert [message.delivery_count for message in receive(bus)] == [1, 1]
    assert receive(bus) == []


def test_m6_what_another_process_has_received_since_is_left_to_it(
    bus: SqlBus, store: Store, clock: VirtualClock
) -> None:
    bus.send([added(1)])
    with unconfirmed_commits(store), pytest.raises(StoreUnavailable):
        bus.receive(EVENTS_OF_ORCHESTRATOR, 10)
    clock.advance(LOCK_DURATION * 2)
    theirs = SqlBus(store).receive(EVENTS_OF_ORCHESTRATOR, 10)
    assert len(theirs) == 1
    assert receive(bus) == []
    assert bus.complete_now(theirs) == 1


def test_m8_a_clock_that_was_ahead_for_a_moment_stops_no_sweep(bus: SqlBus, store: Store, clock: VirtualClock) -> None:
    """The defect: old rows are looked for up to the first young one, and a row from the future was taken for young."""
    now = clock.now()
    clock.jump(now.replace(year=now.year + 14))
    bus.send([added(1)])
    clock.jump(now)
    bus.send([added(2)])
    clock.advance(TIME_TO_LIVE)
    bus.sweep()
    assert remembered(store) == ["member-added-1-0"]
    with store.reading() as tx:
        assert [letter.message_id for letter in open_dead_letters(tx)] == ["member-added-2-0"]


def test_m8_an_id_is_not_forgotten_too_early_because_others_have_another_order(
    bus: SqlBus, store: Store, clock: VirtualClock
) -> None:
    now, moment = clock.now(), timedelta(seconds=30)
    for number, at in ((1, now + moment), (2, now)):
        clock.jump(at)
        bus.send([added(number)])
        bus.complete_now(receive(bus))
    clock.advance(DUPLICATE_WINDOW + moment / 2)
    bus.sweep()
    assert "member-added-1-0" in remembered(store)
    bus.send([added(1), added(2)])
    assert ids(receive(bus)) == ["member-added-2-0"]
    clock.advance(DUPLICATE_WINDOW * 2)
    bus.sweep()
    assert remembered(store) == []


def remembered(store: Store) -> list[str]:
    with store.reading() as tx:
        return tx.values(select(bus_recent_ids.c.message_id).order_by(bus_recent_ids.c.message_id))


def test_m3_a_message_that_still_waits_is_not_published_twice_however_long_ago(
    bus: SqlBus, clock: VirtualClock
) -> None:
    bus.send([added(1)])
    clock.advance(DUPLICATE_WINDOW * 3)
    bus.send([added(1), added(2)])
    assert ids(receive(bus)) == ["member-added-1-0", "member-added-2-0"]


def test_whoever_takes_over_gets_what_a_dead_process_had_locked_at_once_but_nothing_before_its_time(
    bus: SqlBus, store: Store, clock: VirtualClock
) -> None:
    later = replace(added(2), not_before=clock.now() + LOCK_DURATION)
    bus.send([added(1), later])
    lost = receive(bus)
    successor = SqlBus(store)
    assert receive(successor) == []
    successor.take_over()
    assert ids(receive(successor)) == ["member-added-1-0"]
    assert bus.complete_now(lost) == 0


def test_m8_a_message_whose_lock_had_run_out_keeps_its_place_when_a_process_takes_over(
    bus: SqlBus, clock: VirtualClock
) -> None:
    bus.send([added(1)])
    receive(bus)
    clock.advance(LOCK_DURATION)
    for number in (2, 3):
        clock.advance(timedelta(seconds=1))
        bus.send([added(number)])
    clock.advance(timedelta(seconds=1))
    bus.take_over()
    assert ids(receive(bus, 1)) == ["member-added-1-0"]


def test_a_state_in_another_database_cannot_be_published_with(bus: SqlBus, database: Database) -> None:
    with pytest.raises(ValueError, match="Relay"), database.open().transaction() as tx:
        bus.publish(tx, [added(1)])


def test_a_sweep_buries_all_there_is_to_bury(
    bus: SqlBus, store: Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.bus.sql._SWEPT_AT_ONCE", 10)
    bus.send([added(number) for number in range(35)])
    clock.jump(NOON.replace(year=2027))
    bus.sweep()
    with store.reading() as tx:
        assert queue.queue_lengths(tx) == {}


def test_m8_a_sweep_buries_no_more_at_once_than_it_is_told(bus: SqlBus, store: Store, clock: VirtualClock) -> None:
    bus.send([added(number) for number in range(3)])
    with store.transaction() as tx:
        tx.execute(update(bus_messages).values(delivery_count=MAX_DELIVERIES))
        assert queue.bury_undeliverable(tx, clock.now(), 2) == 2
    bus.send([added(number) for number in (3, 4)])
    clock.advance(TIME_TO_LIVE)
    with store.transaction() as tx:
        assert queue.bury_expired(tx, clock.now(), 2, published_by=clock.now() - TIME_TO_LIVE) == 2
        assert queue.queue_lengths(tx) == {("orchestrator-events", "orchestrator"): 1}


def test_m8_only_what_can_be_received_now_is_worth_a_look(bus: SqlBus, store: Store, clock: VirtualClock) -> None:
    def is_worth_it() -> bool:
        with store.reading() as tx:
            return queue.has_due(tx, EVENTS_OF_ORCHESTRATOR.topic, EVENTS_OF_ORCHESTRATOR.name, clock.now())

    bus.send([job("worker-01"), added(1, clock.now() + LOCK_DURATION)])
    assert not is_worth_it(), "one is not for us, one not for now"
    clock.advance(LOCK_DURATION)
    assert is_worth_it()
    receive(bus)
    assert not is_worth_it(), "it is being handled"
    clock.advance(LOCK_DURATION)
    with store.transaction() as tx:
        tx.execute(update(bus_messages).values(delivery_count=MAX_DELIVERIES))
    assert not is_worth_it(), "it was delivered too often"
    with store.transaction() as tx:
        tx.execute(update(bus_messages).values(delivery_count=0))
    assert is_worth_it()
    clock.advance(TIME_TO_LIVE)
    assert not is_worth_it(), "it has expired"


def test_m8_the_clock_of_a_process_does_not_matter(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose clock is a minute ahead, or years behind, would take locked messages away from others."""
    first, second = SqlBus(database.open()), SqlBus(database.open())
    first.send([added(1)])
    assert len(receive(first)) == 1
    for year in (2020, 2040):
        monkeypatch.setattr(SystemClock, "now", lambda _, year=year: NOON.replace(year=year))
        assert receive(second) == []
        second.send([added(year)])
        assert ids(receive(first)) == [f"member-added-{year}-0"]


def test_publishers_of_the_same_ids_in_different_orders_do_not_wait_for_each_other(database: Database) -> None:
    buses = [SqlBus(database.open()) for _ in range(2)]

    def publish(bus: SqlBus, step: int) -> int:
        failures = 0
        for start in range(0, 10_000, 2000):
            try:
                bus.send([added(number) for number in range(start, start + 2000)][::step])
            except StoreBusy:
                failures += 1
        return failures

    assert in_threads([lambda: publish(buses[0], 1), lambda: publish(buses[1], -1)]) == [0, 0]
    assert len(receive(buses[0], 20_000)) == 10_000


def test_m8_an_old_id_that_is_swept_away_while_it_is_published_again_is_a_message(
    database: Database, clock: VirtualClock
) -> None:
    store, other = database.open(clock), SqlBus(database.open(clock))
    if store.dialect.is_file:
        pytest.skip("a file has one writer at a time")
    bus = SqlBus(store)
    bus.send([added(1)])
    bus.complete_now(receive(bus))
    clock.advance(DUPLICATE_WINDOW * 2)

    def sweep_first(statement: str, _parameters: object) -> None:
        if statement.startswith("DELETE FROM bus_recent_ids"):
            other.sweep()

    store.watchers.append(sweep_first)
    bus.send([added(1)])
    assert ids(receive(bus)) == ["member-added-1-0"]
