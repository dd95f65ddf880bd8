"""Rule M7: dead letters of Service Bus are kept in `dead_letters`, once each, whatever happens in between."""

import logging
from datetime import timedelta

import pytest

from matoolkit.admin.deadletters import discard_dead_letter, resend_dead_letter
from matoolkit.bus.draining import KEPT, Drain, Letter
from matoolkit.bus.relay import Relay
from matoolkit.bus.servicebus import ServiceBus
from matoolkit.bus.topology import (
    EVENTS_OF_ORCHESTRATOR,
    RESULTS_OF_ORCHESTRATOR,
    TIME_TO_LIVE,
    UNCLAIMED_JOBS,
    jobs_of_worker,
)
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.messages import ResultStatus, WorkerJob, WorkerResult, correlation_of
from matoolkit.domain.states import StepStatus
from matoolkit.errors import BusEntityDisabled
from matoolkit.ids import Kind, reissued
from matoolkit.ports import Outgoing, Subscription
from matoolkit.store import Store
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from matoolkit.store.deadletters import DeadLetterRow
from matoolkit.store.schema import step_executions
from matoolkit.system import read_message
from tests.databases import NOON
from tests.store.world import World, put

from .messages import added, dead_letters, job
from .namespace import Namespace, bodies

# The state is beside the point here: one kind of database is enough.
pytestmark = [pytest.mark.on("sqlite"), pytest.mark.waits]

WORKER = jobs_of_worker("worker-01")


@pytest.fixture
def bus(namespace: Namespace, store: Store) -> ServiceBus:
    """A namespace, and a worker that the state knows."""
    with store.transaction() as tx:
        secret = '[{"name": "Password", "kind": "text", "is_mandatory": true, "is_secret": true}]'
        announce_functions(tx, "worker-01", [AnnouncedFunction("Set-It", secret)], tx.time())
    return namespace.bus


def put_aside(bus: ServiceBus, subscription: Subscription, message: Outgoing) -> None:
    bus.send([message])
    (received,) = bus.receive(subscription, 10)
    bus.dead_letter(received, "Poison", "nobody can do it")


def places(letters: list[DeadLetterRow]) -> list[tuple[str, str, str, str]]:
    return sorted((one.subscription, one.topic, one.message_id, one.reason) for one in letters)


def answer(number: int) -> Outgoing:
    name = f"step-{number}-attempt-1"
    return Outgoing(f"result-{name}", WorkerResult(name, ResultStatus.SUCCESS, NOON))


def test_m7_dead_letters_of_every_subscription_are_kept_and_gone_from_the_bus(
    namespace: Namespace, bus: ServiceBus, store: Store
) -> None:
    put_aside(bus, EVENTS_OF_ORCHESTRATOR, added(1))
    put_aside(bus, RESULTS_OF_ORCHESTRATOR, answer(2))
    put_aside(bus, WORKER, job("worker-01", 3))
    Drain(store, bus).sweep()
    kept = dead_letters(store)
    assert places(kept) == [
        ("orchestrator", "orchestrator-events", "member-added-1-0", "Poison"),
        ("orchestrator", "worker-results", "result-step-2-attempt-1", "Poison"),
        ("worker-worker-01", "worker-jobs", "step-3-attempt-1", "Poison"),
    ]
    assert {one.description for one in kept} == {"nobody can do it"}
    for subscription in (EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR, WORKER):
        assert bodies(namespace.server, subscription, dead=True) == []


def test_m7_a_crash_between_keeping_and_settling_makes_no_second_letter(
    namespace: Namespace, bus: ServiceBus, store: Store, clock: VirtualClock
) -> None:
    put_aside(bus, EVENTS_OF_ORCHESTRATOR, added(1))
    with pytest.raises(SimulatedCrash), crashing(KEPT.name):
        Drain(store, bus).sweep()
    assert len(dead_letters(store)) == 1
    assert bodies(namespace.server, EVENTS_OF_ORCHESTRATOR, dead=True) == ["member-added-1-0"]
    clock.advance(timedelta(minutes=2))
    Drain(store, bus).sweep()
    assert len(dead_letters(store)) == 1
    assert bodies(namespace.server, EVENTS_OF_ORCHESTRATOR, dead=True) == []


def test_m7_what_expired_is_kept_with_its_reason(
    namespace: Namespace, bus: ServiceBus, store: Store, clock: VirtualClock
) -> None:
    bus.send([job("worker-01", 1)])
    clock.advance(TIME_TO_LIVE + timedelta(seconds=1))
    assert bodies(namespace.server, WORKER) == []
    Drain(store, bus).sweep()
    assert [one.reason for one in dead_letters(store)] == ["TTLExpiredException"]


def test_w8_secrets_of_a_dead_job_are_masked(bus: ServiceBus, store: Store) -> None:
    name = "step-1-attempt-1"
    call = WorkerJob(name, 1, "worker-01", "Set-It", {"Password": "hunter2"}, correlation_of(1, Kind.STEP, "r", 1))
    put_aside(bus, WORKER, Outgoing(name, call))
    Drain(store, bus).sweep()
    (kept,) = dead_letters(store)
    assert "Password" in kept.body
    assert "hunter2" not in kept.body


def test_m7_a_letter_that_was_drained_can_be_resent_or_discarded(
    namespace: Namespace, bus: ServiceBus, store: Store
) -> None:
    put_aside(bus, EVENTS_OF_ORCHESTRATOR, added(1))
    put_aside(bus, EVENTS_OF_ORCHESTRATOR, added(2))
    Drain(store, bus).sweep()
    second, first = dead_letters(store)
    resent = resend_dead_letter(store, Relay(store, bus), read_message, first.id, by="anna")
    discard_dead_letter(store, second.id, by="anna")
    assert resent.message_id == "member-added-1-0-s1"
    assert bodies(namespace.server, EVENTS_OF_ORCHESTRATOR) == ["member-added-1-0-s1"]
    assert dead_letters(store) == []


def test_m8_a_job_that_no_worker_takes_is_made_visible(bus: ServiceBus, store: Store) -> None:
    bus.send([job("nobody", 1)])
    Drain(store, bus).sweep()
    (kept,) = dead_letters(store)
    assert (kept.subscription, kept.reason) == ("unclaimed", "NoSubscription")
    assert kept.description == "worker nobody has no subscription: run `matoolkit bus create --worker nobody`"


def test_m8_a_copy_of_a_job_whose_worker_has_a_subscription_fails_nothing(
    namespace: Namespace, bus: ServiceBus, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody added a worker and did not tell the rule of `unclaimed`."""
    with namespace.taking_everything(UNCLAIMED_JOBS), caplog.at_level(logging.WARNING):
        bus.send([job("worker-01", 1)])
        Drain(store, bus).sweep()
    assert dead_letters(store) == []
    assert bodies(namespace.server, UNCLAIMED_JOBS) == []
    assert bodies(namespace.server, WORKER) == ["step-1-attempt-1"]
    assert "run `matoolkit bus create`" in caplog.text


@pytest.fixture
def steps(store: Store, clock: VirtualClock) -> list[int]:
    """Two steps that wait for the results of their jobs."""
    world = World(store, clock)
    batch = world.batch()
    numbers = world.steps(batch, world.phase(batch), world.members(batch, 2))
    with store.transaction() as tx:
        world.dispatched(tx, numbers)
    return numbers


def test_m8_a_job_that_came_before_its_workers_subscription_is_sent_again(
    namespace: Namespace, bus: ServiceBus, store: Store, steps: list[int]
) -> None:
    """An operator created the subscription that the log asked for, before the sweep came."""
    bus.send([job("late", number) for number in steps])
    with namespace.subscribed("late") as late, namespace.another_process() as worker:
        Drain(store, bus).sweep()
        received = worker.receive(late, 10)
        assert [read_message(late.topic, one.message_type, one.body) for one in received] == [
            job("late", number).message for number in steps
        ]
        assert bodies(namespace.server, UNCLAIMED_JOBS) == []
        assert dead_letters(store) == []


def test_m8_a_job_that_nothing_waits_for_any_more_is_not_sent_again(
    namespace: Namespace, bus: ServiceBus, store: Store, steps: list[int]
) -> None:
    """A step was cancelled, or its next attempt is out."""
    cancelled, again = steps
    bus.send([job("late", number) for number in steps])
    with store.transaction() as tx:
        put(tx, step_executions, cancelled, status=StepStatus.CANCELLED)
        put(tx, step_executions, again, attempt=2, job_id=f"step-{again}-retry-2")
    with namespace.subscribed("late") as late:
        Drain(store, bus).sweep()
        assert bodies(namespace.server, late) == []
    assert bodies(namespace.server, UNCLAIMED_JOBS) == []


def test_m8_a_copy_of_a_job_that_is_waited_for_is_sent_again_once(
    namespace: Namespace, bus: ServiceBus, store: Store, steps: list[int]
) -> None:
    """The state cannot tell it from a job that came too early; workers do the same job twice, but not for ever."""
    number, _ = steps
    with namespace.taking_everything(UNCLAIMED_JOBS):
        bus.send([job("worker-01", number)])
        for _ in range(3):
            Drain(store, bus).sweep()
    name = f"step-{number}-attempt-1"
    assert bodies(namespace.server, WORKER) == [name, f"{name}-r1"]
    assert bodies(namespace.server, UNCLAIMED_JOBS) == []
    assert dead_letters(store) == []


def test_m7_a_job_that_was_sent_again_and_died_is_known_by_its_own_id(bus: ServiceBus, store: Store) -> None:
    """Otherwise its step would not fail, and its secrets would not be masked."""
    first = job("worker-01", 1)
    put_aside(bus, WORKER, Outgoing(reissued(first.message_id, 1), first.message))
    Drain(store, bus).sweep()
    assert [one.message_id for one in dead_letters(store)] == [first.message_id]


def test_m8_a_crash_between_sending_again_and_settling_sends_nothing_a_third_time(
    namespace: Namespace, bus: ServiceBus, store: Store, steps: list[int], clock: VirtualClock
) -> None:
    number, _ = steps
    bus.send([job("late", number)])
    with namespace.subscribed("late") as late:
        with pytest.raises(SimulatedCrash), crashing(KEPT.name):
            Drain(store, bus).sweep()
        clock.advance(timedelta(minutes=2))
        Drain(store, bus).sweep()
        assert bodies(namespace.server, late) == [f"step-{number}-attempt-1-r1"]
    assert bodies(namespace.server, UNCLAIMED_JOBS) == []


def test_m8_a_worker_leaves_alone_what_a_missing_rule_lets_in(namespace: Namespace, bus: ServiceBus) -> None:
    """A new subscription takes everything until its rule is there; answering would fail the step of another worker."""
    with namespace.taking_everything(WORKER):
        bus.send([job("worker-02", 1), job("worker-01", 2)])
    assert [one.message_id for one in bus.receive(WORKER, 10)] == ["step-2-attempt-1"]
    assert bodies(namespace.server, jobs_of_worker("worker-02")) == ["step-1-attempt-1"]


def test_m7_a_subscription_that_is_missing_stops_no_other(namespace: Namespace, bus: ServiceBus, store: Store) -> None:
    with store.transaction() as tx:
        announce_functions(tx, "a-new-one", [AnnouncedFunction("Do-It", "[]")], tx.time())
    put_aside(bus, WORKER, job("worker-01", 1))
    with namespace.another_process() as other:
        Drain(store, other).sweep()
        assert other.unreached(["worker-01", "a-new-one"]) == {"a-new-one"}
    assert len(dead_letters(store)) == 1


def test_m8_a_subscription_that_was_deleted_is_noticed_within_a_minute(
    namespace: Namespace, bus: ServiceBus, clock: VirtualClock
) -> None:
    with namespace.subscribed("fleeting"):
        assert bus.unreached(["fleeting"]) == set()
    clock.advance(timedelta(minutes=1))
    assert bus.unreached(["fleeting"]) == {"fleeting"}


def test_m8_a_disabled_subscription_is_there(namespace: Namespace, store: Store) -> None:
    """An operator pauses a worker so: its jobs wait, and its steps do not fail."""
    namespace.server.faults.disabled = "worker-jobs/Subscriptions/worker-worker-01"
    with namespace.another_process() as bus, namespace.taking_everything(UNCLAIMED_JOBS):
        assert bus.unreached(["worker-01"]) == set()
        with pytest.raises(BusEntityDisabled, match="worker-jobs/worker-worker-01 is disabled in Service Bus"):
            bus.receive(WORKER, 1)
        bus.send([job("worker-01", 1)])
        Drain(store, bus).sweep()
    assert dead_letters(store) == []
    assert bodies(namespace.server, WORKER) == ["step-1-attempt-1"]


def test_m7_a_fault_of_any_kind_in_one_subscription_stops_no_other(
    bus: ServiceBus, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_aside(bus, WORKER, job("worker-01", 1))
    letters = bus.letters

    def fails_for_events(subscription: Subscription, most: int, *, dead: bool) -> list[Letter]:
        if subscription == EVENTS_OF_ORCHESTRATOR:
            raise ZeroDivisionError
        return letters(subscription, most, dead=dead)

    monkeypatch.setattr(bus, "letters", fails_for_events)
    Drain(store, bus).sweep()
    assert len(dead_letters(store)) == 1
    assert "draining orchestrator fails, and is tried again: ZeroDivisionError" in caplog.text


def test_m7_a_runbook_that_cannot_be_read_stops_no_draining(
    bus: ServiceBus, store: Store, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An earlier release may have taken what this one refuses."""
    World(store, clock).batch()
    put_aside(bus, WORKER, job("worker-01", 1))
    drain = Drain(store, bus)
    for _ in range(2):
        drain.sweep()
    assert len(dead_letters(store)) == 1
    assert caplog.text.count("version 1 of runbook wave") == 1
