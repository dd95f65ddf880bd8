"""Exporters that tell of an outage once a minute instead of at every try (see `outages.py`)."""

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from matoolkit.errors import MatoolkitError
from matoolkit.outages import Outage


class ToldSpanExporter(SpanExporter):
    """Sends spans through another exporter."""

    def __init__(self, exporter: SpanExporter, trouble: Outage) -> None:
        self._exporter = exporter
        self._trouble = trouble

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        result = self._exporter.export(spans)
        _tell(self._trouble, is_sent=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        """Send no more."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Send what the other exporter still has."""
        return self._exporter.force_flush(timeout_millis)


class ToldMetricExporter(MetricExporter):
    """Sends metrics through another exporter."""

    def __init__(self, exporter: MetricExporter, trouble: Outage) -> None:
        # The reader asks for these, and an exporter has no other place for them.
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)  # noqa: SLF001
        self._exporter = exporter
        self._trouble = trouble

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **options: Any) -> MetricExportResult:
        """Send metrics."""
        result = self._exporter.export(metrics_data, timeout_millis, **options)
        _tell(self._trouble, is_sent=result is MetricExportResult.SUCCESS)
        return result

    def shutdown(self, timeout_millis: float = 30_000, **options: Any) -> None:
        """Send no more."""
        self._exporter.shutdown(timeout_millis, **options)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Send what the other exporter still has."""
        return self._exporter.force_flush(timeout_millis)


def _tell(trouble: Outage, *, is_sent: bool) -> None:
    if is_sent:
        trouble.worked()
    else:
        trouble.failed(MatoolkitError("the receiver did not take it"))
