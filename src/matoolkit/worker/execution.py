"""A job becomes a result: the function is found, its secrets fetched, its parameters checked, and it is called (W7).

Whatever goes wrong is a failure of that job alone, told in words, with nothing secret in them.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import orjson

from matoolkit.clock import Clock
from matoolkit.domain.delivery import MAX_BODY_BYTES
from matoolkit.domain.messages import ResultStatus, WorkerError, WorkerJob, WorkerResult
from matoolkit.ids import parse_job_id
from matoolkit.runbook.templates import Json
from matoolkit.worker.context import Context, Job
from matoolkit.worker.failures import FunctionFailed, UnusableResult, WrongWorker
from matoolkit.worker.masking import Masking
from matoolkit.worker.references import resolved
from matoolkit.worker.registry import Registry

_LONGEST_MESSAGE = 4000
# The rest of a result message is far smaller than this.
_LARGEST_RESULT = MAX_BODY_BYTES - 16 * 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Execution:
    """Does jobs, each in the thread that asks for it."""

    worker_id: str
    registry: Registry
    context: Context
    masking: Masking
    clock: Clock

    def result_of(self, job: WorkerJob) -> WorkerResult:
        """Do a job."""
        began = self.clock.monotonic()
        secrets: set[str] = set()
        value, error = self._do(job, secrets)
        return WorkerResult(
            job.job_id,
            ResultStatus.SUCCESS if error is None else ResultStatus.FAILURE,
            self.clock.now(),
            value,
            result_type(value),
            error,
            round(1000 * (self.clock.monotonic() - began)),
            job.correlation,
        )

    def _do(self, job: WorkerJob, secrets: set[str]) -> tuple[Json, WorkerError | None]:
        try:
            value = self._called(job, secrets)
            return self.masking.outgoing(_shaped(job.function_name, value), secrets), None
        # A function may raise anything, and only its own job fails.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return None, self._told(error, secrets)

    def _called(self, job: WorkerJob, secrets: set[str]) -> Any:
        if job.worker_id.casefold() != self.worker_id.casefold():
            raise WrongWorker(f"the job is for worker {job.worker_id[:100]!r}, and this is {self.worker_id}")
        function = self.registry.find(job.function_name)
        names, look_up = function.secret_names, self.context.secrets.get
        parameters = resolved(function.name, job.parameters, names, look_up, secrets)
        self.masking.begin(secrets)
        try:
            return function.run(replace(self.context, job=job_of(job)), parameters)
        except FunctionFailed:
            raise
        except (Exception, SystemExit):
            log.exception("%s raised", function.name, extra={"job": job.job_id})
            raise
        finally:
            self.masking.end(secrets)

    def _told(self, error: BaseException, secrets: Collection[str]) -> WorkerError:
        told = _error_of(error)
        # The kind of an error may be any text that the function chose.
        message, kind = self.masking.outgoing([told.message, told.type], secrets)
        return replace(told, message=message[:_LONGEST_MESSAGE], type=kind)


def job_of(job: WorkerJob) -> Job:
    """Return what a function may know about its job."""
    ref, facts = parse_job_id(job.job_id), job.facts
    named = job.correlation if isinstance(job.correlation, dict) else {}
    runbook = named.get("RunbookName")
    return Job(
        job.job_id,
        job.batch_id,
        facts.attempt if facts else ref.attempt if ref else 1,
        f"{ref.kind}-{ref.execution_id}" if ref else job.job_id,
        runbook if isinstance(runbook, str) else None,
        facts.phase_name if facts else None,
        facts.step_name if facts else None,
        facts.member_key if facts else None,
        facts.deadline if facts else None,
    )


def result_type(value: Json) -> str | None:
    """Name the kind of a result as the contract does."""
    match value:
        case None:
            return None
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


def unsendable(result: WorkerResult) -> WorkerResult:
    """Make a failure of a result that no bus would carry, for what the function returned or what came with the job."""
    error = WorkerError("the result cannot be sent: it is too large or nested too deep", UnusableResult.__name__)
    return replace(result, status=ResultStatus.FAILURE, result=None, result_type=None, error=error, correlation=None)


def _shaped(function: str, value: Any) -> Json:
    """Return a value as JSON will have it."""
    if value is None or isinstance(value, bool):
        return value
    try:
        written = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError as error:
        # The text names types, never values.
        raise UnusableResult(f"{function} returned something that is not JSON: {error}") from None
    if len(written) > _LARGEST_RESULT:
        raise UnusableResult(f"{function} returned {len(written):,} bytes; at most {_LARGEST_RESULT:,} can be sent")
    shaped: Json = orjson.loads(written)
    return shaped


def _error_of(error: BaseException) -> WorkerError:
    if isinstance(error, FunctionFailed):
        return WorkerError(_printable(error.message), error.type, error.is_throttled, error.attempts)
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an error that cannot even be told is told by its name
        message = ""
    return WorkerError(_printable(message) or name, name)


def _printable(text: object) -> str:
    return str(text).encode(errors="replace").decode()
