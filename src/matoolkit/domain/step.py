"""Decides what happens to a step; the steps of init, rollbacks and removals follow the same rules.

`decide` is pure and total: an event with its time and outcome goes in, a move of the table comes out. An event that
comes too late, twice or out of turn is ignored with a reason, because the bus delivers at least once.
"""

from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from matoolkit.domain.causes import fingerprint_of
from matoolkit.domain.moves import Ignore
from matoolkit.domain.moves.step import (
    GIVE_UP,
    NOTE_LATE,
    Fail,
    FailLost,
    GiveUp,
    NoteLate,
    PollLater,
    RetryLater,
    RetryLost,
    StepMove,
    Succeed,
    TimeOut,
)
from matoolkit.domain.states import StepStatus
from matoolkit.ids import Reason
from matoolkit.records import record

DEFAULT_RETRY_INTERVAL = timedelta(minutes=5)


@record
class Step:
    """The part of a step that decides its next move."""

    id: int
    status: StepStatus
    attempt: int
    job_id: str | None
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

    @property
    def fingerprint(self) -> str:
        """What it has in common with other failures of the same cause."""
        return fingerprint_of(self.type, self.message)


@record
class Succeeded:
    """The worker has done it."""

    at: datetime
    attempt: int
    result_json: str | None = None
    missing_outputs_json: str | None = None


@record
class Incomplete:
    """The worker has begun it and is not done yet."""

    at: datetime
    attempt: int
    result_json: str | None = None
    # For how long gates kept its jobs since its first such answer (rule G7).
    kept: timedelta = timedelta()


@record
class Failed:
    """The worker could not do it; while it is throttled that costs no retry, up to a limit."""

    at: datetime
    attempt: int
    problem: Problem
    is_throttled: bool = False
    throttle_limit: timedelta = timedelta(hours=24)
    result_json: str | None = None
    # For how long gates kept its jobs since it was first throttled (rule G7).
    kept: timedelta = timedelta()


@record
class JobLost:
    """The job has been out for so long that no answer is expected."""

    at: datetime
    problem: Problem


@record
class JobDead:
    """The bus has put the job aside: no worker will get it."""

    at: datetime
    attempt: int
    problem: Problem


Answer: TypeAlias = Succeeded | Incomplete | Failed
Event: TypeAlias = Answer | JobLost | JobDead


def decide(step: Step, event: Event) -> StepMove | Ignore:
    """Say which move a step makes when something happens."""
    if not isinstance(event, JobLost) and (late := _late(step, event)) is not None:
        return late
    made = _move_after(step, event)
    if step.status not in made.move.from_states:
        return Ignore(f"{_NAMES[type(event)]} while it is {step.status}")
    return made


def time_that_ends(step: Step, event: Event, decided: StepMove | Ignore) -> datetime | None:
    """Return since when time ran, if it is time that ends work now: gates may have made it stand still (rule G7)."""
    if isinstance(event, Incomplete) and isinstance(decided, TimeOut):
        return step.poll_started_at
    is_out_of_patience = isinstance(event, Failed) and event.is_throttled and step.throttled_since is not None
    return step.throttled_since if is_out_of_patience and not _waits_free_of_charge(step, decided) else None


def why_not_sent_again(step: Step, reason: Reason, at: datetime) -> str | None:
    """Say why a retry or a poll is not due yet, or no longer; nothing if its job is to be sent."""
    status, due_at = StepStatus.PENDING, step.retry_after
    if reason is Reason.POLL:
        status, due_at = StepStatus.POLLING, step.poll_due_at
    if step.status is not status:
        return f"a {reason} while it is {step.status}"
    return None if due_at is not None and due_at <= at else f"no {reason} is due"


def _move_after(step: Step, event: Event) -> StepMove:
    match event:
        case Succeeded():
            return Succeed(step.id, step.job_id or "", event.result_json, event.missing_outputs_json)
        case Incomplete():
            return _after_incomplete(step, event)
        case Failed():
            return _after_failure(step, event)
        case JobLost():
            return _after_loss(step, event)
        case JobDead():
            return _fail(step, event.problem, None)
        case _:
            assert_never(event)


def _late(step: Step, event: Answer | JobDead) -> NoteLate | Ignore | None:
    """Say why an answer is not the one that the step waits for, if it is not."""
    if event.attempt > step.attempt:
        return Ignore(f"it answers attempt {event.attempt}, and there were only {step.attempt}")
    if event.attempt < step.attempt:
        reason = f"it answers attempt {event.attempt}, and attempt {step.attempt} has followed"
        is_of_use = isinstance(event, Succeeded) and step.status is not StepStatus.SUCCEEDED
        return Ignore(reason, keeps_outputs=is_of_use)
    if step.answered_at is not None:
        return Ignore("it was answered before")
    if step.status in NOTE_LATE.from_states:
        return NoteLate(step.id, step.job_id or "", None if isinstance(event, JobDead) else event.result_json)
    if step.status is StepStatus.PENDING and step.retry_after is None:
        return Ignore("a person let the step begin again")
    return None


def _after_incomplete(step: Step, event: Incomplete) -> StepMove:
    if not step.is_poll_step:
        problem = Problem("the function says that it is not done yet, but the step has no `poll`")
        return _retry(step, event.at, problem, None) or _fail(step, problem, event.result_json)
    job, started, timeout = step.job_id or "", step.poll_started_at, timedelta(seconds=step.poll_timeout_sec or 0)
    if started is not None and event.at >= started + timeout + event.kept:
        problem = Problem(f"not done {timeout} after the first answer that said so", "PollTimeout")
        return TimeOut(step.id, job, problem.type, problem.message, event.result_json, problem.fingerprint)
    return PollLater(step.id, job, event.result_json, event.at + timedelta(seconds=step.poll_interval_sec or 0))


def _after_failure(step: Step, event: Failed) -> StepMove:
    since = None
    if event.is_throttled:
        since = step.throttled_since or event.at
        if event.at - since < event.throttle_limit + event.kept:
            return _retry_later(step, event.at, event.problem, step.retry_count, since)
    return _retry(step, event.at, event.problem, since) or _fail(step, event.problem, event.result_json)


def _after_loss(step: Step, event: JobLost) -> StepMove:
    if step.status in GIVE_UP.from_states:
        return GiveUp(step.id)
    job, problem = step.job_id or "", event.problem
    if step.retry_count >= step.max_retries:
        return FailLost(step.id, job, problem.type, problem.message, None, problem.fingerprint)
    retry_after = event.at + _interval(step)
    return RetryLost(step.id, job, problem.type, problem.message, retry_after, step.retry_count + 1)


def _retry(step: Step, at: datetime, problem: Problem, throttled_since: datetime | None) -> RetryLater | None:
    if step.retry_count >= step.max_retries:
        return None
    return _retry_later(step, at, problem, step.retry_count + 1, throttled_since)


def _retry_later(step: Step, at: datetime, problem: Problem, count: int, since: datetime | None) -> RetryLater:
    retry_after = at + _interval(step)
    return RetryLater(step.id, step.job_id or "", problem.type, problem.message, retry_after, count, since)


def _waits_free_of_charge(step: Step, decided: StepMove | Ignore) -> bool:
    return isinstance(decided, Ignore) or (isinstance(decided, RetryLater) and decided.retry_count == step.retry_count)


def _fail(step: Step, problem: Problem, result_json: str | None) -> Fail:
    return Fail(step.id, step.job_id or "", problem.type, problem.message, result_json, problem.fingerprint)


def _interval(step: Step) -> timedelta:
    seconds = step.retry_interval_sec
    return DEFAULT_RETRY_INTERVAL if seconds is None else timedelta(seconds=seconds)


_NAMES: dict[type[Event], str] = {
    Succeeded: "a success",
    Incomplete: "an incomplete answer",
    Failed: "a failure",
    JobLost: "a lost job",
    JobDead: "a dead job",
}
