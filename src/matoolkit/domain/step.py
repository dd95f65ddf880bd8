"""The life of a step; the steps of init, rollbacks and removals live the same one.

`decide` is pure and total: time and outcome arrive in the event, the move leaves. What comes too late, twice or out of
turn is ignored with a reason, for the bus delivers at least once.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import ClassVar, TypeAlias, assert_never

from matoolkit.domain.states import ENDED_STEPS, OPEN_STEPS, UNSUCCESSFUL_STEPS, StepStatus
from matoolkit.ids import Reason
from matoolkit.records import record

DEFAULT_RETRY_INTERVAL = timedelta(minutes=5)


@record
class Step:
    """What of a step matters for its next move."""

    status: StepStatus
    attempt: int
    answered_at: datetime | None
    is_poll_step: bool
    poll_interval_sec: int | None
    poll_timeout_sec: int | None
    poll_started_at: datetime | None
    poll_due_at: datetime | None
    retry_count: int
    max_retries: int
    retry_interval_sec: int | None
    retry_after: datetime | None
    throttled_since: datetime | None


@record
class Problem:
    """What went wrong, in the worker's words or ours."""

    message: str
    type: str | None = None


@record
class TurnCame:
    """Everything that the step had to wait for has happened."""

    at: datetime


@record
class RetryDue:
    """The wait before another try may be over."""

    at: datetime


@record
class PollDue:
    """The wait before another question may be over."""

    at: datetime


@record
class Unsendable:
    """No job can be made of the step."""

    at: datetime
    problem: Problem


@record
class Succeeded:
    """The worker has done it."""

    at: datetime
    attempt: int


@record
class Incomplete:
    """The worker has begun it and is not done yet."""

    at: datetime
    attempt: int


@record
class Failed:
    """The worker could not do it; while it is throttled that costs no retry, up to a limit."""

    at: datetime
    attempt: int
    problem: Problem
    is_throttled: bool = False
    throttle_limit: timedelta = timedelta(hours=24)


@record
class JobLost:
    """The job has been out for so long that nobody will answer."""

    at: datetime
    problem: Problem


@record
class JobDead:
    """The bus has put the job aside: no worker will get it."""

    at: datetime
    attempt: int
    problem: Problem


@record
class Cancelled:
    """The step is no longer wanted."""

    at: datetime


@record
class Reopened:
    """A person wants the step to run again."""

    at: datetime


@record
class Undone:
    """What the step's sequence did was undone, and a person wants all of it to run again."""

    at: datetime


Event: TypeAlias = (
    TurnCame
    | RetryDue
    | PollDue
    | Unsendable
    | Succeeded
    | Incomplete
    | Failed
    | JobLost
    | JobDead
    | Cancelled
    | Reopened
    | Undone
)


@record
class Dispatch:
    """Send a job."""

    to: ClassVar = StepStatus.DISPATCHED
    reason: Reason


@record
class Succeed:
    """End well."""

    to: ClassVar = StepStatus.SUCCEEDED


@record
class RetryLater:
    """Wait and try again."""

    to: ClassVar = StepStatus.PENDING
    problem: Problem
    retry_after: datetime
    retry_count: int
    throttled_since: datetime | None


@record
class PollLater:
    """Wait and ask again."""

    to: ClassVar = StepStatus.POLLING
    poll_due_at: datetime


@record
class TimeOut:
    """Stop asking."""

    to: ClassVar = StepStatus.POLL_TIMEOUT
    problem: Problem


@record
class Fail:
    """End badly."""

    to: ClassVar = StepStatus.FAILED
    problem: Problem


@record
class Cancel:
    """End without an outcome."""

    to: ClassVar = StepStatus.CANCELLED


@record
class Reopen:
    """Begin again."""

    to: ClassVar = StepStatus.PENDING


@record
class NoteLate:
    """Take the answer's outputs, and move nothing: nobody waited for it any more."""

    to: ClassVar = None
    reason: str


@record
class Ignore:
    """Do nothing."""

    to: ClassVar = None
    reason: str


Move: TypeAlias = Dispatch | Succeed | RetryLater | PollLater | TimeOut | Fail | Cancel | Reopen | NoteLate | Ignore

_PENDING, _DISPATCHED, _POLLING = StepStatus.PENDING, StepStatus.DISPATCHED, StepStatus.POLLING
_SUCCEEDED, _FAILED, _TIMED_OUT = StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.POLL_TIMEOUT

# Where a step is, what happens, and where it can be then. Everything else is ignored.
MOVES: Mapping[tuple[StepStatus, type[Event]], frozenset[StepStatus]] = MappingProxyType(
    {
        (_PENDING, TurnCame): frozenset({_DISPATCHED}),
        (_PENDING, RetryDue): frozenset({_DISPATCHED}),
        (_POLLING, PollDue): frozenset({_DISPATCHED}),
        (_PENDING, Unsendable): frozenset({_FAILED}),
        # A secret that a poll needs can be resolved no longer (rule W8).
        (_POLLING, Unsendable): frozenset({_FAILED}),
        (_DISPATCHED, Succeeded): frozenset({_SUCCEEDED}),
        (_DISPATCHED, Incomplete): frozenset({_POLLING, _TIMED_OUT, _PENDING, _FAILED}),
        (_DISPATCHED, Failed): frozenset({_PENDING, _FAILED}),
        (_DISPATCHED, JobLost): frozenset({_PENDING, _FAILED}),
        (_DISPATCHED, JobDead): frozenset({_FAILED}),
        # The job counted as lost and its retry waits, when the answer comes after all.
        (_PENDING, Succeeded): frozenset({_SUCCEEDED}),
        (_PENDING, Incomplete): frozenset({_POLLING, _TIMED_OUT}),
        **{(status, Cancelled): frozenset({StepStatus.CANCELLED}) for status in sorted(OPEN_STEPS)},
        **{(status, Reopened): frozenset({_PENDING}) for status in sorted(UNSUCCESSFUL_STEPS)},
        **{(status, Undone): frozenset({_PENDING}) for status in sorted(ENDED_STEPS)},
    }
)


_ABOUT_A_JOB = (Succeeded, Incomplete, Failed, JobDead)


def decide(step: Step, event: Event) -> Move:
    """Say what becomes of a step when something happens."""
    if isinstance(event, _ABOUT_A_JOB) and (late := _late(step, event)) is not None:
        return late
    if (step.status, type(event)) not in MOVES:
        return Ignore(f"{_named(event)} while it is {step.status}")
    match event:
        case Succeeded():
            return Succeed()
        case Incomplete() | Failed():
            return _after_setback(step, event)
        case TurnCame() | RetryDue() | PollDue():
            return _after_waiting(step, event)
        case JobLost(at, problem):
            return _retry(step, at, problem, None) or Fail(problem)
        case Unsendable(_, problem) | JobDead(_, _, problem):
            return Fail(problem)
        case Cancelled():
            return Cancel()
        case Reopened() | Undone():
            return Reopen()
        case _:
            assert_never(event)


def _after_waiting(step: Step, event: TurnCame | RetryDue | PollDue) -> Dispatch | Ignore:
    match event:
        case TurnCame():
            return Dispatch(Reason.ATTEMPT) if step.retry_after is None else Ignore("its retry waits")
        case RetryDue(at):
            is_due = step.retry_after is not None and step.retry_after <= at
            return Dispatch(Reason.RETRY) if is_due else Ignore("no retry is due")
        case PollDue(at):
            is_due = step.poll_due_at is not None and step.poll_due_at <= at
            return Dispatch(Reason.POLL) if is_due else Ignore("no poll is due")


def _late(step: Step, event: Succeeded | Incomplete | Failed | JobDead) -> NoteLate | Ignore | None:
    """Say why an answer is not the one that the step waits for, if it is not."""
    if event.attempt > step.attempt:
        return Ignore(f"it answers attempt {event.attempt}, and there were only {step.attempt}")
    if event.attempt < step.attempt:
        reason = f"it answers attempt {event.attempt}, and attempt {step.attempt} has followed"
        is_of_use = isinstance(event, Succeeded) and step.status is not StepStatus.SUCCEEDED
        return NoteLate(reason) if is_of_use else Ignore(reason)
    if step.answered_at is not None:
        return Ignore("it was answered before")
    if step.status in UNSUCCESSFUL_STEPS:
        return NoteLate(f"the step is {step.status}")
    if step.status is StepStatus.PENDING and step.retry_after is None:
        return Ignore("a person let the step begin again")
    return None


def _after_setback(step: Step, event: Incomplete | Failed) -> Move:
    return _after_incomplete(step, event) if isinstance(event, Incomplete) else _after_failure(step, event)


def _after_incomplete(step: Step, event: Incomplete) -> Move:
    if not step.is_poll_step and step.status is StepStatus.PENDING:
        return Ignore("its retry waits")
    if not step.is_poll_step:
        problem = Problem("the function says that it is not done yet, but the step has no `poll`")
        return _retry(step, event.at, problem, None) or Fail(problem)
    started, timeout = step.poll_started_at or event.at, timedelta(seconds=step.poll_timeout_sec or 0)
    if step.poll_started_at is not None and event.at >= started + timeout:
        return TimeOut(Problem(f"not done {timeout} after the first answer that said so", "PollTimeout"))
    return PollLater(event.at + timedelta(seconds=step.poll_interval_sec or 0))


def _after_failure(step: Step, event: Failed) -> Move:
    if not event.is_throttled:
        return _retry(step, event.at, event.problem, None) or Fail(event.problem)
    since = step.throttled_since or event.at
    if event.at - since < event.throttle_limit:
        return RetryLater(event.problem, event.at + _interval(step), step.retry_count, since)
    return _retry(step, event.at, event.problem, since) or Fail(event.problem)


def _retry(step: Step, at: datetime, problem: Problem, throttled_since: datetime | None) -> RetryLater | None:
    if step.retry_count >= step.max_retries:
        return None
    return RetryLater(problem, at + _interval(step), step.retry_count + 1, throttled_since)


def _interval(step: Step) -> timedelta:
    seconds = step.retry_interval_sec
    return DEFAULT_RETRY_INTERVAL if seconds is None else timedelta(seconds=seconds)


_NAMES: Mapping[type[Event], str] = MappingProxyType(
    {
        TurnCame: "its turn",
        RetryDue: "a retry",
        PollDue: "a poll",
        Unsendable: "a job that cannot be made",
        Succeeded: "a success",
        Incomplete: "an incomplete answer",
        Failed: "a failure",
        JobLost: "a lost job",
        JobDead: "a dead job",
        Cancelled: "a cancellation",
        Reopened: "a person's retry",
        Undone: "a person's retry of all",
    }
)


def _named(event: Event) -> str:
    return _NAMES[type(event)]
