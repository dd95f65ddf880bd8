"""Rule M7: dead letters of Service Bus are kept in `dead_letters`, once each, whatever happens in between."""

import logging
from datetime import timedelta

import pytest

from matoolkit.admin.deadletters import discard_dead_letter, resend_dead_letter
from matoolkit.bus.draining import KEPT, Drain
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
from matoolkit.ids import Kind
from matoolkit.ports import Outgoing, Subscription
from matoolkit.store import Store
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from matoolkit.store.deadletters import DeadLetterRow
from matoolkit.system import read_message
from tests.databases import NOON

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
        assert other.reaches("worker-01")
        assert not other.reaches("a-new-one")
    assert len(dead_letters(store)) == 1
