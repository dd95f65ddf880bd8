"""What a worker can do: functions by name, and how a call of one becomes a result (rules W3 and W7)."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from matoolkit.clock import Clock
from matoolkit.domain.messages import ResultStatus, WorkerError, WorkerJob, WorkerResult
from matoolkit.runbook.templates import Json

Function: TypeAlias = Callable[[Mapping[str, Json]], Json]


class Registry:
    """The functions of a worker; no other name runs."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = {name.casefold(): function for name, function in functions.items()}

    def result_of(self, job: WorkerJob, clock: Clock) -> WorkerResult:
        """Call the function that a job names; whatever it raises is a failure of the job alone."""
        began = clock.monotonic()
        status, value, error = self._called(job)
        return WorkerResult(
            job.job_id,
            status,
            clock.now(),
            result=value,
            result_type=None if value is None else type_of(value),
            error=error,
            duration_ms=round(1000 * (clock.monotonic() - began)),
            correlation=job.correlation,
        )

    def _called(self, job: WorkerJob) -> tuple[ResultStatus, Json, WorkerError | None]:
        function = self._functions.get(job.function_name.casefold())
        if function is None:
            unknown = WorkerError(f"this worker has no function {job.function_name}", "UnknownFunction")
            return ResultStatus.FAILURE, None, unknown
        try:
            return ResultStatus.SUCCESS, function(job.parameters), None
        except Exception as error:  # noqa: BLE001 - a function may raise anything, and only its own job fails
            return ResultStatus.FAILURE, None, WorkerError(str(error), type(error).__name__)


def type_of(value: Json) -> str:
    """Name the kind of a result as the contract does."""
    match value:
        case bool():
            return "Boolean"
        case str():
            return "String"
        case int() | float():
            return "Number"
        case list():
            return "Array"
        case _:
            return "Object"
