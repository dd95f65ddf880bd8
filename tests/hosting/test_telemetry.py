"""Telemetry of a process: switched on and off, without a receiver, and in the log."""

import gzip
import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from azure.functions.servicebus import ServiceBusMessage

from matoolkit.bus.envelope import sealed
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.errors import InvalidSettings, TelemetryLibraryMissing
from matoolkit.hosting import telemetry
from matoolkit.hosting.functions.messages import letters_of
from matoolkit.hosting.functions.starting import Opened, begun
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.settings import Settings, is_own_variable, load_settings
from matoolkit.store import Store
from matoolkit.system import Messaging
from matoolkit.telemetry import configure_logging, metering, tracing
from tests.bus.messages import added
from tests.servers.http import Answer, Request, served
from tests.servers.otlp import Collector, collecting

KEY = "InstrumentationKey=00000000-0000-0000-0000-000000000001"
ON = {"MATOOLKIT_TELEMETRY": "otlp"}


def settings_of(kind: str) -> Settings:
    return load_settings(Settings, {"MATOOLKIT_TELEMETRY": kind})


@contextmanager
def sending(part: str, worker_id: str | None = None) -> Iterator[Collector]:
    """Switch telemetry on for a while; when the block is left, the collector has everything."""
    with collecting() as (collector, address):
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        with telemetry_of(settings_of("otlp"), part, worker_id=worker_id, environ=environ):
            yield collector


def test_telemetry_is_off_without_settings() -> None:
    assert load_settings(Settings, {}).telemetry == "off"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"MATOOLKIT_TELEMETRY": "prometheus"}, "MATOOLKIT_TELEMETRY should be 'off', 'otlp' or 'azure'"),
        ({**ON, "OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT should be an address"),
        ({"MATOOLKIT_TELEMETRY": "azure"}, "needs APPLICATIONINSIGHTS_CONNECTION_STRING"),
        (
            {"MATOOLKIT_TELEMETRY": "azure", "APPLICATIONINSIGHTS_CONNECTION_STRING": "sesame"},
            "APPLICATIONINSIGHTS_CONNECTION_STRING is no connection string",
        ),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_without_its_value(environ: dict[str, str], said: str) -> None:
    with (
        pytest.raises(InvalidSettings, match=said) as refused,
        telemetry_of(load_settings(Settings, environ), "api", environ=environ),
    ):
        pass
    assert "sesame" not in str(refused.value)


def test_r4_where_telemetry_goes_is_no_source_of_members() -> None:
    assert is_own_variable("APPLICATIONINSIGHTS_CONNECTION_STRING")
    assert is_own_variable("OTEL_EXPORTER_OTLP_ENDPOINT")


def test_without_the_libraries_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with (
        pytest.raises(TelemetryLibraryMissing, match="not installed") as missing,
        telemetry_of(settings_of("otlp"), "api", environ={}),
    ):
        pass
    assert missing.value.hint == "pip install 'matoolkit[telemetry]'"


IMPORTS = """
import sys
from matoolkit.cli.program import run
run(["--version"])
assert not [name for name in sys.modules if name.startswith("opentelemetry")], "the command imports OpenTelemetry"
from matoolkit.hosting.all_in_one import run_all
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.settings import Settings
with telemetry_of(Settings(), "up"):
    pass
assert not [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
"""


def test_off_nothing_of_opentelemetry_is_imported_by_a_command_and_no_sdk_by_a_service() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, timeout=60)


@pytest.mark.parametrize(
    "malformed", ["", "nonsense", "00-zz-11-01", f"00-{'0' * 32}-{'1' * 16}-01", f"ff-{'1' * 32}-{'1' * 16}-01"]
)
def test_a_malformed_traceparent_is_ignored(malformed: str) -> None:
    with sending("worker") as collector:
        with tracing.span_of(malformed, "job"):
            pass
        with tracing.span_of_messages([malformed, None], "pile"):
            pass
    assert [(span.parent, span.links) for span in collector.spans] == [("", frozenset())] * 2


def test_a_pile_of_several_traces_begins_its_own_with_a_link_to_each_message() -> None:
    senders = [f"00-{number:032x}-{number:016x}-01" for number in range(1, 501)]
    with sending("orchestrator") as collector, tracing.span_of_messages([*senders, senders[0]], "pile"):
        pass
    (pile,) = collector.spans
    assert not pile.parent
    assert len(pile.links) == 500


def test_an_error_is_told_by_its_kind_and_not_by_its_text() -> None:
    with sending("worker") as collector, pytest.raises(ValueError, match="sesame"), tracing.span("call"):
        raise ValueError("sesame")
    (span,) = collector.spans
    assert (span.is_error, span.about) == (True, {"error.type": "ValueError"})
    assert b"sesame" not in b"".join(collector.bodies)


def test_after_the_end_nothing_is_recorded() -> None:
    before = set(threading.enumerate())
    with sending("worker"):
        assert tracing.is_on()
        assert metering.is_on()
    assert not tracing.is_on()
    assert not metering.is_on()
    assert sealed([added(1)])[0].traceparent is None
    assert not [thread for thread in set(threading.enumerate()) - before if "Otel" in thread.name]


def test_a_receiver_that_refuses_is_one_line_for_spans_and_one_for_metrics_and_stops_no_work(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with sending("worker") as collector:
        collector.status = 400
        metering.count(metering.THROTTLED, {"api": "Graph"})
        for _ in range(2000):
            with tracing.span("call"):
                pass
    assert len(collector.requests) > 2
    told = [record.getMessage() for record in caplog.records if record.name.startswith("matoolkit")]
    said = "fails, and is tried again: the receiver did not take it"
    assert sorted(told) == [f"sending metrics {said}", f"sending spans {said}"]


def test_a_receiver_that_is_not_there_does_not_keep_a_process_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "FLUSH_SECONDS", 0.2)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with telemetry_of(settings_of("otlp"), "worker", environ=environ), tracing.span("call"):
        pass
    assert not tracing.is_on()


@pytest.mark.on("sqlite")
def test_a_function_app_sends_the_same_way_until_its_process_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[Callable[[], None]] = []
    monkeypatch.setattr("atexit.register", at_exit.append)
    sender = f"00-{'1' * 32}-{'2' * 16}-01"
    with collecting() as (collector, address):
        bus = SqlBus(store)
        begun(
            settings_of("otlp"),
            "orchestrator",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": address},
            lambda _: Opened(store, Messaging(bus, bus)),
            is_watching=True,
        )
        message = ServiceBusMessage(
            body=b"{}", message_id="m", application_properties={"traceparent": sender}, user_properties={}
        )
        (letter,) = letters_of(EVENTS_OF_ORCHESTRATOR, [message])
        with tracing.span_of_messages([letter.received.traceparent], "pile"):
            pass
        at_exit.pop()()
    (pile,) = collector.spans
    assert (pile.service, pile.trace) == ("matoolkit-orchestrator", "1" * 32)
    assert "matoolkit.phase.lag" in collector.points


class Insights:
    """Takes what the exporter of Azure sends."""

    def __init__(self) -> None:
        self.items: list[dict[str, object]] = []

    def answer(self, request: Request) -> Answer:
        body = gzip.decompress(request.body) if isinstance(request.body, bytes) else json.dumps(request.body).encode()
        received = json.loads(body)
        self.items += received
        return Answer({"itemsReceived": len(received), "itemsAccepted": len(received), "errors": []})


def test_application_insights_gets_spans_and_metrics_under_our_names() -> None:
    insights = Insights()
    with served(insights) as address:
        environ = {"APPLICATIONINSIGHTS_CONNECTION_STRING": f"{KEY};IngestionEndpoint={address}"}
        with telemetry_of(settings_of("azure"), "worker", environ=environ), tracing.span_of(None, "job Set-User"):
            metering.count(metering.THROTTLED, {"api": "Graph"})
    told = json.dumps(insights.items)
    assert "job Set-User" in told
    assert "matoolkit.calls.throttled" in told


def test_a_json_line_names_the_worker_and_the_trace_whoever_writes_it() -> None:
    stream = io.StringIO()
    configure_logging("INFO", "json", stream)
    with sending("worker", worker_id="worker-01") as collector:
        logging.getLogger("matoolkit.worker").info("outside")
        with tracing.span("job"):
            logging.getLogger("some.library").error("inside")
            logging.getLogger("uvicorn.error").error("inside too")
    outside, inside, too = (json.loads(line) for line in stream.getvalue().splitlines())
    (span,) = collector.spans
    assert (outside["worker"], "trace" in outside) == ("worker-01", False)
    assert [(line["worker"], line["trace"], line["span"]) for line in (inside, too)] == [
        ("worker-01", span.trace, span.id)
    ] * 2


def test_the_log_of_another_process_names_no_worker() -> None:
    stream = io.StringIO()
    configure_logging("INFO", "json", stream)
    with telemetry_of(settings_of("off"), "worker", worker_id="worker-01"):
        logging.getLogger("matoolkit.worker").info("first")
    with telemetry_of(settings_of("off"), "api"):
        logging.getLogger("matoolkit.api").info("second")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["worker"] == "worker-01"
    assert "worker" not in second


def test_what_opentelemetry_says_of_an_outage_is_told_by_our_line_alone() -> None:
    stream = io.StringIO()
    configure_logging("INFO", "json", stream)
    logging.getLogger("opentelemetry.exporter.otlp").error("no connection")
    assert not stream.getvalue()
