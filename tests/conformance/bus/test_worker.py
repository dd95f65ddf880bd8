"""W1: a worker takes jobs in piles, and publishes each result before it settles the job."""

import pytest

from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import LOCK_DURATION as LOCK
from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR, WORKER_JOBS, jobs_of_worker
from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.messages import Correlation, WorkerJob, WorkerResult
from matoolkit.ids import Kind
from matoolkit.ports import Outgoing
from matoolkit.store import Store
from matoolkit.store.deadletters import open_dead_letters
from matoolkit.store.queue import NewQueued, enqueue
from matoolkit.system import build_worker
from matoolkit.worker.functions import Registry
from matoolkit.worker.runner import Worker


def job(number: int, function: str = "Echo") -> Outgoing:
    correlation = Correlation(number, Kind.STEP, "wave", 1)
    name = f"step-{number}-attempt-1"
    return Outgoing(name, WorkerJob(name, 1, "worker-01", function, {"n": number}, correlation))


def results(bus: SqlBus) -> list[WorkerResult]:
    received = bus.receive(RESULTS_OF_ORCHESTRATOR, 100)
    read = [decode(one.subscription.topic, one.message_type, one.body) for one in received]
    return [message for message in read if isinstance(message, WorkerResult)]


@pytest.fixture
def worker(bus: SqlBus, clock: VirtualClock) -> Worker:
    return build_worker(bus, "worker-01", Registry({"Echo": dict}), clock)


def test_w1_every_job_of_a_pile_is_answered_and_settled(bus: SqlBus, worker: Worker) -> None:
    bus.send([job(1), job(2), job(3, "Nobody")])
    assert worker.turn() == 3
    assert [(one.job_id, str(one.status)) for one in results(bus)] == [
        ("step-1-attempt-1", "Success"),
        ("step-2-attempt-1", "Success"),
        ("step-3-attempt-1", "Failure"),
    ]
    assert worker.turn() == 0


def test_w1_it_takes_no_more_than_asked_for(bus: SqlBus, worker: Worker) -> None:
    bus.send([job(number) for number in range(1, 6)])
    assert [worker.turn(2), worker.turn(2), worker.turn(2)] == [2, 2, 1]


def test_w1_a_worker_that_dies_before_it_settles_has_answered_and_answers_again(
    bus: SqlBus, worker: Worker, clock: VirtualClock
) -> None:
    bus.send([job(1)])
    with crashing("worker.answered"), pytest.raises(SimulatedCrash):
        worker.turn()
    assert len(results(bus)) == 1
    clock.advance(2 * LOCK)
    assert worker.turn() == 1
    assert worker.turn() == 0


def test_what_is_no_job_is_put_aside(bus: SqlBus, store: Store, worker: Worker, clock: VirtualClock) -> None:
    name = jobs_of_worker("worker-01").name
    for number, body in enumerate(("{", "[]", "{}")):
        with store.transaction() as tx:
            at, end = clock.now(), clock.now() + LOCK
            new = NewQueued(WORKER_JOBS, name, f"bad-{number}", "worker-job", body, "{}", at, end)
            enqueue(tx, [new], at, forget_before=at)
    bus.send([job(1)])
    assert worker.turn() == 4
    assert len(results(bus)) == 1
    with store.reading() as tx:
        assert [letter.reason for letter in open_dead_letters(tx)] == ["Unreadable"] * 3
