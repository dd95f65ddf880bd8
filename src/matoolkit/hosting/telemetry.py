"""Telemetry of a process: spans and metrics leave to where the settings say, and no work ever waits for that.

Every host enters `telemetry_of` around its work. With telemetry off it imports nothing, starts no thread and sends
nothing. Threads of the SDK do the sending: what cannot leave is dropped after a while, with one line a minute in the
log. The providers are ours alone and not the process's global ones, so nothing that another library records is sent.
"""

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from matoolkit import __version__
from matoolkit.admin.measuring import Sample, measured
from matoolkit.errors import InvalidSettings, TelemetryLibraryMissing
from matoolkit.outages import Outage
from matoolkit.settings import Settings, TelemetrySettings, load_settings
from matoolkit.store import Store
from matoolkit.telemetry import bind_fields, metering, tracing
from matoolkit.telemetry.metering import MEASURES, Form, Measure

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

NAME = "matoolkit"
# How long a process that stops waits for what is still to be sent; platforms kill it not much later.
FLUSH_SECONDS = 5.0
# A pile has at most this many messages, and its span a link to each; the SDK would keep 128.
_MOST_LINKS = 500

log = logging.getLogger(__name__)


@contextmanager
def telemetry_of(
    settings: Settings,
    part: str,
    *,
    worker_id: str | None = None,
    watched: Store | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[None]:
    """Send spans and metrics of a process while the block lasts, if the settings say so, and what is left in the end.

    The log of a worker names it in every line. A process that has the state as `watched` also sends what that says.
    """
    bind_fields(**({"worker": worker_id} if worker_id else {}))
    if settings.telemetry == "off":
        yield
        return
    spans, metrics = _providers(settings.telemetry, part, environ)
    meter = metrics.get_meter(NAME, __version__)
    if watched is not None:
        _watch(meter, watched)
    tracing.switch_on(spans.get_tracer(NAME, __version__))
    metering.switch_on(meter)
    try:
        yield
    finally:
        tracing.switch_on(None)
        metering.switch_on(None)
        _end(spans.shutdown, metrics.shutdown)


def _providers(kind: str, part: str, environ: Mapping[str, str]) -> "tuple[TracerProvider, MeterProvider]":
    addresses = load_settings(TelemetrySettings, environ)
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace import SpanLimits, TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from matoolkit.hosting.exporting import ToldMetricExporter, ToldSpanExporter

        to_azure = kind == "azure"
        span_exporter, metric_exporter = _azure(addresses) if to_azure else _otlp(addresses, environ)
    except ImportError:
        raise TelemetryLibraryMissing from None
    resource = _resource(environ.get("OTEL_SERVICE_NAME") or f"{NAME}-{part}")
    spans = TracerProvider(resource=resource, span_limits=SpanLimits(max_links=_MOST_LINKS), shutdown_on_exit=False)
    spans.add_span_processor(BatchSpanProcessor(ToldSpanExporter(span_exporter, Outage("sending spans", log))))
    reader = PeriodicExportingMetricReader(ToldMetricExporter(metric_exporter, Outage("sending metrics", log)))
    return spans, MeterProvider([reader], resource, shutdown_on_exit=False)


def _resource(name: str) -> "Resource":
    from opentelemetry.sdk.resources import Resource

    instance = f"{socket.gethostname()}:{os.getpid()}"
    return Resource.create(
        {
            "service.name": name,
            "service.namespace": NAME,
            "service.version": __version__,
            "service.instance.id": instance,
        }
    )


def _otlp(addresses: TelemetrySettings, environ: Mapping[str, str]) -> "tuple[SpanExporter, MetricExporter]":
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    def place(signal: str) -> str:
        own = environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        return own or f"{addresses.otel_exporter_otlp_endpoint}/v1/{signal}"

    return OTLPSpanExporter(place("traces")), OTLPMetricExporter(place("metrics"))


def _azure(addresses: TelemetrySettings) -> "tuple[SpanExporter, MetricExporter]":
    given = addresses.applicationinsights_connection_string
    if given is None:
        raise InvalidSettings(["MATOOLKIT_TELEMETRY is azure, which needs APPLICATIONINSIGHTS_CONNECTION_STRING"])
    # Otherwise the library tells Microsoft about its own use, over addresses that a closed network does not let out.
    os.environ.setdefault("APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL", "true")
    from azure.monitor.opentelemetry.exporter import AzureMonitorMetricExporter, AzureMonitorTraceExporter

    # Without its storage: containers have a read-only file system, and telemetry is not worth a disk.
    options = {"connection_string": given.get_secret_value(), "disable_offline_storage": True}
    try:
        return AzureMonitorTraceExporter(**options), AzureMonitorMetricExporter(**options)
    except ValueError:
        raise InvalidSettings(["APPLICATIONINSIGHTS_CONNECTION_STRING is no connection string"]) from None


def _watch(meter: "Meter", store: Store) -> None:
    """Let a meter read the state; one look serves all gauges of a collection."""
    from opentelemetry.metrics import Observation

    trouble = Outage("measuring the state", log)
    unread: dict[Measure, list[Sample]] = {}

    def look(measure: Measure) -> "Callable[[CallbackOptions], list[Observation]]":
        def observe(_: "CallbackOptions") -> "list[Observation]":
            if measure not in unread:
                try:
                    unread.update((one, list(samples)) for one, samples in measured(store).items())
                except Exception as fault:  # noqa: BLE001 - it is told, and there are no numbers this time
                    trouble.failed(fault)
                    return []
                trouble.worked()
            return [Observation(value, labels) for labels, value in unread.pop(measure)]

        return observe

    for one in MEASURES:
        if one.form is Form.GAUGE:
            meter.create_observable_gauge(one.name, [look(one)], one.unit, one.meaning)


def _end(*shutdowns: Callable[[], object]) -> None:
    """Send what is left, for a few seconds at most."""
    threads = [threading.Thread(target=one, name="telemetry-end", daemon=True) for one in shutdowns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(FLUSH_SECONDS)
