"""The messages by which the parts of the system talk to each other (rule M9).

What they look like on the wire is in `bus/wire`; everything else sees these.
"""

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from matoolkit.ids import Kind
from matoolkit.records import record
from matoolkit.runbook.templates import Json


@record
class BatchInit:
    """A batch's init is to run."""

    batch_id: int
    runbook_name: str
    runbook_version: int


@record
class PhaseDue:
    """A phase of a batch is due."""

    batch_id: int
    runbook_name: str
    runbook_version: int
    phase_name: str
    phase_execution_id: int


@record
class MemberAdded:
    """A member joined a batch that has begun."""

    batch_id: int
    member_key: str
    batch_member_id: int


@record
class MemberRemoved:
    """A member left its batch."""

    batch_id: int
    member_key: str
    batch_member_id: int


@record
class BatchWake:
    """A gate that kept work of a batch was opened: everybody with something to do is looked at again."""

    batch_id: int
    runbook_name: str


@record
class PollCheck:
    """The worker is to be asked again whether the work is done."""

    execution_id: int
    kind: Kind


@record
class RetryCheck:
    """Failed work is to be tried again."""

    execution_id: int
    kind: Kind


# Any JSON. A worker returns it as it came, for people who read messages: results are matched by job id alone (rule O4).
Correlation: TypeAlias = Any


def correlation_of(execution_id: int, kind: Kind, runbook_name: str, runbook_version: int) -> Correlation:
    """Say which execution a job belongs to, in the words of the contract."""
    return {
        "StepExecutionId": execution_id,
        "IsInitStep": kind is Kind.INIT,
        "Kind": str(kind),
        "RunbookName": runbook_name,
        "RunbookVersion": runbook_version,
    }


@record
class JobFacts:
    """What a function may want to know about its job, besides its ids; a job of an older orchestrator has none.

    Init has neither phase nor member, a rollback has no phase. The deadline is when the job counts as lost.
    """

    attempt: int
    step_name: str
    phase_name: str | None
    member_key: str | None
    deadline: datetime


@record
class WorkerJob:
    """A function is to be called."""

    job_id: str
    batch_id: int
    worker_id: str
    function_name: str
    parameters: dict[str, Json]
    correlation: Correlation
    facts: JobFacts | None = None


class ResultStatus(StrEnum):
    """How a job ended."""

    SUCCESS = "Success"
    FAILURE = "Failure"


@record
class WorkerError:
    """Why a job failed."""

    message: str
    type: str | None = None
    is_throttled: bool = False
    attempts: int = 1


# When a job ended, by the clock of its worker. Any text of another program is accepted, because nothing depends on it.
Timestamp: TypeAlias = Any


@record
class WorkerResult:
    """A function returned, or failed."""

    job_id: str
    status: ResultStatus
    timestamp: Timestamp
    result: Json = None
    result_type: str | None = None
    error: WorkerError | None = None
    duration_ms: int = 0
    correlation: Correlation = None


@record
class AnnouncedParameter:
    """A parameter of a function that a worker has."""

    name: str
    type: str
    is_mandatory: bool = False
    is_secret: bool = False


@record
class AnnouncedFunction:
    """A function that a worker has."""

    name: str
    parameters: tuple[AnnouncedParameter, ...] = ()


@record
class WorkerHello:
    """A worker has started and says what it can do (rule W6)."""

    worker_id: str
    functions: tuple[AnnouncedFunction, ...] = field(default=())


Event: TypeAlias = BatchInit | PhaseDue | MemberAdded | MemberRemoved | BatchWake | PollCheck | RetryCheck
Message: TypeAlias = Event | WorkerJob | WorkerResult | WorkerHello
