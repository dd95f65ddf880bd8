"""`matoolkit bus`: a namespace is compared with the topology, and what is missing in it is made (rule M8)."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from matoolkit.bus import topology
from matoolkit.bus.servicebus.wanted import told
from matoolkit.cli.program import run
from matoolkit.runbook.values import MAX_WORKER_ID
from tests.databases import NOON
from tests.documents import document

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus

Command = Callable[..., Any]


@pytest.fixture
def bus(
    service_bus: "ServiceBus", capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    """Run `matoolkit bus` on the tests' namespace, and return what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MATOOLKIT_SERVICE_BUS_CONNECTION_STRING", service_bus.connection_string)

    def bus(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        ended = run(["bus", *arguments, "--json"])
        out, err = capsys.readouterr()
        assert ended == code, err
        return orjson.loads(out) if out else err

    return bus


def test_m8_an_empty_namespace_lacks_everything_and_create_makes_it(bus: Command) -> None:
    missing = bus("check", "--worker", "worker-01", code=1)
    assert [one["entity"] for one in missing] == [
        "orchestrator-events",
        "worker-jobs",
        "worker-results",
        "orchestrator-events/orchestrator",
        "worker-results/orchestrator",
        "worker-jobs/worker-worker-01",
        "worker-jobs/unclaimed",
    ]
    assert {(one["found"], one["command"]) for one in missing} == {("missing", "matoolkit bus create")}
    made = bus("create", "--worker", "worker-01")
    assert [one["entity"] for one in made] == [one["entity"] for one in missing]
    assert bus("check", "--worker", "worker-01") == []


def test_m8_create_can_be_repeated_and_keeps_what_is_there(bus: Command, service_bus: "ServiceBus") -> None:
    bus("create", "--worker", "worker-01")
    service_bus.broker.topics["worker-jobs"].subscriptions["worker-worker-01"].change_rules({"mine": "1=1"})
    assert bus("create", "--worker", "worker-01") == []
    assert service_bus.broker.topics["worker-jobs"].subscriptions["worker-worker-01"].rules == {"mine": "1=1"}


def test_m8_what_create_makes_is_what_the_topology_says(bus: Command, service_bus: "ServiceBus") -> None:
    bus("create", "--worker", "worker-01")
    jobs = service_bus.broker.topics["worker-jobs"]
    assert jobs.settings.time_to_live == topology.TIME_TO_LIVE
    assert jobs.settings.duplicate_window == topology.DUPLICATE_WINDOW
    mine, unclaimed = jobs.subscriptions["worker-worker-01"], jobs.subscriptions["unclaimed"]
    assert mine.settings.dead_letters_expired
    assert mine.settings.max_deliveries == 10
    assert list(mine.rules.values()) == ["WorkerId = 'worker-01'"]
    assert list(unclaimed.rules.values()) == ["WorkerId IS NULL OR WorkerId NOT IN ('worker-01')"]


def test_m8_a_new_worker_is_left_out_of_the_jobs_that_no_worker_takes(bus: Command, service_bus: "ServiceBus") -> None:
    """A worker that has a subscription is known, also if the next command does not name it."""
    bus("create", "--worker", "worker-01")
    made = bus("create", "--worker", "worker-02")
    assert made == [
        {"entity": "worker-jobs/worker-worker-02", "what": "created"},
        {"entity": "worker-jobs/unclaimed", "what": "changed rule"},
    ]
    rules = service_bus.broker.topics["worker-jobs"].subscriptions["unclaimed"].rules
    assert list(rules.values()) == ["WorkerId IS NULL OR WorkerId NOT IN ('worker-01', 'worker-02')"]
    assert bus("check", "--worker", "worker-02") == []


def test_m8_without_the_option_workers_are_those_of_runbooks_and_announcements(bus: Command) -> None:
    from matoolkit.admin.publishing import publish
    from matoolkit.settings import Settings, load_settings
    from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
    from matoolkit.system import open_state

    assert run(["db", "upgrade"]) == 0
    store = open_state(load_settings(Settings))
    publish(store, document().replace("worker-01", "of-a-runbook"), by="anna", now=NOON)
    with store.transaction() as tx:
        announce_functions(tx, "announced", [AnnouncedFunction("Do-It", "[]")], tx.time())
    store.close()
    entities = {one["entity"] for one in bus("check", code=1)}
    assert {"worker-jobs/worker-of-a-runbook", "worker-jobs/worker-announced"} < entities


def _spoil(service_bus: "ServiceBus") -> None:
    from tests.servers.servicebus.broker import SubscriptionSettings, TopicSettings

    short = timedelta(hours=1)
    service_bus.create_topic("orchestrator-events", TopicSettings(time_to_live=short, is_partitioned=True))
    service_bus.create_topic("worker-jobs", TopicSettings(topology.TIME_TO_LIVE, timedelta(minutes=1)))
    service_bus.create_topic("worker-results", TopicSettings(topology.TIME_TO_LIVE, topology.DUPLICATE_WINDOW))
    hasty = SubscriptionSettings(timedelta(seconds=30), 3, short, dead_letters_bad_filters=False, needs_session=True)
    service_bus.subscribe("orchestrator-events", "orchestrator", "1=1", hasty)
    service_bus.subscribe("worker-results", "orchestrator", "MessageType = 'worker-result'")
    service_bus.subscribe("worker-jobs", "worker-worker-01")
    service_bus.subscribe("worker-jobs", "unclaimed")


def test_m8_check_says_what_differs_and_which_command_changes_it(bus: Command, service_bus: "ServiceBus") -> None:
    _spoil(service_bus)
    differences = bus("check", "--worker", "worker-01", code=1)
    events, subscription = "orchestrator-events", "orchestrator-events/orchestrator"
    change, delete = "matoolkit bus create --change", "when it is empty, then matoolkit bus create"
    assert [(one["entity"], one["what"], one["found"], one["wanted"]) for one in differences] == [
        (events, "duplicate detection", "off", "on"),
        (events, "time to live", "PT1H", "P7D"),
        (events, "partitioning", "on", "off"),
        ("worker-jobs", "duplicate window", "PT1M", "PT10M"),
        (subscription, "lock duration", "PT30S", "PT1M or more"),
        (subscription, "deliveries", "3", "10"),
        (subscription, "time to live", "PT1H", "P7D or more"),
        (subscription, "dead letter on expiry", "off", "on"),
        (subscription, "dead letter on a failing rule", "off", "on"),
        (subscription, "sessions", "on", "off"),
        ("worker-results/orchestrator", "rule", "MessageType = 'worker-result'", "1=1"),
        ("worker-jobs/worker-worker-01", "rule", "1=1", "WorkerId = 'worker-01'"),
        ("worker-jobs/unclaimed", "rule", "1=1", "WorkerId IS NULL OR WorkerId NOT IN ('worker-01')"),
    ]
    by_what = {(one["entity"], one["what"]): one["command"] for one in differences}
    assert by_what[events, "partitioning"] == f"delete {events} {delete}"
    assert by_what[events, "time to live"] == change
    assert by_what["worker-jobs/worker-worker-01", "rule"] == change
    assert by_what["worker-jobs/unclaimed", "rule"] == "matoolkit bus create"


def test_m8_create_changes_what_exists_only_if_asked(bus: Command, service_bus: "ServiceBus") -> None:
    _spoil(service_bus)
    assert bus("create", "--worker", "worker-01") == [{"entity": "worker-jobs/unclaimed", "what": "changed rule"}]
    changed = {one["entity"]: one["what"] for one in bus("create", "--change", "--worker", "worker-01")}
    assert changed["orchestrator-events"] == "changed time to live"
    assert changed["worker-jobs/worker-worker-01"] == "changed rule"
    # Service Bus sets these once, when it creates the entity.
    left = bus("check", "--worker", "worker-01", code=1)
    assert [one["what"] for one in left] == ["duplicate detection", "partitioning", "sessions"]


def test_m8_so_many_workers_that_no_rule_can_name_them_are_told(bus: Command) -> None:
    workers = [part for number in range(24) for part in ("--worker", f"{number:0{MAX_WORKER_ID}}")]
    bus("create", *workers)
    (left,) = bus("check", *workers[:2], code=1)
    assert left["entity"] == "worker-jobs/unclaimed"
    assert left["command"] == "none: 24 workers are more than one rule can name"


def test_m8_a_key_that_may_not_manage_is_told_which_role_is_needed(
    bus: Command, service_bus: "ServiceBus", monkeypatch: pytest.MonkeyPatch
) -> None:
    string = service_bus.connection_string_of("SendAndListen")
    monkeypatch.setenv("MATOOLKIT_SERVICE_BUS_CONNECTION_STRING", string)
    for command in ("check", "create"):
        said = bus(command, "--worker", "worker-01", code=4)
        assert "BU403" in said
        assert "Azure Service Bus Data Owner" in said
        assert "no-secret-either" not in said


def test_m8_without_an_identity_it_is_told_in_one_line_which_role_is_needed(
    bus: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MATOOLKIT_SERVICE_BUS_CONNECTION_STRING")
    monkeypatch.setenv("MATOOLKIT_SERVICE_BUS_NAMESPACE", "contoso.servicebus.windows.net")
    # Only an identity of the environment is looked for, and there is none.
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    said = bus("check", "--worker", "worker-01", code=4)
    assert said.startswith("error: Service Bus contoso.servicebus.windows.net does not let this identity manage it: ")
    assert len(said.splitlines()) == 3


def test_m8_a_login_that_is_away_is_an_outage_and_not_a_missing_role(
    bus: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MATOOLKIT_SERVICE_BUS_CONNECTION_STRING")
    monkeypatch.setenv("MATOOLKIT_SERVICE_BUS_NAMESPACE", "contoso.servicebus.windows.net")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.setenv(name, "contoso")
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "https://localhost:1")
    said = bus("check", "--worker", "worker-01", code=6)
    assert said.startswith("error: Service Bus contoso.servicebus.windows.net cannot be managed: ")
    assert "BU503" in said


def test_a_namespace_must_be_named(bus: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MATOOLKIT_SERVICE_BUS_CONNECTION_STRING")
    assert "no Service Bus is named" in bus("check", code=2)


@pytest.mark.parametrize(
    "wrong",
    ["nonsense", "Endpoint=sb://x.example/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=t"],
    ids=["unreadable", "of one topic"],
)
def test_a_connection_string_that_cannot_be_used_is_refused(
    bus: Command, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv("MATOOLKIT_SERVICE_BUS_CONNECTION_STRING", wrong)
    assert "BU400" in bus("check", "--worker", "worker-01", code=2)


def test_a_worker_with_an_impossible_name_is_refused(bus: Command) -> None:
    assert "--worker" in bus("create", "--worker", "it's me", code=2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(days=7), "P7D"),
        (timedelta(hours=1, minutes=30), "PT1H30M"),
        (timedelta(days=1, seconds=5), "P1DT5S"),
        (timedelta(0), "PT0S"),
        (None, "nothing"),
        (12, "12"),
    ],
)
def test_values_are_told_as_azure_writes_them(value: object, text: str) -> None:
    assert told(value) == text
