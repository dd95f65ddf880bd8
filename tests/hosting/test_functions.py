"""The function apps: what the host reads of them, what the templates expect of them, and how each begins and works."""

import json
import logging
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from matoolkit.bus.envelope import sealed
from matoolkit.bus.handed import PATIENCE_SECONDS
from matoolkit.bus.servicebus.inbox import MOST_AT_ONCE
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, MESSAGE_TYPE, RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.doors.entra import Entra
from matoolkit.errors import InvalidSettings, SchemaMissing, SignInRequired, StoreUnavailable
from matoolkit.hosting.functions import api as api_module
from matoolkit.hosting.functions import orchestrator as orchestrator_module
from matoolkit.hosting.functions.api import api_app
from matoolkit.hosting.functions.logs import send_logs_to_host
from matoolkit.hosting.functions.orchestrator import CONNECTION, orchestrator_app
from matoolkit.hosting.functions.scheduler import TICK_SECONDS, TimedScheduler, scheduler_app
from matoolkit.hosting.functions.starting import Lazily, Opened, sweep_each
from matoolkit.orchestrator import Orchestrator
from matoolkit.ports import Delivery
from matoolkit.scheduler.tick import Scheduler
from matoolkit.settings import Settings
from matoolkit.store import Store, open_store
from matoolkit.store.leases import acquire_lease, held_leases
from matoolkit.store.sql.transaction import Transaction
from matoolkit.system import Messaging
from tests.api.conftest import DOCUMENT, csv_of
from tests.api.test_auth import APP, TENANT, Keys, signed
from tests.bus.messages import added, dead_letters
from tests.infra.bicep import properties, template, value
from tests.infra.test_templates import MODULES, SCHEDULER, settings_of_apps
from tests.servers.functions_host import FunctionsHost, Message
from tests.servers.http import served

ROOT = Path(__file__).parents[2]
APPS = ROOT / "functions"
NAMES = ("scheduler", "orchestrator", "admin-api")
ENTRA = {"MATOOLKIT_ENTRA_TENANT_ID": TENANT, "MATOOLKIT_ENTRA_CLIENT_ID": APP}


def host_json(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((APPS / name / "host.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, FunctionsHost]:
    """All apps, each from the file that is deployed, with settings that lead nowhere: nothing is opened yet."""
    monkeypatch.setenv("MATOOLKIT_DATABASE_URL", "sqlite:////there/is/no/such/folder/state.db")
    for name, text in ENTRA.items():
        monkeypatch.setenv(name, text)
    apps = {name: runpy.run_path(str(APPS / name / "function_app.py"))["app"] for name in NAMES}
    return {name: FunctionsHost(app) for name, app in apps.items()}


# ---------------------------------------------------------------- what the host reads


def test_each_app_has_its_functions(loaded: dict[str, FunctionsHost]) -> None:
    assert {name: host.names for name, host in loaded.items()} == {
        "scheduler": {"tick", "sweep"},
        "orchestrator": {"events", "results", "sweep"},
        "admin-api": {"api", "sweep"},
    }


@pytest.mark.parametrize(
    ("name", "subscription"), [("events", EVENTS_OF_ORCHESTRATOR), ("results", RESULTS_OF_ORCHESTRATOR)]
)
def test_m8_the_triggers_listen_where_the_topology_says(
    loaded: dict[str, FunctionsHost], name: str, subscription: Any
) -> None:
    found = loaded["orchestrator"].binding(name)
    assert (found["topicName"], found["subscriptionName"]) == (subscription.topic, subscription.name)
    assert (found["type"], found["cardinality"]) == ("serviceBusTrigger", "MANY")
    assert "autoCompleteMessages" not in found, "the host settles"


def test_m8_a_pile_of_the_host_is_as_large_as_one_of_ours() -> None:
    assert host_json("orchestrator")["extensions"]["serviceBus"]["maxMessageBatchSize"] == MOST_AT_ONCE


def test_t1_a_tick_comes_every_five_minutes(loaded: dict[str, FunctionsHost]) -> None:
    tick = loaded["scheduler"].binding("tick")
    assert tick["schedule"] == f"0 */{TICK_SECONDS // 60} * * * *"
    assert tick["useMonitor"] is True, "one that was missed is made up for"


@pytest.mark.parametrize("name", NAMES)
def test_sweeps_come_as_often_as_in_a_process(loaded: dict[str, FunctionsHost], name: str) -> None:
    assert loaded[name].binding("sweep")["schedule"] == f"*/{Settings().sweep_seconds} * * * * *"


def test_a2_the_host_lets_everybody_in_and_takes_nothing_of_the_address(loaded: dict[str, FunctionsHost]) -> None:
    found = loaded["admin-api"].binding("api")
    assert (found["authLevel"], found["route"]) == ("ANONYMOUS", "/{*route}")
    assert {"GET", "POST", "PUT", "PATCH", "DELETE"} <= {getattr(one, "value", one) for one in found["methods"]}
    assert host_json("admin-api")["extensions"]["http"]["routePrefix"] == ""


@pytest.mark.parametrize("name", NAMES)
def test_lines_that_alerts_look_for_are_not_sampled_away(name: str) -> None:
    sampling = host_json(name)["logging"]["applicationInsights"]["samplingSettings"]
    assert {"Request", "Trace"} <= set(sampling["excludedTypes"].split(";"))


# ---------------------------------------------------------------- what the templates expect


def test_the_functions_that_the_templates_keep_ready_are_there(loaded: dict[str, FunctionsHost]) -> None:
    (ready,) = (
        value(properties(properties(module.body)["params"])["alwaysReady"])
        for module in template(SCHEDULER).modules
        if module.symbol == "orchestrator"
    )
    assert ready == ["events", "results"]
    assert set(ready) <= loaded["orchestrator"].names


def test_the_host_is_told_where_the_bus_of_the_triggers_is(loaded: dict[str, FunctionsHost]) -> None:
    given = settings_of_apps()["orchestrator"]
    assert {loaded["orchestrator"].binding(name)["connection"] for name in ("events", "results")} == {CONNECTION}
    assert given[f"{CONNECTION}__fullyQualifiedNamespace"] == given["MATOOLKIT_SERVICE_BUS_NAMESPACE"]
    assert given[f"{CONNECTION}__credential"] == "'managedidentity'"


def test_the_alert_of_failing_ticks_looks_at_the_function_that_ticks(loaded: dict[str, FunctionsHost]) -> None:
    (name,) = re.findall(r'requests \| where name == "(\w+)"', SCHEDULER.read_text(encoding="utf-8"))
    assert name in loaded["scheduler"].names


def test_the_timer_and_nothing_else_says_how_often_a_tick_comes() -> None:
    assert "MATOOLKIT_TICK_SECONDS" not in settings_of_apps()["scheduler"]


def test_the_templates_run_the_python_that_the_packages_are_made_for() -> None:
    text = (MODULES / "function-app.bicep").read_text(encoding="utf-8")
    (version,) = re.findall(r"name: 'python'\s+version: '([\d.]+)'", text)
    made = (ROOT / "infra" / "package-functions.sh").read_text(encoding="utf-8")
    assert f"\nversion={version}\n" in made


def test_a_deployment_looks_for_the_functions_that_there_are(loaded: dict[str, FunctionsHost]) -> None:
    script = (ROOT / "infra" / "update-functions.sh").read_text(encoding="utf-8")
    looked_for = dict(re.findall(r'\[([\w-]+)\]="([a-z ]+)"', script))
    assert {name: set(text.split()) for name, text in looked_for.items()} == {
        name: host.names for name, host in loaded.items()
    }
    assert all(text.split() == sorted(text.split()) for text in looked_for.values())


def test_no_page_of_the_host_hides_the_api() -> None:
    assert settings_of_apps()["adminApi"]["AzureWebJobsDisableHomepage"] == "'true'"


# ---------------------------------------------------------------- how they begin


@pytest.mark.parametrize(("name", "most"), [("scheduler", 1_200), ("orchestrator", 1_200), ("admin-api", 1_600)])
def test_importing_an_app_loads_little_and_opens_nothing(name: str, most: int) -> None:
    """A start is paid for by the first message: what only some calls need is imported by them."""
    script = "import function_app, sys; print(len(sys.modules)); print(*sys.modules)"
    environ = {**ENTRA, "MATOOLKIT_BUS": "servicebus", "MATOOLKIT_SERVICE_BUS_NAMESPACE": "x.servicebus.windows.net"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=APPS / name, env=environ, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    count, modules = done.stdout.splitlines()
    assert int(count) < most
    late = {"azure.servicebus", "azure.identity", "mssql_python", "psycopg", "typer", "sqlglot"}
    assert late.isdisjoint(modules.split())


def test_a2_without_entra_there_is_no_admin_api() -> None:
    with pytest.raises(SignInRequired):
        api_app({})


@pytest.mark.parametrize("app", [scheduler_app, orchestrator_app, api_app])
def test_a_setting_that_cannot_be_used_is_told_when_the_app_is_imported(app: Any) -> None:
    with pytest.raises(InvalidSettings, match="MATOOLKIT_BUSS"):
        app({**ENTRA, "MATOOLKIT_BUSS": "servicebus"})


def test_what_could_not_be_opened_is_tried_again_by_the_next_call() -> None:
    tries: list[int] = []

    def make() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise StoreUnavailable("gone")
        return "made"

    lazily = Lazily(make)
    with pytest.raises(StoreUnavailable):
        lazily()
    assert (lazily(), lazily(), len(tries)) == ("made", "made", 2)


def test_an_app_on_tables_of_another_version_does_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    open_store(url).close()
    with pytest.raises(SchemaMissing):
        FunctionsHost(scheduler_app({"MATOOLKIT_DATABASE_URL": url})).timer("tick")


def test_a_state_that_cannot_be_used_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer tries every half a minute, and each connection that it leaves open counts on the server."""
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    open_store(url).close()
    closed: list[Store] = []

    def close(self: Store) -> None:
        closed.append(self)

    monkeypatch.setattr(Store, "close", close)
    with pytest.raises(SchemaMissing):
        FunctionsHost(scheduler_app({"MATOOLKIT_DATABASE_URL": url})).timer("sweep")
    assert len(closed) == 1


def test_a_sweep_that_fails_keeps_no_other_from_sweeping_and_is_shown_by_the_host() -> None:
    swept: list[str] = []
    with pytest.raises(StoreUnavailable):
        sweep_each([_fail, lambda: swept.append("second")])
    assert swept == ["second"]


# ---------------------------------------------------------------- what they say


class Host(logging.Handler):
    """Where the host looks for lines: at the root."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record)


@pytest.fixture
def host() -> Iterator[Host]:
    handler, root = Host(), logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)


def test_a_line_reaches_the_host_once_with_its_level_and_its_fields(host: Host) -> None:
    send_logs_to_host("INFO", "json")
    log = logging.getLogger("matoolkit.scheduler.due_phases")
    log.warning("phase dispatched: it was due at %s", "noon", extra={"batch": 42})
    log.debug("not asked for")
    logging.getLogger("matoolkit.scheduler.leasing").info("this scheduler works from now on")
    (line,) = host.lines
    said = json.loads(line.getMessage())
    assert (line.levelname, said["event"], said["batch"]) == ("WARNING", "phase dispatched: it was due at noon", 42)


def test_an_error_of_ours_reaches_the_host_with_its_traceback(host: Host) -> None:
    send_logs_to_host("INFO", "json")
    with pytest.raises(StoreUnavailable):
        sweep_each([_fail])
    (line,) = host.lines
    assert "StoreUnavailable" in json.loads(line.getMessage())["exception"]


def _fail() -> None:
    raise StoreUnavailable("gone")


# ---------------------------------------------------------------- the scheduler


@pytest.fixture
def parts(store: Store) -> Opened:
    bus = SqlBus(store)
    return Opened(store, Messaging(bus, bus))


@pytest.fixture
def scheduler(parts: Opened, clock: VirtualClock) -> TimedScheduler:
    return TimedScheduler(Settings(), parts, {}, clock)


def leases(store: Store) -> list[str]:
    with store.reading() as tx:
        return [lease.holder for lease in held_leases(tx)]


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count what schedulers do."""
    done: list[str] = []
    tick, sweep = Scheduler.tick, Scheduler.sweep

    def noted_tick(self: Scheduler) -> Any:
        done.append("tick")
        return tick(self)

    def noted_sweep(self: Scheduler) -> int:
        done.append("sweep")
        return sweep(self)

    monkeypatch.setattr(Scheduler, "tick", noted_tick)
    monkeypatch.setattr(Scheduler, "sweep", noted_sweep)
    return done


def test_t10_a_call_takes_the_lease_and_lets_it_go(scheduler: TimedScheduler, store: Store, ticks: list[str]) -> None:
    scheduler.tick()
    scheduler.sweep()
    assert (ticks, leases(store)) == (["tick", "sweep"], [])


def taken(store: Store, seconds: float) -> None:
    with store.transaction() as tx:
        assert acquire_lease(tx, "scheduler", "another", timedelta(seconds=seconds))


def test_t10_a_tick_waits_for_the_lease_of_one_that_was_cut_off(
    scheduler: TimedScheduler, store: Store, clock: VirtualClock, ticks: list[str]
) -> None:
    taken(store, 90)
    began = clock.monotonic()
    scheduler.tick()
    assert ticks == ["tick"]
    assert clock.monotonic() - began >= 90


def test_t10_a_tick_leaves_a_scheduler_that_is_at_work_alone(
    scheduler: TimedScheduler, store: Store, ticks: list[str]
) -> None:
    taken(store, 3600)
    scheduler.tick()
    assert (ticks, leases(store)) == ([], ["another"])


def test_t10_a_sweep_beside_a_tick_asks_for_nothing_and_takes_nothing_from_it(
    scheduler: TimedScheduler, store: Store, ticks: list[str]
) -> None:
    taken(store, 60)
    scheduler.sweep()
    assert leases(store) == ["another"]


# ---------------------------------------------------------------- the orchestrator


@pytest.fixture
def orchestrator(parts: Opened, clock: VirtualClock) -> FunctionsHost:
    return FunctionsHost(orchestrator_app({}, clock, lambda _: parts))


def events(*numbers: int) -> list[Message]:
    return [
        Message(one.message_id, one.body, {MESSAGE_TYPE: one.message_type})
        for one in sealed([added(number) for number in numbers])
    ]


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The piles that the orchestrator handles; messages of user7 fail, for a reason that no fault of ours has."""
    piles: list[list[str]] = []
    handle = Orchestrator.handle

    def noted(self: Orchestrator, tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        piles.append([one.received.message_id for one in deliveries])
        if "member-added-7-0" in piles[-1]:
            raise ZeroDivisionError("broken")
        handle(self, tx, deliveries)

    monkeypatch.setattr(Orchestrator, "handle", noted)
    return piles


def test_m6_of_a_hundred_messages_the_one_that_fails_is_put_aside_and_the_call_returns(
    orchestrator: FunctionsHost, store: Store, handled: list[list[str]]
) -> None:
    orchestrator.pile("events", events(*range(100)))
    alone = [pile[0] for pile in handled if len(pile) == 1]
    assert (alone.count("member-added-7-0"), alone.count("member-added-8-0")) == (3, 1)
    assert [(one.message_id, one.reason) for one in dead_letters(store)] == [("member-added-7-0", "HandlingFailed")]


def test_m6_a_message_that_cannot_be_read_is_put_aside_with_all_that_is_known_of_it(
    orchestrator: FunctionsHost, store: Store, handled: list[list[str]]
) -> None:
    broken = Message("broken", "{no JSON", {MESSAGE_TYPE: "member-added", "Origin": "elsewhere"})
    orchestrator.pile("events", [broken, *events(1)])
    (letter,) = dead_letters(store)
    assert (letter.reason, letter.body, letter.message_type) == ("Unreadable", "{no JSON", "member-added")
    assert json.loads(letter.properties_json)["Origin"] == "elsewhere"
    assert letter.enqueued_at == broken.enqueued_at
    assert handled == [["member-added-1-0"]]


def test_m6_an_app_that_cannot_begin_uses_up_no_deliveries_in_a_hurry(parts: Opened, clock: VirtualClock) -> None:
    """The host delivers at once what a call gives back, and puts aside what came ten times."""
    tries: list[int] = []

    def away_at_first(_: Settings) -> Opened:
        tries.append(1)
        if len(tries) == 1:
            raise StoreUnavailable("gone")
        return parts

    host = FunctionsHost(orchestrator_app({}, clock, away_at_first))
    began = clock.monotonic()
    with pytest.raises(StoreUnavailable):
        host.pile("events", events(1))
    assert clock.monotonic() - began == PATIENCE_SECONDS
    host.pile("events", events(1))
    assert clock.monotonic() - began == PATIENCE_SECONDS


def test_m6_a_bug_uses_up_no_deliveries_in_a_hurry_either(
    parts: Opened, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(orchestrator_module, "letters_of", fail)
    host = FunctionsHost(orchestrator_app({}, clock, lambda _: parts))
    began = clock.monotonic()
    with pytest.raises(ZeroDivisionError):
        host.pile("events", events(1))
    assert clock.monotonic() - began == PATIENCE_SECONDS


def test_m6_a_start_that_fails_slowly_still_gives_the_pile_back_while_it_is_locked(clock: VirtualClock) -> None:
    def fail_slowly(_: Settings) -> Opened:
        clock.sleep(PATIENCE_SECONDS - 10)
        raise StoreUnavailable("gone")

    host = FunctionsHost(orchestrator_app({}, clock, fail_slowly))
    began = clock.monotonic()
    with pytest.raises(StoreUnavailable):
        host.pile("events", events(1))
    assert clock.monotonic() - began == PATIENCE_SECONDS


def test_m9_a_result_of_a_worker_that_writes_no_type_is_read(
    orchestrator: FunctionsHost, store: Store, handled: list[list[str]]
) -> None:
    result = {"JobId": "step-1-attempt-1", "Status": "Success", "Result": True, "CorrelationData": {}}
    orchestrator.pile("results", [Message("result", json.dumps(result))])
    assert (handled, dead_letters(store)) == ([["result"]], [])


# ---------------------------------------------------------------- the admin API


@pytest.fixture
def api(parts: Opened, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[FunctionsHost]:
    with served(Keys()) as address:
        entra = Entra(TENANT, APP, clock, keys_url=f"{address}/keys")
        monkeypatch.setattr(api_module, "sign_in_for", lambda *_: entra)
        yield FunctionsHost(api_app(ENTRA, clock, lambda _: parts))


@pytest.mark.on("sqlite")
def test_a2_everybody_may_ask_for_health_and_only_who_is_signed_in_for_the_rest(api: FunctionsHost) -> None:
    assert api.request("GET", "/healthz")[0] == 200
    status, headers, body = api.request("GET", "/api/runbooks")
    assert (status, headers["content-type"]) == (401, "application/problem+json")
    assert headers["www-authenticate"] == "Bearer"
    assert json.loads(body)["status"] == 401
    status, _, body = api.request("GET", "/api/runbooks?limit=5", {"Authorization": f"Bearer {signed()}"})
    assert (status, json.loads(body)["items"]) == (200, [])


@pytest.mark.on("sqlite")
def test_a_body_and_an_address_with_odd_letters_arrive(api: FunctionsHost) -> None:
    headers = {"Authorization": f"Bearer {signed()}", "Content-Type": "application/json"}
    status, _, body = api.request("PUT", "/api/runbooks/na%C3%AFve%20one/automation", headers, b'{"enabled": true}')
    assert status == 404
    assert "naïve one" in json.loads(body)["detail"]


@pytest.mark.on("sqlite")
def test_files_come_in_and_go_out_whole(api: FunctionsHost) -> None:
    """The route returns an export in pieces, and the library collects them."""

    def ask(method: str, path: str, **content: Any) -> tuple[int, bytes]:
        sent = httpx.Request(method, f"https://contoso.example{path}", **content)
        headers = {**sent.headers, "Authorization": f"Bearer {signed()}"}
        status, _, body = api.request(method, path, headers, sent.read())
        return status, body

    assert ask("POST", "/api/runbooks", json={"yamlContent": DOCUMENT})[0] == 201
    status, body = ask("POST", "/api/batches", data={"runbookName": "wave"}, files=csv_of("ann", "bob"))
    assert status == 201, body
    status, body = ask("GET", f"/api/batches/{json.loads(body)['batchId']}/members.csv")
    assert status == 200
    assert [line.split(",")[1] for line in body.decode().splitlines()[1:]] == ["ann", "bob"]


@pytest.mark.on("sqlite")
def test_while_the_database_is_away_every_answer_says_so_and_the_next_request_tries_again(
    parts: Opened, clock: VirtualClock
) -> None:
    tries: list[int] = []

    def away_at_first(_: Settings) -> Opened:
        tries.append(1)
        if len(tries) == 1:
            raise StoreUnavailable("the password is hunter2")
        return parts

    host = FunctionsHost(api_app(ENTRA, clock, away_at_first))
    status, headers, body = host.request("GET", "/readyz")
    assert (status, headers["content-type"]) == (503, "application/problem+json")
    assert json.loads(body)["code"] == "DB503"
    assert b"hunter2" not in body
    assert host.request("GET", "/readyz")[0] == 200


@pytest.mark.on("sqlite")
def test_m1_the_api_sends_what_waits_in_the_outbox(store: Store, clock: VirtualClock) -> None:
    swept: list[str] = []

    class Outbox:
        def sweep(self) -> int:
            swept.append("outbox")
            return 0

    bus = SqlBus(store)
    parts = Opened(store, Messaging(bus, bus, Outbox()))  # type: ignore[arg-type]
    FunctionsHost(api_app(ENTRA, clock, lambda _: parts)).timer("sweep")
    assert swept == ["outbox"]
