"""Every state of a step and everything that can happen to it (rules O4 to O7, O16)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import get_args

import pytest

from matoolkit.domain.moves import Ignore
from matoolkit.domain.moves.step import (
    MOVES,
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
from matoolkit.domain.step import (
    DEFAULT_RETRY_INTERVAL,
    Event,
    Failed,
    Incomplete,
    JobDead,
    JobLost,
    Problem,
    Step,
    Succeeded,
    decide,
    why_not_sent_again,
)
from matoolkit.ids import Reason

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
OOPS = Problem("it did not work", "Oops")
JOB = "step-7-attempt-2"

STEP = Step(
    id=7,
    status=StepStatus.DISPATCHED,
    attempt=2,
    job_id=JOB,
    answered_at=None,
    is_poll_step=False,
    poll_interval_sec=60,
    poll_timeout_sec=3600,
    poll_started_at=None,
    poll_due_at=None,
    retry_count=0,
    max_retries=0,
    retry_interval_sec=None,
    retry_after=None,
    throttled_since=None,
)
POLLED = replace(STEP, is_poll_step=True)

EVENTS: list[Event] = [
    *(Succeeded(NOON, attempt) for attempt in (1, 2, 3)),
    *(Incomplete(NOON, attempt) for attempt in (1, 2, 3)),
    *(Failed(NOON, attempt, OOPS, throttled) for attempt in (1, 2, 3) for throttled in (False, True)),
    JobLost(NOON, OOPS),
    *(JobDead(NOON, attempt, OOPS) for attempt in (1, 2, 3)),
]
# What happens to a step, where it can be then and where it is by then; the table has no events.
DECIDED: dict[tuple[StepStatus, type[Event]], set[str]] = {
    (StepStatus.DISPATCHED, Succeeded): {"succeed"},
    (StepStatus.DISPATCHED, Incomplete): {"poll later", "time out", "retry later", "fail"},
    (StepStatus.DISPATCHED, Failed): {"retry later", "fail"},
    (StepStatus.DISPATCHED, JobLost): {"retry a lost job", "fail a lost job"},
    (StepStatus.DISPATCHED, JobDead): {"fail"},
    # The job counted as lost and its retry waits, when the answer comes after all.
    (StepStatus.PENDING, Succeeded): {"succeed"},
    (StepStatus.PENDING, Incomplete): {"poll later", "time out"},
    **{
        (status, event): {"give up" if event is JobLost else "note late"}
        for status in (StepStatus.FAILED, StepStatus.POLL_TIMEOUT, StepStatus.CANCELLED)
        for event in (Succeeded, Incomplete, Failed, JobLost, JobDead)
    },
}
KINDS_OF_STEPS = [
    replace(
        STEP,
        status=status,
        is_poll_step=poll,
        max_retries=retries,
        answered_at=answered,
        retry_after=due,
        poll_due_at=due,
        poll_started_at=started,
        throttled_since=started,
    )
    for status, poll, retries, answered, due, started in product(
        StepStatus, (False, True), (0, 1), (None, NOON), (None, NOON, NOON + HOUR), (None, NOON - 48 * HOUR)
    )
]


@pytest.mark.parametrize("status", list(StepStatus))
def test_every_event_in_every_state_is_a_move_of_the_table_or_ignored_with_a_reason(status: StepStatus) -> None:
    for step, event in product((step for step in KINDS_OF_STEPS if step.status is status), EVENTS):
        decided = decide(step, event)
        if isinstance(decided, Ignore):
            assert decided.reason
        else:
            assert decided.move in MOVES
            assert status in decided.move.from_states, (step, event, decided)


def test_what_is_decided_in_which_state() -> None:
    decided: dict[tuple[StepStatus, type[Event]], set[str]] = {}
    for step, event in product(KINDS_OF_STEPS, EVENTS):
        if not isinstance(made := decide(step, event), Ignore):
            decided.setdefault((step.status, type(event)), set()).add(made.move.name)
    assert decided == DECIDED


def test_every_move_with_values_of_its_own_is_in_the_table_once() -> None:
    brought = [kind.move for kind in get_args(StepMove)]
    assert len(set(brought)) == len(brought)
    assert set(brought) < set(MOVES)
    assert len({move.name for move in MOVES}) == len(MOVES)


def test_every_event_is_in_the_grid() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))


def test_o4_an_answer_counts_once_and_for_its_own_attempt() -> None:
    assert decide(STEP, Succeeded(NOON, 2, "{}", "[]")) == Succeed(7, JOB, "{}", "[]")
    assert isinstance(decide(STEP, Succeeded(NOON, 3)), Ignore)
    assert isinstance(decide(STEP, Failed(NOON, 1, OOPS)), Ignore)
    assert isinstance(decide(replace(STEP, answered_at=NOON), Succeeded(NOON, 2)), Ignore)


def _keeps_outputs(step: Step, event: Event) -> bool:
    decided = decide(step, event)
    return isinstance(decided, Ignore) and decided.keeps_outputs


def test_o16_the_success_of_an_attempt_that_another_has_followed_gives_its_outputs() -> None:
    assert _keeps_outputs(STEP, Succeeded(NOON, 1))
    assert not _keeps_outputs(replace(STEP, status=StepStatus.SUCCEEDED), Succeeded(NOON, 1))
    assert not _keeps_outputs(STEP, Incomplete(NOON, 1))


def test_o5_the_answer_to_the_job_of_a_cancelled_step_is_noted() -> None:
    cancelled = replace(STEP, status=StepStatus.CANCELLED)
    for event in (Succeeded(NOON, 2), Incomplete(NOON, 2), Failed(NOON, 2, OOPS), JobDead(NOON, 2, OOPS)):
        assert isinstance(decide(cancelled, event), NoteLate)


def test_o16_a_lost_job_is_a_failed_attempt_whose_answer_counts_while_its_retry_waits() -> None:
    lost = decide(replace(STEP, max_retries=1), JobLost(NOON, OOPS))
    assert lost == RetryLost(7, JOB, "Oops", "it did not work", NOON + DEFAULT_RETRY_INTERVAL, 1, None)
    assert decide(STEP, JobLost(NOON, OOPS)) == FailLost(7, JOB, "Oops", "it did not work", None, OOPS.fingerprint)
    assert decide(replace(STEP, status=StepStatus.CANCELLED), JobLost(NOON, OOPS)) == GiveUp(7)
    waiting = replace(STEP, status=StepStatus.PENDING, retry_after=NOON + HOUR, retry_count=1, max_retries=1)
    assert decide(waiting, Succeeded(NOON, 2)) == Succeed(7, JOB, None)
    assert isinstance(decide(waiting, Failed(NOON, 2, OOPS)), Ignore), "its retry waits already"


def _retry(retry_after: datetime, count: int, since: datetime | None) -> RetryLater:
    return RetryLater(7, JOB, "Oops", "it did not work", retry_after, count, since)


def _fail() -> Fail:
    return Fail(7, JOB, "Oops", "it did not work", None, OOPS.fingerprint)


def test_o7_retries_are_counted_and_wait_for_their_interval() -> None:
    step = replace(STEP, max_retries=2, retry_count=1, retry_interval_sec=30)
    assert decide(step, Failed(NOON, 2, OOPS)) == _retry(NOON + timedelta(seconds=30), 2, None)
    assert decide(replace(step, retry_count=2), Failed(NOON, 2, OOPS)) == _fail()


def test_o7_throttling_costs_no_retry_until_its_limit() -> None:
    throttled = Failed(NOON, 2, OOPS, is_throttled=True, throttle_limit=24 * HOUR)
    assert decide(STEP, throttled) == _retry(NOON + timedelta(minutes=5), 0, NOON)
    since = NOON - 24 * HOUR + timedelta(seconds=1)
    assert decide(replace(STEP, throttled_since=since), throttled) == _retry(NOON + timedelta(minutes=5), 0, since)
    assert decide(replace(STEP, throttled_since=NOON - 24 * HOUR), throttled) == _fail()


def test_o6_only_an_incomplete_answer_at_or_after_the_deadline_times_out() -> None:
    assert decide(POLLED, Incomplete(NOON, 2)) == PollLater(7, JOB, None, NOON + timedelta(minutes=1))
    begun = replace(POLLED, poll_started_at=NOON - HOUR)
    assert isinstance(decide(begun, Incomplete(NOON, 2)), TimeOut)
    assert isinstance(decide(begun, Incomplete(NOON - timedelta(seconds=1), 2)), PollLater)
    assert decide(begun, Succeeded(NOON + 99 * HOUR, 2)) == Succeed(7, JOB, None)


def test_o6_an_incomplete_answer_without_poll_is_a_failure() -> None:
    assert isinstance(decide(STEP, Incomplete(NOON, 2)), Fail)
    assert isinstance(decide(replace(STEP, max_retries=1), Incomplete(NOON, 2)), RetryLater)


def test_t9_checks_ask_again_only_for_what_is_due() -> None:
    waiting = replace(STEP, status=StepStatus.PENDING, retry_after=NOON)
    assert why_not_sent_again(waiting, Reason.RETRY, NOON) is None
    assert why_not_sent_again(waiting, Reason.RETRY, NOON - HOUR) == "no retry is due"
    assert why_not_sent_again(waiting, Reason.POLL, NOON) == "a poll while it is pending"
    polling = replace(POLLED, status=StepStatus.POLLING, poll_due_at=NOON)
    assert why_not_sent_again(polling, Reason.POLL, NOON) is None
    assert why_not_sent_again(polling, Reason.POLL, NOON - HOUR) == "no poll is due"
    assert why_not_sent_again(replace(waiting, retry_after=None), Reason.RETRY, NOON) == "no retry is due"
