"""Numbers for Prometheus, read when they are asked for; never a member's key as a label."""

from collections.abc import Iterable, Iterator

from matoolkit.admin.measuring import Sample, measured
from matoolkit.store import Store
from matoolkit.telemetry.metering import Measure


def metrics_text(store: Store) -> str:
    """Return all metrics in Prometheus' text format."""
    lines = (line for measure, samples in measured(store).items() for line in _family(measure, samples))
    return "\n".join(lines) + "\n"


def _family(measure: Measure, samples: Iterable[Sample]) -> Iterator[str]:
    name = measure.name_at_metrics
    yield f"# HELP {name} {measure.meaning}"
    yield f"# TYPE {name} {measure.form}"
    for labels, value in samples:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{told}}} {value:g}" if told else f"{name} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
