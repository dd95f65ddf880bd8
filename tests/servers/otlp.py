"""A collector of OpenTelemetry: takes what exporters send over HTTP, and shows it as plain records."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.servers.http import Answer, Request, served


@dataclass(frozen=True)
class Span:
    name: str
    trace: str
    id: str
    parent: str
    links: frozenset[str]
    about: dict[str, Any]
    service: str
    is_error: bool


@dataclass
class Collector:
    """Everything that was received; `status` is what it answers."""

    status: int = 200
    spans: list[Span] = field(default_factory=list)
    points: dict[str, list[tuple[dict[str, Any], float]]] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        if self.status == 200:
            self.bodies.append(request.body)
            if request.path.endswith("/v1/traces"):
                self._take_spans(ExportTraceServiceRequest.FromString(request.body))
            else:
                self._take_metrics(ExportMetricsServiceRequest.FromString(request.body))
        return Answer(b"", self.status, {"Content-Type": "application/x-protobuf"})

    def named(self, beginning: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(beginning)]

    def trace(self, trace: str) -> list[Span]:
        return [span for span in self.spans if span.trace == trace]

    def _take_spans(self, received: Any) -> None:
        for resource in received.resource_spans:
            service = _plain(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [_span(one, service) for one in scope.spans]

    def _take_metrics(self, received: Any) -> None:
        for resource in received.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self.points[metric.name] = [
                        _point(one) for one in getattr(metric, metric.WhichOneof("data")).data_points
                    ]


def _span(one: Any, service: str) -> Span:
    links = frozenset(link.span_id.hex() for link in one.links)
    about = _plain(one.attributes)
    ids = one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex()
    return Span(one.name, *ids, links, about, service, is_error=one.status.code == 2)


def _point(one: Any) -> tuple[dict[str, Any], float]:
    value = one.sum if hasattr(one, "bucket_counts") else one.as_double or float(one.as_int)
    return _plain(one.attributes), value


def _plain(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    """Run a collector for a while, and return it with its address."""
    collector = Collector()
    with served(collector) as address:
        yield collector, address
