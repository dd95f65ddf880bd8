"""What a worker tells of a job by span and numbers: which job it is and how it ended, never what it was given."""

from typing import Any

from matoolkit.domain.messages import ResultStatus, WorkerJob, WorkerResult
from matoolkit.ids import parse_job_id
from matoolkit.telemetry import metering, tracing
from matoolkit.telemetry.tracing import Span
from matoolkit.worker.execution import Execution

_LONGEST_NAME = 200
# The name of a function comes with the job, so it may be anything; names of spans and labels of metrics must not.
_UNKNOWN = "unknown"


def span_of_job(execution: Execution, job: WorkerJob, traceparent: str | None) -> Span:
    """Return the span of a job, below the span that sent it."""
    if not tracing.is_on():
        return tracing.NO_SPAN
    function = _function(execution, job)
    return tracing.span_of(traceparent, f"job {function}", {**_about(job), "function": function})


def note_result(span: Span, execution: Execution, job: WorkerJob, result: WorkerResult) -> None:
    """Tell how a job ended."""
    is_throttled = result.error is not None and result.error.is_throttled
    if result.status is not ResultStatus.SUCCESS:
        span.fail("Throttled" if is_throttled else "JobFailed")
    if metering.is_on():
        outcome = "throttled" if is_throttled else str(result.status).lower()
        labels = {"worker": execution.worker_id, "function": _function(execution, job), "outcome": outcome}
        metering.took(metering.JOB_DURATION, result.duration_ms / 1000, labels)


def _function(execution: Execution, job: WorkerJob) -> str:
    return execution.registry.spelled(job.function_name) or _UNKNOWN


def _about(job: WorkerJob) -> dict[str, Any]:
    """Return what is known of a job; what other programs write into it is checked."""
    ref = parse_job_id(job.job_id)
    given = job.correlation if isinstance(job.correlation, dict) else {}
    runbook = given.get("RunbookName")
    return {
        "job": job.job_id[:_LONGEST_NAME],
        "batch": job.batch_id,
        "worker": job.worker_id,
        "runbook": runbook[:_LONGEST_NAME] if isinstance(runbook, str) else None,
        "step_execution_id": ref and ref.execution_id,
        "kind": ref and str(ref.kind),
        "attempt": ref and ref.attempt,
    }
