"""JSON to messages, tolerant of other writers."""

from collections.abc import Callable
from datetime import datetime

from matoolkit.bus.wire.fields import Fields
from matoolkit.clock import as_utc
from matoolkit.domain.messages import (
    AnnouncedFunction,
    AnnouncedParameter,
    BatchInit,
    BatchWake,
    JobFacts,
    MemberAdded,
    MemberRemoved,
    Message,
    PhaseDue,
    PollCheck,
    ResultStatus,
    RetryCheck,
    WorkerError,
    WorkerHello,
    WorkerJob,
    WorkerResult,
)
from matoolkit.errors import NaiveTime, TimeOutOfRange, UnreadableMessage
from matoolkit.ids import Kind

_STATUSES = {str(status).casefold(): status for status in ResultStatus}


def _read_batch_init(fields: Fields) -> BatchInit:
    return BatchInit(fields.number("BatchId"), fields.text("RunbookName"), fields.number("RunbookVersion"))


def _read_phase_due(fields: Fields) -> PhaseDue:
    return PhaseDue(
        fields.number("BatchId"),
        fields.text("RunbookName"),
        fields.number("RunbookVersion"),
        fields.text("PhaseName"),
        fields.number("PhaseExecutionId"),
    )


def _read_member(make: Callable[[int, str, int], Message]) -> Callable[[Fields], Message]:
    return lambda fields: make(fields.number("BatchId"), fields.text("MemberKey"), fields.number("BatchMemberId"))


def _read_wake(fields: Fields) -> BatchWake:
    return BatchWake(fields.number("BatchId"), fields.text("RunbookName"))


def _read_check(make: Callable[[int, Kind], Message]) -> Callable[[Fields], Message]:
    return lambda fields: make(fields.number("StepExecutionId"), fields.kind())


def _read_job(fields: Fields) -> WorkerJob:
    return WorkerJob(
        fields.text("JobId"),
        fields.number("BatchId"),
        fields.text("WorkerId"),
        fields.text("FunctionName"),
        fields.mapping("Parameters"),
        fields["CorrelationData"],
        _read_facts(fields),
    )


def _read_facts(fields: Fields) -> JobFacts | None:
    """Read what a function may want to know. Nothing depends on it, so nothing in it makes a job unreadable."""
    written = fields["Deadline"]
    try:
        deadline = as_utc(datetime.fromisoformat(written)) if isinstance(written, str) else None
    except (ValueError, NaiveTime, TimeOutOfRange):
        deadline = None
    attempt, step = fields["Attempt"], fields["StepName"]
    if deadline is None or type(attempt) is not int or not isinstance(step, str):
        return None
    phase, member = fields["PhaseName"], fields["MemberKey"]
    return JobFacts(
        attempt,
        step,
        phase if isinstance(phase, str) else None,
        member if isinstance(member, str) else None,
        deadline,
    )


def _read_result(fields: Fields) -> WorkerResult:
    status = _STATUSES.get(fields.text("Status").casefold())
    if status is None:
        raise UnreadableMessage("'Status' is neither Success nor Failure")
    return WorkerResult(
        fields.text("JobId"),
        status,
        fields["Timestamp"],
        fields["Result"],
        fields.text("ResultType", default="") or None,
        _read_error(fields.part("Error")) if fields["Error"] is not None else None,
        fields.number("DurationMs", default=0),
        fields["CorrelationData"],
    )


def _read_error(fields: Fields) -> WorkerError:
    return WorkerError(
        fields.text("Message", default=""),
        fields.text("Type", default="") or None,
        fields.flag("IsThrottled"),
        fields.number("Attempts", default=1),
    )


def _read_hello(fields: Fields) -> WorkerHello:
    functions = tuple(
        AnnouncedFunction(function.text("Name"), tuple(map(_read_parameter, function.parts("Parameters"))))
        for function in fields.parts("Functions")
    )
    return WorkerHello(fields.text("WorkerId"), functions)


def _read_parameter(fields: Fields) -> AnnouncedParameter:
    return AnnouncedParameter(
        fields.text("Name"), fields.text("Type", default="any"), fields.flag("Mandatory"), fields.flag("Secret")
    )


READERS: dict[str, Callable[[Fields], Message]] = {
    "batch-init": _read_batch_init,
    "phase-due": _read_phase_due,
    "member-added": _read_member(MemberAdded),
    "member-removed": _read_member(MemberRemoved),
    "batch-wake": _read_wake,
    "poll-check": _read_check(PollCheck),
    "retry-check": _read_check(RetryCheck),
    "worker-job": _read_job,
    "worker-result": _read_result,
    "worker-hello": _read_hello,
}
