"""Rule O5: jobs that have not left are taken back; a job that a worker may have seen is not."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.bus.relay import CLAIM_DURATION, Relay
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import LOCK_DURATION, jobs_of_worker
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.ids import Kind
from matoolkit.store import Store, open_store
from matoolkit.store.executions import steps_by_id
from matoolkit.store.queue import NewQueued, enqueue, queue_lengths, remove_untouched
from matoolkit.store.steps import cancel_steps_of_batches
from matoolkit.store.upgrade import upgrade
from tests.databases import NOON
from tests.store.world import World

from .messages import ids, job

pytestmark = pytest.mark.both_executions

WORKER = jobs_of_worker("worker-01")
LATER = NOON + timedelta(days=1)


def withdraw(publisher: SqlBus | Relay, store: Store, *numbers: int) -> list[str]:
    with store.transaction() as tx:
        return publisher.withdraw(tx, [f"step-{number}-attempt-1" for number in numbers])


def test_o5_a_job_that_waits_is_taken_back(bus: SqlBus, store: Store) -> None:
    bus.send([job("worker-01", 1), job("worker-01", 2)])
    assert withdraw(bus, store, 1, 3) == ["step-1-attempt-1"]
    assert ids(bus.receive(WORKER, 10)) == ["step-2-attempt-1"]


def test_o5_a_job_that_was_received_is_not_taken_back_not_even_when_its_lock_ran_out(
    bus: SqlBus, store: Store, clock: VirtualClock
) -> None:
    bus.send([job("worker-01", 1), job("worker-01", 2)])
    pile = bus.receive(WORKER, 10)
    bus.abandon(pile[:1])
    assert withdraw(bus, store, 1, 2) == []
    clock.advance(LOCK_DURATION + timedelta(seconds=1))
    assert withdraw(bus, store, 1, 2) == []


def test_o5_only_the_jobs_that_are_named_are_taken_back(store: Store, bus: SqlBus, clock: VirtualClock) -> None:
    at, name = clock.now(), "step-1-attempt-1"
    queued = [NewQueued(topic, "somebody", name, "event", "{}", "{}", at, LATER) for topic in (WORKER.topic, "news")]
    with store.transaction() as tx:
        enqueue(tx, queued, at, forget_before=at)
        assert remove_untouched(tx, WORKER.topic, [name]) == [name]
    with store.reading() as tx:
        assert queue_lengths(tx) == {("news", "somebody"): 1}


def test_o5_taking_back_is_undone_with_its_transaction(bus: SqlBus, store: Store) -> None:
    bus.send([job("worker-01", 1)])
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        assert bus.withdraw(tx, ["step-1-attempt-1"]) == ["step-1-attempt-1"]
        raise ZeroDivisionError
    assert ids(bus.receive(WORKER, 10)) == ["step-1-attempt-1"]


@pytest.fixture
def far_bus(tmp_path: Path, clock: VirtualClock) -> Iterator[SqlBus]:
    far = open_store(f"sqlite:///{tmp_path / 'far.db'}", clock=clock)
    upgrade(far)
    yield SqlBus(far)
    far.close()


def test_o5_a_job_that_its_process_may_have_sent_before_it_died_is_not_taken_back(
    store: Store, far_bus: SqlBus, clock: VirtualClock
) -> None:
    relay = Relay(store, far_bus)
    with pytest.raises(SimulatedCrash), crashing("relay.after_send"), store.transaction() as tx:
        relay.publish(tx, [job("worker-01", 1)])
    assert withdraw(relay, store, 1) == []
    clock.advance(CLAIM_DURATION)
    assert withdraw(relay, store, 1) == []


def test_o5_work_whose_job_was_taken_back_waits_for_no_answer(bus: SqlBus, store: Store, clock: VirtualClock) -> None:
    world = World(store, clock)
    batch = world.batch()
    seen, unseen = world.steps(batch, world.phase(batch), world.members(batch, 2))
    with store.transaction() as tx:
        world.dispatched(tx, [seen, unseen])
        bus.publish(tx, [job("worker-01", seen)])
    bus.receive(WORKER, 1)
    with store.transaction() as tx:
        bus.publish(tx, [job("worker-01", unseen)])
    with store.transaction() as tx:
        cancelled = cancel_steps_of_batches(tx, [batch.id], world.now)
        assert withdraw_unsent(tx, bus, cancelled, Kind.STEP) == [unseen]
    with store.reading() as tx:
        assert [step.is_in_flight for step in steps_by_id(tx, [seen, unseen])] == [True, False]
