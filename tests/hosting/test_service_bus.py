"""Processes whose messages travel on Azure Service Bus (rules M1, M8, W1)."""

import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from matoolkit.bus.envelope import Envelope
from matoolkit.bus.relay import Relay
from matoolkit.bus.servicebus import Address, ServiceBus
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import WORKER_JOBS
from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.errors import BusLibraryMissing, BusUnavailable
from matoolkit.hosting.api import run_api
from matoolkit.hosting.orchestrator import run_orchestrator
from matoolkit.hosting.scheduler import run_scheduler
from matoolkit.hosting.worker import run_worker
from matoolkit.settings import Settings, WorkerSettings, bus_variables_of_worker, load_settings
from matoolkit.store import Store
from matoolkit.store.outbox import waiting_count
from matoolkit.system import open_bus
from tests.bus.messages import added, job
from tests.databases import Database
from tests.waiting import until

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus as Server

pytestmark = [pytest.mark.on("sqlite"), pytest.mark.waits]

NOWHERE = "sqlite:////there/is/no/such/folder/state.db"


def variables(server: "Server") -> dict[str, str]:
    return {
        "MATOOLKIT_BUS": "servicebus",
        "MATOOLKIT_SERVICE_BUS_CONNECTION_STRING": server.connection_string,
        "MATOOLKIT_SWEEP_SECONDS": "1",
    }


@contextmanager
def running(part: Callable[[threading.Event], object]) -> Iterator[None]:
    """Run a process in a thread until this is left."""
    stop = threading.Event()
    thread = threading.Thread(target=part, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()


def test_w1_a_worker_on_service_bus_needs_no_database_and_uses_the_topics_it_is_told(service_bus: "Server") -> None:
    for topic in ("work", "answers"):
        service_bus.create_topic(topic)
    service_bus.subscribe("work", "worker-w", "WorkerId = 'w'")
    service_bus.subscribe("answers", "orchestrator")
    settings = load_settings(Settings, {**variables(service_bus), "MATOOLKIT_DATABASE_URL": NOWHERE})
    worker = load_settings(WorkerSettings, {"JOBS_TOPIC_NAME": "work", "RESULTS_TOPIC_NAME": "answers"})
    address = Address(connection_string=SecretStr(service_bus.connection_string))
    sender = ServiceBus(address, topic_names={WORKER_JOBS: "work"})

    def answers() -> list[str | None]:
        return [one.message_id for one in service_bus.messages("answers", "orchestrator")]

    with running(lambda stop: run_worker(settings, worker, "w", stop)):
        sender.send([job("w", 1)])
        until(lambda: "result-step-1-attempt-1" in answers())
        until(lambda: service_bus.messages("work", "worker-w") == [])
    sender.stop()
    assert any((name or "").startswith("worker-hello") for name in answers())


@pytest.mark.parametrize(
    ("given", "bus", "namespace"),
    [
        ({}, "sql", None),
        ({"SERVICE_BUS_NAMESPACE": "own.servicebus.windows.net"}, "servicebus", "own.servicebus.windows.net"),
        (
            {
                "SERVICE_BUS_NAMESPACE": "own.servicebus.windows.net",
                "MATOOLKIT_BUS": "servicebus",
                "MATOOLKIT_SERVICE_BUS_CONNECTION_STRING": "Endpoint=sb://other/",
            },
            "servicebus",
            "own.servicebus.windows.net",
        ),
        (
            {"MATOOLKIT_BUS": "servicebus", "MATOOLKIT_SERVICE_BUS_NAMESPACE": "ours.servicebus.windows.net"},
            "servicebus",
            "ours.servicebus.windows.net",
        ),
    ],
)
def test_w1_a_workers_own_namespace_comes_first(given: dict[str, str], bus: str, namespace: str | None) -> None:
    settings = load_settings(Settings, bus_variables_of_worker(given))
    assert (settings.bus, settings.service_bus_namespace) == (bus, namespace)


class Unreachable:
    """A bus that is away."""

    def deliver(self, _envelopes: Sequence[Envelope]) -> None:
        raise BusUnavailable("gone")

    def unreached(self, _worker_ids: Collection[str]) -> Collection[str]:
        return ()


def left_behind(database: Database) -> None:
    """Leave a message in the outbox, as a process that died an hour ago."""
    store = database.open(VirtualClock(SystemClock().now() - timedelta(hours=1)))
    with store.transaction() as tx:
        Relay(store, Unreachable()).publish(tx, [added(1)])


@pytest.mark.parametrize(
    "run",
    [run_scheduler, run_orchestrator, lambda settings, stop: run_api(settings, "127.0.0.1", 0, stop)],
    ids=["scheduler", "orchestrator", "api"],
)
def test_m1_every_process_that_publishes_sends_what_another_left_behind(
    database: Database, service_bus: "Server", run: Callable[[Settings, threading.Event], None]
) -> None:
    service_bus.lay_out()
    left_behind(database)
    settings = load_settings(Settings, {**variables(service_bus), "MATOOLKIT_DATABASE_URL": database.url})
    store = database.open()

    def waiting() -> int:
        with store.reading() as tx:
            return waiting_count(tx)

    assert waiting() == 1
    with running(lambda stop: run(settings, stop)):
        until(lambda: waiting() == 0)


def test_m8_the_settings_choose_the_bus_and_what_publishes_on_it(store: Store, service_bus: "Server") -> None:
    near = open_bus(Settings(), store)
    assert isinstance(near.bus, SqlBus)
    assert near.publisher is near.bus
    far = open_bus(load_settings(Settings, variables(service_bus)), store)
    assert isinstance(far.bus, ServiceBus)
    assert far.publisher is far.outbox


def test_m8_without_the_library_a_process_does_not_start(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: found out at the first send, it would count against messages, and make dead letters of them."""
    monkeypatch.setitem(sys.modules, "azure.servicebus", None)
    settings = Settings(bus="servicebus", service_bus_namespace="contoso.servicebus.windows.net")
    with pytest.raises(BusLibraryMissing):
        open_bus(settings, store)
