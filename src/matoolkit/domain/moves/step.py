"""The moves of a step; the steps of init, rollbacks and removals make the same ones."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from matoolkit.domain.moves import Guard, Move, Value
from matoolkit.domain.states import ENDED_STEPS, OPEN_STEPS, UNSUCCESSFUL_STEPS, StepStatus
from matoolkit.records import record

_WAITING = frozenset({StepStatus.PENDING, StepStatus.POLLING})
_OUT = frozenset({StepStatus.DISPATCHED})
# A lost job was a failed attempt. While the retry waits its answer still counts, but not as one more failure (O16).
_OUT_OR_LOST = _OUT | {StepStatus.PENDING}

_AN_ANSWER = (Guard.SAME_JOB, Guard.UNANSWERED)
_A_LOSS = (Guard.SAME_JOB, Guard.OVERDUE)

_ENDED: Mapping[str, object] = MappingProxyType(
    {"completed_at": Value.NOW, "retry_after": None, "poll_due_at": None, "throttled_since": None}
)
_ANSWERED: Mapping[str, object] = MappingProxyType({"answered_at": Value.NOW, "lost_at": None})
_POLLED: Mapping[str, object] = MappingProxyType({"last_polled_at": Value.NOW, "poll_count": Value.ONE_MORE})
_UNSTARTED: Mapping[str, object] = MappingProxyType(
    {
        **dict.fromkeys(("function_name", "params_json", "job_id", "result_json", "error_type", "error_message")),
        **dict.fromkeys(("error_fingerprint", "missing_outputs_json", "completed_at", "answered_at")),
        **dict.fromkeys(("poll_started_at", "last_polled_at")),
        **dict.fromkeys(("poll_due_at", "retry_after", "throttled_since")),
        "retry_count": 0,
        "poll_count": 0,
    }
)

DISPATCH = Move(
    "dispatch",
    "A job is sent: for the first time, for another try, or to ask whether it is done.",
    _WAITING,
    StepStatus.DISPATCHED,
    {"dispatched_at": Value.NOW, "answered_at": None, "retry_after": None, "poll_due_at": None},
    (Guard.NEXT_ATTEMPT,),
)
SUCCEED = Move(
    "succeed",
    "The worker has done it.",
    _OUT_OR_LOST,
    StepStatus.SUCCEEDED,
    {**_ANSWERED, **_ENDED, **dict.fromkeys(("error_type", "error_message", "error_fingerprint"))},
    _AN_ANSWER,
)
POLL_LATER = Move(
    "poll later",
    "The worker has begun it and is not done yet: it is asked again. The first such answer starts the time limit.",
    _OUT_OR_LOST,
    StepStatus.POLLING,
    {**_ANSWERED, **_POLLED, "poll_started_at": Value.KEPT_OR_NOW, "retry_after": None, "throttled_since": None},
    _AN_ANSWER,
)
TIME_OUT = Move(
    "time out",
    "The worker was still not done at the deadline of the poll.",
    _OUT_OR_LOST,
    StepStatus.POLL_TIMEOUT,
    {**_ANSWERED, **_ENDED, **_POLLED},
    _AN_ANSWER,
)
RETRY_LATER = Move(
    "retry later",
    "The job failed and is tried again.",
    _OUT,
    StepStatus.PENDING,
    _ANSWERED,
    _AN_ANSWER,
)
FAIL = Move(
    "fail",
    "The job failed, or became a dead letter, and is not tried again.",
    _OUT,
    StepStatus.FAILED,
    {**_ANSWERED, **_ENDED},
    _AN_ANSWER,
)
RETRY_LOST = Move(
    "retry a lost job",
    "No answer came in time, and the step is tried again.",
    _OUT,
    StepStatus.PENDING,
    {"lost_at": None},
    _A_LOSS,
)
FAIL_LOST = Move(
    "fail a lost job",
    "No answer came in time, and the step is not tried again.",
    _OUT,
    StepStatus.FAILED,
    {"lost_at": None, **_ENDED},
    _A_LOSS,
)
FAIL_UNSENT = Move(
    "fail unsent",
    "No job can be made of the step.",
    # A secret that a poll needs may no longer be found (rule W8).
    _WAITING,
    StepStatus.FAILED,
    _ENDED,
)
CANCEL = Move(
    "cancel",
    "The step is no longer wanted. A job that is out stays out until it answers or is lost.",
    OPEN_STEPS,
    StepStatus.CANCELLED,
    _ENDED,
)
NOTE_LATE = Move(
    "note late",
    "The job of a step that has ended answers; only its outputs are of use.",
    UNSUCCESSFUL_STEPS,
    None,
    _ANSWERED,
    _AN_ANSWER,
)
WITHDRAW = Move(
    "withdraw",
    "The job of a step that has ended was taken back before anybody saw it.",
    UNSUCCESSFUL_STEPS,
    None,
    {"lost_at": None},
    (Guard.SAME_JOB,),
)
# Where it was before it was sent, and due at once; no try is used up, and the attempt stays counted (rule G4).
_TAKEN_BACK = (Guard.SAME_JOB, Guard.UNANSWERED)
TAKE_BACK = Move(
    "take back",
    "A gate has shut, and nobody had received the job: it is sent when the gate is open.",
    _OUT,
    StepStatus.PENDING,
    {"lost_at": None},
    _TAKEN_BACK,
)
TAKE_BACK_RETRY = Move(
    "take back another try",
    "A gate has shut, and nobody had received the job of another try.",
    _OUT,
    StepStatus.PENDING,
    {"lost_at": None, "retry_after": Value.NOW},
    _TAKEN_BACK,
)
TAKE_BACK_POLL = Move(
    "take back a poll",
    "A gate has shut, and nobody had received the question whether it is done.",
    _OUT,
    StepStatus.POLLING,
    {"lost_at": None, "poll_due_at": Value.NOW},
    _TAKEN_BACK,
)
GIVE_UP = Move(
    "give up",
    "The job of a step that has ended did not answer in time.",
    UNSUCCESSFUL_STEPS,
    None,
    {"lost_at": None},
    (Guard.OVERDUE,),
)
REOPEN = Move(
    "reopen",
    "A person wants the step to run again.",
    UNSUCCESSFUL_STEPS,
    StepStatus.PENDING,
    _UNSTARTED,
    # The answer of a job that is out would be taken for that of the new attempt.
    (Guard.NOT_OUT,),
)
REPEAT = Move(
    "repeat",
    "What the step's sequence did was undone, and a person wants all of it to run again.",
    ENDED_STEPS,
    StepStatus.PENDING,
    _UNSTARTED,
    (Guard.NOT_OUT,),
)

MOVES = (
    DISPATCH,
    SUCCEED,
    POLL_LATER,
    TIME_OUT,
    RETRY_LATER,
    FAIL,
    RETRY_LOST,
    FAIL_LOST,
    FAIL_UNSENT,
    CANCEL,
    NOTE_LATE,
    WITHDRAW,
    TAKE_BACK,
    TAKE_BACK_RETRY,
    TAKE_BACK_POLL,
    GIVE_UP,
    REOPEN,
    REPEAT,
)


@record
class Dispatch:
    """A job that is about to be sent; `attempt` is one more than the row has."""

    move: ClassVar = DISPATCH
    id: int
    attempt: int
    job_id: str
    function_name: str
    params_json: str
    lost_at: datetime


@record
class Succeed:
    """A job that succeeded."""

    move: ClassVar = SUCCEED
    id: int
    job_id: str
    result_json: str | None
    missing_outputs_json: str | None = None


@record
class PollLater:
    """A job that answered that it is not done yet."""

    move: ClassVar = POLL_LATER
    id: int
    job_id: str
    result_json: str | None
    poll_due_at: datetime


@record
class Fail:
    """A job that failed and is not tried again."""

    move: ClassVar = FAIL
    id: int
    job_id: str
    error_type: str | None
    error_message: str
    result_json: str | None = None
    error_fingerprint: str | None = None


@record
class TimeOut(Fail):
    """A job that was still not done when it had to be."""

    move: ClassVar = TIME_OUT


@record
class FailLost(Fail):
    """A job that did not answer in time and is not tried again."""

    move: ClassVar = FAIL_LOST


@record
class RetryLater:
    """A job that failed and is tried again."""

    move: ClassVar = RETRY_LATER
    id: int
    job_id: str
    error_type: str | None
    error_message: str
    retry_after: datetime
    retry_count: int
    throttled_since: datetime | None = None


@record
class RetryLost(RetryLater):
    """A job that did not answer in time and is tried again."""

    move: ClassVar = RETRY_LOST


@record
class FailUnsent:
    """A step that fails before a job is sent: a variable cannot be resolved, a message would be too large."""

    move: ClassVar = FAIL_UNSENT
    id: int
    error_type: str | None
    error_message: str
    error_fingerprint: str | None = None


@record
class NoteLate:
    """The answer to a job of a step that has ended."""

    move: ClassVar = NOTE_LATE
    id: int
    job_id: str
    result_json: str | None


@record
class Withdraw:
    """A job that was taken back before it left."""

    move: ClassVar = WITHDRAW
    id: int
    job_id: str


@record
class TakeBack:
    """A first job that a gate keeps after all."""

    move: ClassVar = TAKE_BACK
    id: int
    job_id: str


@record
class TakeBackRetry(TakeBack):
    """Another try that a gate keeps after all."""

    move: ClassVar = TAKE_BACK_RETRY


@record
class TakeBackPoll(TakeBack):
    """A poll that a gate keeps after all."""

    move: ClassVar = TAKE_BACK_POLL


@record
class GiveUp:
    """A step that has ended, whose job is lost."""

    move: ClassVar = GIVE_UP
    id: int


# Moves that bring values of their own for each step; the others are made for many steps alike.
StepMove: TypeAlias = (
    Dispatch
    | Succeed
    | PollLater
    | TimeOut
    | RetryLater
    | Fail
    | RetryLost
    | FailLost
    | FailUnsent
    | NoteLate
    | Withdraw
    | TakeBack
    | TakeBackRetry
    | TakeBackPoll
    | GiveUp
)
