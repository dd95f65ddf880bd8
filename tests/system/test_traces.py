"""Telemetry of a whole wave: through tick, orchestrator, worker and a simulated tenant, on both buses."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from matoolkit.admin.publishing import publish
from matoolkit.bus.consumer import Consumer
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.domain.states import BatchStatus
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.settings import Settings, WorkerSettings, load_settings
from matoolkit.store import Store
from matoolkit.store.batches import batches_page
from matoolkit.store.schema import bus_messages
from matoolkit.system import build_orchestrator, build_scheduler, build_worker, open_bus
from matoolkit.telemetry.metering import MEASURES
from matoolkit.worker.functions import built_in
from matoolkit.worker.masking import Masking
from matoolkit.worker.tenant import Tenant, TenantServer
from matoolkit.worker.tenant.faults import Fault
from tests.servers.otlp import Collector, Span, collecting

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus as Server

pytestmark = pytest.mark.on("sqlite")

MEMBERS = 3
SECRET = "Very-Secret-Password-1"
RUNBOOK = """
name: traced
data_source:
  type: sql
  connection: PEOPLE
  query: SELECT email, upn, nickname, moves_at FROM people
  primary_key: email
  batch_time_column: moves_at
phases:
  - name: cutover
    offset: T-0
    steps:
      - name: create
        worker_id: worker-01
        function: New-ExchangeMailUser
        params:
          DisplayName: "{{nickname}}"
          UserPrincipalName: "{{upn}}"
          MailNickname: "{{nickname}}"
          ExternalEmailAddress: "{{email}}"
          Password: secret:initial-password
          AccountEnabled: false
        output_params:
          UserId: Id
      - name: enable
        worker_id: worker-01
        function: Set-EntraUserEnabled
        params: {UserId: "{{UserId}}", Enabled: true}
"""


class Wave:
    """Everything in one thread, without pauses: a tick, then messages until the batch is completed."""

    def __init__(
        self, store: Store, clock: VirtualClock, settings: Settings, folder: Path, tenant: TenantServer
    ) -> None:
        self.store, self.settings, self.clock = store, settings, clock
        self.messaging = open_bus(settings, store)
        bus = self.messaging.bus
        environ = {"PEOPLE": f"sqlite:///{folder / 'people.db'}", "MATOOLKIT_SECRET_INITIAL_PASSWORD": SECRET}
        self.scheduler = build_scheduler(settings, store, self.messaging.publisher, environ, clock)
        orchestrator = build_orchestrator(settings, store, self.messaging.publisher)
        self.consumers = [
            Consumer(store, bus, subscription, orchestrator.handle)
            for subscription in (EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR)
        ]
        worker = WorkerSettings(simulated_tenant_url=tenant.url)
        self.worker = build_worker(bus, worker, "worker-01", built_in(), Masking(), environ, clock)
        self._add_people(folder / "people.db")

    def _add_people(self, file: Path) -> None:
        moves_at = f"{self.clock.now():%Y-%m-%d %H:%M:%S}"
        rows = [(f"p{n}@source.example", f"person{n}@contoso.example", f"person{n}", moves_at) for n in range(MEMBERS)]
        with closing(sqlite3.connect(file)) as people, people:
            people.execute("CREATE TABLE people (email, upn, nickname, moves_at)")
            people.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
        publish(self.store, RUNBOOK, by="ann", now=self.clock.now(), enable=True)

    def run(self) -> None:
        self.scheduler.tick()
        for _ in range(1000):
            if self.batch_status() is BatchStatus.COMPLETED:
                return
            if not sum(consumer.turn() for consumer in self.consumers) + self.worker.turn(20):
                self.messaging.bus.wait(RESULTS_OF_ORCHESTRATOR, 0.02)
        raise AssertionError("the wave did not end")

    def batch_status(self) -> BatchStatus:
        with self.store.reading() as tx:
            (batch,) = batches_page(tx, limit=10)
        return batch.status

    def close(self) -> None:
        self.worker.close()
        self.messaging.bus.stop()


@contextmanager
def wave_on(store: Store, clock: VirtualClock, folder: Path, variables: dict[str, str]) -> Iterator[Wave]:
    tenant = Tenant(clock)
    tenant.faults.add(Fault("throttle", "PATCH", times=1))
    with TenantServer(tenant) as server:
        wave = Wave(store, clock, load_settings(Settings, variables), folder, server)
        try:
            yield wave
        finally:
            wave.close()


@pytest.fixture(params=["sql", "servicebus"])
def variables(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings of a bus."""
    if request.param == "sql":
        return {}
    server: Server = request.getfixturevalue("service_bus")
    server.lay_out("worker-01")
    return {"MATOOLKIT_BUS": "servicebus", "MATOOLKIT_SERVICE_BUS_CONNECTION_STRING": server.connection_string}


@pytest.fixture
def collected(store: Store, clock: VirtualClock, tmp_path: Path, variables: dict[str, str]) -> Collector:
    """What was sent of a wave, once its process has ended."""
    with ExitStack() as stack:
        collector, address = stack.enter_context(collecting())
        environ = {"MATOOLKIT_TELEMETRY": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        wave = stack.enter_context(wave_on(store, clock, tmp_path, {**variables, **environ}))
        with telemetry_of(wave.settings, "up", watched=store, environ=environ):
            wave.run()
        return collector


def path_to_tick(collector: Collector, span: Span) -> list[Span]:
    """Follow parents, and the link of a trace's first span, from a span back to the tick."""
    by_id = {one.id: one for one in collector.spans}
    path = [span]
    while path[-1].name != "tick":
        before = path[-1].parent or next(iter(path[-1].links))
        path.append(by_id[before])
    return path


def calls_of(collector: Collector, job: Span) -> list[Span]:
    return [span for span in collector.spans if span.parent == job.id and "matoolkit.api" in span.about]


def test_one_trace_follows_a_step_from_its_tick_to_the_handling_of_its_answer(collected: Collector) -> None:
    created = collected.named("job New-ExchangeMailUser")
    assert len(created) == MEMBERS
    (tick,) = collected.named("tick")
    for job in created:
        names = [span.name for span in path_to_tick(collected, job)]
        assert names == ["job New-ExchangeMailUser", "handle orchestrator-events", "look at runbook", "tick"]
        assert job.trace == tick.trace, "one trace, from the tick to the job"
        assert {span.about["matoolkit.api"] for span in calls_of(collected, job)} >= {"Exchange"}
        back = [
            span for span in collected.named("handle worker-results") if job.id in span.links or span.parent == job.id
        ]
        assert [span.trace for span in back] == [tick.trace], "and back"


def test_the_next_step_begins_the_next_trace_which_is_linked(collected: Collector) -> None:
    enabled = collected.named("job Set-EntraUserEnabled")
    assert len(enabled) == MEMBERS
    (tick,) = collected.named("tick")
    for job in enabled:
        names = [span.name for span in path_to_tick(collected, job)]
        assert names[:3] == ["job Set-EntraUserEnabled", "send what follows", "handle worker-results"]
        assert job.trace != tick.trace
        assert {span.name for span in calls_of(collected, job)} == {"PATCH /v1.0/users/{}"}


def test_each_try_of_a_call_has_its_span_and_throttled_ones_are_counted(collected: Collector) -> None:
    tries = [span for span in collected.named("PATCH") if span.about["http.response.status_code"] == 429]
    assert [span.about["error.type"] for span in tries] == ["429"]
    assert collected.points["matoolkit.calls.throttled"] == [({"api": "Graph"}, 1.0)]


def test_a_job_says_which_one_it_is(collected: Collector) -> None:
    job = collected.named("job New-ExchangeMailUser")[0]
    number = job.about["matoolkit.step_execution_id"]
    assert job.about == {
        "matoolkit.job": f"step-{number}-attempt-1",
        "matoolkit.batch": 1,
        "matoolkit.worker": "worker-01",
        "matoolkit.function": "New-ExchangeMailUser",
        "matoolkit.runbook": "traced",
        "matoolkit.step_execution_id": number,
        "matoolkit.kind": "step",
        "matoolkit.attempt": 1,
    }
    assert {span.service for span in collected.spans} == {"matoolkit-up"}


def test_all_metrics_are_there_and_no_label_names_a_member(collected: Collector) -> None:
    points = collected.points
    assert points["matoolkit.steps"] == [({"runbook": "traced", "kind": "step", "outcome": "succeeded"}, 2 * MEMBERS)]
    assert {labels["function"] for labels, _ in points["matoolkit.job.duration"]} == {
        "New-ExchangeMailUser",
        "Set-EntraUserEnabled",
    }
    assert points["matoolkit.batches"] == [({"runbook": "traced", "status": "completed"}, 1.0)]
    assert points["matoolkit.phase.lag"] == [({}, 0.0)]
    assert [labels for labels, _ in points["matoolkit.tick.age"]] == [{"runbook": "traced"}]
    known = {measure.name: set(measure.labels) for measure in MEASURES}
    assert points.keys() <= known.keys()
    for name, samples in points.items():
        assert all(set(labels) == known[name] for labels, _ in samples)
        assert "person" not in str(samples)


def test_nothing_secret_and_nobodys_name_is_sent(collected: Collector) -> None:
    sent = b"".join(collected.bodies)
    for never in (SECRET, "person0", "p0@source.example", "Bearer"):
        assert never.encode() not in sent


def properties_of_events(wave: Wave, request: pytest.FixtureRequest) -> list[str]:
    """Return the properties of the messages that wait for the orchestrator."""
    if wave.settings.bus == "sql":
        with wave.store.reading() as tx:
            return list(tx.values(select(bus_messages.c.properties_json)))
    server: Server = request.getfixturevalue("service_bus")
    waiting = server.messages(EVENTS_OF_ORCHESTRATOR.topic, EVENTS_OF_ORCHESTRATOR.name)
    return [str(message.properties) for message in waiting]


def otel_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "Otel" in thread.name}


@pytest.mark.parametrize("telemetry", ["off", "otlp"])
def test_a_message_has_a_traceparent_beside_it_only_if_telemetry_is_on(
    store: Store,
    clock: VirtualClock,
    tmp_path: Path,
    variables: dict[str, str],
    telemetry: str,
    request: pytest.FixtureRequest,
) -> None:
    before = otel_threads()
    with (
        collecting() as (collector, address),
        wave_on(store, clock, tmp_path, {**variables, "MATOOLKIT_TELEMETRY": telemetry}) as wave,
    ):
        with telemetry_of(wave.settings, "up", watched=store, environ={"OTEL_EXPORTER_OTLP_ENDPOINT": address}):
            threads = otel_threads() - before
            wave.scheduler.tick()
        properties = properties_of_events(wave, request)
    is_on = telemetry == "otlp"
    assert properties
    assert all(("traceparent" in one) is is_on for one in properties)
    assert bool(threads) is is_on
    assert bool(collector.requests) is is_on
