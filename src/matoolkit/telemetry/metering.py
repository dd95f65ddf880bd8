"""Numbers: what there is to measure, and counting while it happens (OpenTelemetry, ADR 35).

`MEASURES` is the one list of them. What a process counts goes through `count` and `took`; what the state says is read
by `admin/measuring.py`, for OpenTelemetry and for `/metrics` alike. No label ever holds the key of a member.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, Meter

# A job takes between a hundredth of a second and hours; a phase may begin days late.
_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 14400, 86400)


class Form(StrEnum):
    """How numbers of a measure are put together."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that is measured."""

    name: str
    form: Form
    unit: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def name_at_metrics(self) -> str:
        """Its name for Prometheus, which has no dots and ends with the unit."""
        return self.name.replace(".", "_") + ("_seconds" if self.unit == "s" else "")


STEPS = Measure(
    "matoolkit.steps",
    Form.COUNTER,
    "{step}",
    ("runbook", "kind", "outcome"),
    "Answers to jobs and what became of their steps: succeeded, failed, retried or polled; the kind is step, init or"
    " rollback.",
)
JOB_DURATION = Measure(
    "matoolkit.job.duration",
    Form.HISTOGRAM,
    "s",
    ("worker", "function", "outcome"),
    "How long a worker took for a job: success, failure or throttled.",
)
THROTTLED = Measure(
    "matoolkit.calls.throttled",
    Form.COUNTER,
    "{call}",
    ("api",),
    "Calls that Graph or Exchange answered with: later.",
)
PHASE_DELAY = Measure(
    "matoolkit.phase.delay",
    Form.HISTOGRAM,
    "s",
    ("runbook",),
    "How much later than due a phase was dispatched.",
)
GATE_WAIT = Measure(
    "matoolkit.gate.wait",
    Form.HISTOGRAM,
    "s",
    ("kind", "runbook"),
    "For how long a gate had been shut when it opened, by what shut it; the runbook is empty if it kept all of them.",
)
GATES = Measure("matoolkit.gates.shut", Form.GAUGE, "{gate}", ("kind",), "Gates that are shut, by what shut them.")
BATCHES = Measure("matoolkit.batches", Form.GAUGE, "{batch}", ("runbook", "status"), "Batches by runbook and status.")
FAILED_MEMBERS = Measure(
    "matoolkit.failed_members",
    Form.GAUGE,
    "{member}",
    ("runbook", "step", "type", "cause"),
    "Failed members of unfinished batches by cause, the 100 largest.",
)
UNDO_FAILURES = Measure(
    "matoolkit.undo.steps.failed",
    Form.GAUGE,
    "{step}",
    ("runbook",),
    "Steps of rollbacks and removals that failed, by runbook.",
)
TICK_AGE = Measure("matoolkit.tick.age", Form.GAUGE, "s", ("runbook",), "Seconds since the last tick of a runbook.")
DEAD_LETTERS = Measure(
    "matoolkit.dead_letters.open", Form.GAUGE, "{message}", (), "Open dead letters, counted up to 1000."
)
PHASE_LAG = Measure(
    "matoolkit.phase.lag", Form.GAUGE, "s", (), "How long the longest overdue phase has waited that no gate keeps."
)
QUEUE_LENGTH = Measure(
    "matoolkit.queue.length",
    Form.GAUGE,
    "{message}",
    ("topic", "subscription"),
    "Messages that wait in a subscription of the SQL bus; Azure counts those of Service Bus itself.",
)
OUTBOX_LENGTH = Measure(
    "matoolkit.outbox.length", Form.GAUGE, "{message}", (), "Messages that wait to be sent to Service Bus."
)
MEASURES = (
    *(STEPS, JOB_DURATION, THROTTLED, PHASE_DELAY, GATE_WAIT),
    *(GATES, BATCHES, FAILED_MEMBERS, UNDO_FAILURES, TICK_AGE, DEAD_LETTERS, PHASE_LAG, QUEUE_LENGTH, OUTBOX_LENGTH),
)

_counters: "dict[Measure, Counter]" = {}
_histograms: "dict[Measure, Histogram]" = {}


def switch_on(meter: "Meter | None") -> None:
    """Count with a meter from now on, in the whole process; with none, count no more."""
    _counters.clear()
    _histograms.clear()
    if meter is None:
        return
    for one in MEASURES:
        if one.form is Form.COUNTER:
            _counters[one] = meter.create_counter(one.name, one.unit, one.meaning)
        elif one.form is Form.HISTOGRAM:
            _histograms[one] = meter.create_histogram(
                one.name, one.unit, one.meaning, explicit_bucket_boundaries_advisory=_SECONDS
            )


def is_on() -> bool:
    """Whether anything is counted."""
    return bool(_counters)


def count(what: Measure, labels: Mapping[str, str], by: int = 1) -> None:
    """Count something that happened."""
    if counter := _counters.get(what):
        counter.add(by, labels)


def took(what: Measure, seconds: float, labels: Mapping[str, str]) -> None:
    """Note how long something took."""
    if histogram := _histograms.get(what):
        histogram.record(seconds, labels)
