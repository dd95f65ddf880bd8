"""The sample over Service Bus, with scheduler, orchestrator and admin API as function apps (rules M1, M6, M8, T10)."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import azure.functions as func
import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from matoolkit.bus.draining import Drain
from matoolkit.bus.relay import Relay
from matoolkit.bus.servicebus import ServiceBus
from matoolkit.bus.servicebus.inbox import MOST_AT_ONCE
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR, jobs_of_worker, subscriptions
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.states import BatchStatus
from matoolkit.doors.entra import Entra
from matoolkit.hosting.functions import api
from matoolkit.hosting.functions.api import api_app
from matoolkit.hosting.functions.orchestrator import orchestrator_app
from matoolkit.hosting.functions.scheduler import scheduler_app
from matoolkit.hosting.functions.starting import Opened
from matoolkit.settings import Settings, load_settings
from matoolkit.store import Store
from matoolkit.system import Messaging, service_bus_address
from tests.api.test_auth import APP, TENANT, Keys, signed
from tests.databases import Database
from tests.servers.functions_host import FunctionsHost, Listener
from tests.servers.http import served
from tests.system.migration import COLUMNS, SAMPLE, Migration, migration, on_sql, wanted_end_state
from tests.system.wave import counted

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus as Server

pytestmark = [pytest.mark.waits, pytest.mark.on("sqlite")]

PEOPLE = 4
SECRET = "Correct-Horse-Battery-9"
WORKERS = ("worker-01", "worker-source")


class Apps:
    """The three function apps, each with a state and a bus of its own, and the listeners of the host."""

    def __init__(self, database: Database, server: "Server", clock: VirtualClock, environ: dict[str, str]) -> None:
        self._database, self._server, self._clock = database, server, clock
        self._environ = {
            "MATOOLKIT_DATABASE_URL": database.url,
            "MATOOLKIT_BUS": "servicebus",
            "MATOOLKIT_SERVICE_BUS_CONNECTION_STRING": server.connection_string_of("SendAndListen"),
            "MATOOLKIT_ENTRA_TENANT_ID": TENANT,
            "MATOOLKIT_ENTRA_CLIENT_ID": APP,
            **environ,
        }
        self._stack = ExitStack()
        self._client = self._stack.enter_context(ServiceBusClient.from_connection_string(server.connection_string))
        self.api = self._loaded(api_app)
        self.begin_scheduler()
        self.begin_orchestrator()

    def begin_scheduler(self) -> None:
        """Load the app anew, as in a new process."""
        self.scheduler = self._loaded(scheduler_app)

    def begin_orchestrator(self) -> None:
        """Load the app anew, as in a new process."""
        self.orchestrator = self._loaded(orchestrator_app)
        self.listeners = [
            Listener(self.orchestrator, name, self._client, MOST_AT_ONCE) for name in ("events", "results")
        ]
        for listener in self.listeners:
            self._stack.callback(listener.close)

    def bus(self) -> ServiceBus:
        bus = ServiceBus(service_bus_address(load_settings(Settings, self._environ)), clock=self._clock)
        self._stack.callback(bus.stop)
        return bus

    def send(self, topic: str, body: str) -> None:
        with self._client.get_topic_sender(topic) as sender:
            sender.send_messages(ServiceBusMessage(body))

    def close(self) -> None:
        self._stack.close()

    def _loaded(self, app: Callable[..., func.FunctionApp]) -> FunctionsHost:
        return FunctionsHost(app(self._environ, self._clock, self._opened))

    def _opened(self, _settings: Settings) -> Opened:
        """Open a state and a bus on the virtual clock."""
        store, bus = self._database.open(self._clock), self.bus()
        relay = Relay(store, bus)
        return Opened(store, Messaging(bus, relay, relay, Drain(store, bus)))


class MigrationOnFunctions:
    """The sample with its tenants and workers; only the apps do what scheduler, orchestrator and API do."""

    def __init__(self, moving: Migration, apps: Apps, server: "Server") -> None:
        self.moving, self.apps, self._server = moving, apps, server
        self.crashes = 0
        for worker in moving.workers:
            worker.close()
        moving.workers = [moving.new_worker(name, apps.bus()) for name in moving.urls]

    def go_on(self, *, crash: bool = False, **duration: float) -> None:
        """Let time pass, timers ring, and messages come; with `crash` the first call dies after its commit."""
        self.moving.clock.advance(timedelta(**duration))
        apps = self.apps
        for name in ("tick", "sweep"):
            apps.scheduler.timer(name)
        for host in (apps.orchestrator, apps.api):
            host.timer("sweep")
        while self._left():
            with crashing("store.after_commit") if crash and not self.crashes else nullcontext():
                self._deliver()
            for worker in self.moving.workers:
                worker.turn(20)

    def _deliver(self) -> None:
        try:
            for listener in self.apps.listeners:
                listener.turn()
        except SimulatedCrash:
            # The process is gone, the locks of its pile run out, and another process begins.
            self.crashes += 1
            self.apps.begin_orchestrator()
            for subscription in (EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR):
                self._server.expire(subscription.topic, subscription.name)

    def _left(self) -> list[Any]:
        places = [EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR, *map(jobs_of_worker, WORKERS)]
        return [one for place in places for one in self._server.messages(place.topic, place.name)]

    def ask(self, method: str, path: str, content: Any) -> Any:
        """Ask the admin API as a person who is signed in."""
        headers = {"Authorization": f"Bearer {signed()}", "Content-Type": "application/json"}
        status, _, body = self.apps.api.request(method, path, headers, json.dumps(content).encode())
        assert status < 300, body
        return json.loads(body)

    def publish(self) -> None:
        with closing(sqlite3.connect(self.moving.place / "people.db")) as people, people:
            people.execute(f"CREATE TABLE people ({', '.join(COLUMNS)})")
            rows = [self.moving.person(number) for number in range(PEOPLE)]
            people.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        self.ask("POST", "/api/runbooks", {"yamlContent": on_sql(SAMPLE)})
        self.ask("PUT", "/api/runbooks/user-migration/automation", {"enabled": True})


@pytest.fixture
def sample(
    database: Database,
    store: Store,
    clock: VirtualClock,
    service_bus: "Server",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MigrationOnFunctions]:
    service_bus.reset(clock)
    service_bus.lay_out(*WORKERS)
    service_bus.subscribe("worker-jobs", "unclaimed", "1=0")
    environ = {"PEOPLE": f"sqlite:///{tmp_path / 'people.db'}"}
    with ExitStack() as stack:
        keys = stack.enter_context(served(Keys()))
        monkeypatch.setattr(api, "sign_in_for", lambda *_: Entra(TENANT, APP, clock, keys_url=f"{keys}/keys"))
        moving = stack.enter_context(migration(store, clock, tmp_path, {"MATOOLKIT_SECRET_INITIAL_PASSWORD": SECRET}))
        apps = Apps(database, service_bus, clock, environ)
        stack.callback(apps.close)
        yield MigrationOnFunctions(moving, apps, service_bus)


def test_the_sample_runs_to_its_end_and_calls_that_die_after_a_commit_repeat_nothing(
    sample: MigrationOnFunctions, service_bus: "Server", store: Store
) -> None:
    sample.publish()
    with pytest.raises(SimulatedCrash), crashing("store.after_commit", on_hit=5):
        sample.apps.scheduler.timer("tick")
    sample.apps.begin_scheduler()
    sample.apps.send("orchestrator-events", "{no JSON")
    for _ in range(40):
        sample.go_on(crash=True, hours=6)
        if sample.moving.batch().status is BatchStatus.COMPLETED:
            break
    assert sample.crashes == 1
    assert sample.moving.batch().status is BatchStatus.COMPLETED
    assert sample.moving.end_state() == wanted_end_state(*range(PEOPLE))
    assert {user.passwords_set for user in sample.moving.tenant.directory.users.values()} == {0, 1}
    steps = counted(store, "SELECT status, COUNT(*) FROM step_executions WHERE attempt = 1 GROUP BY status")
    assert set(steps) == {"succeeded"}
    assert counted(store, "SELECT reason, COUNT(*) FROM dead_letters GROUP BY reason") == {"Unreadable": 1}
    for place in subscriptions(WORKERS):
        assert service_bus.messages(place.topic, place.name, dead=True) == []
