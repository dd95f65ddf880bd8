"""Rules O4 to O7 and O16: results, retries, polls, throttling, lost jobs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from matoolkit import ports
from matoolkit.bus.sql import SqlBus
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.errors import BusUnavailable, RowConflict
from matoolkit.orchestrator import Orchestrator
from matoolkit.ports import Outgoing
from matoolkit.store.executions import StepRow
from tests.stage import Failing, Silent, Stage

from .runbooks import ONE_STEP, TWO_STEPS, WITH_POLL, WITH_RETRY

THROTTLED = Failing("busy", "TooManyRequests", is_throttled=True)


class BusThatIsAway(SqlBus):
    """A bus that cannot be reached."""

    def publish(self, tx: ports.Transaction, messages: Sequence[Outgoing]) -> None:  # noqa: ARG002 - it takes none
        raise BusUnavailable("the bus is away")


def started(stage: Stage, runbook: str, members: int = 1) -> Any:
    batch = stage.batch(stage.publish(runbook), members)
    stage.due(batch, "prepare")
    return batch


def first(stage: Stage, batch: Any) -> StepRow:
    return stage.steps(batch)[0]


def test_o4_a_dispatch_is_committed_before_its_job_leaves(stage: Stage) -> None:
    """The defect: a result that comes early finds no dispatched step, is dropped, and the step hangs."""
    batch = started(stage, ONE_STEP)
    stage.handle()
    (job,) = stage.take_jobs()
    assert (first(stage, batch).status, first(stage, batch).job_id) == ("dispatched", job.job_id)


@pytest.mark.parametrize(
    "job", ["", "nonsense", "step-1", "step-999-attempt-1", "init-1-attempt-1", "rollback-7-poll-3", "step-1-attempt-9"]
)
def test_o4_a_result_that_belongs_to_nothing_is_ignored(stage: Stage, job: str) -> None:
    batch = started(stage, ONE_STEP)
    stage.handle()
    stage.answer(job, {"ok": True})
    assert stage.handle() == 1, "a message that fails is delivered again"
    assert first(stage, batch).status == "dispatched"


def test_o4_a_result_is_matched_by_its_job_id_alone(stage: Stage) -> None:
    batch = started(stage, ONE_STEP)
    stage.handle()
    stage.answer(first(stage, batch).job_id or "")
    stage.handle()
    assert first(stage, batch).status == "succeeded"


def test_o4_a_result_that_comes_twice_counts_once(stage: Stage) -> None:
    batch = started(stage, TWO_STEPS)
    stage.handle()
    (job,) = stage.take_jobs()
    stage.answer(job, {"Id": 1})
    stage.answer(job, {"Id": 2}, again=1)
    stage.handle()
    stage.answer(job, Failing(), again=2)
    stage.handle()
    assert stage.outputs(batch) == {"UserId": 1}
    assert len(stage.take_jobs()) == 1
    assert first(stage, batch).status == "succeeded"


def test_o4_the_result_of_an_older_attempt_is_ignored(stage: Stage) -> None:
    batch = started(stage, WITH_RETRY)
    stage.answers["Create"] = Failing()
    stage.run()
    stage.later(minutes=10)
    assert first(stage, batch).attempt == 2
    stage.answer("step-1-attempt-1", Failing(), again=1)
    stage.handle()
    assert (first(stage, batch).attempt, first(stage, batch).retry_count) == (2, 2)


def test_o7_a_failed_step_is_tried_again_as_often_as_it_says(stage: Stage) -> None:
    batch = started(stage, WITH_RETRY)
    stage.answers["Create"] = Failing("no", "Oops")
    stage.run()
    step = first(stage, batch)
    assert (step.status, step.retry_count, step.error_message) == ("pending", 1, "no")
    assert step.retry_after == stage.now + timedelta(minutes=10)
    stage.clock.advance(timedelta(minutes=9))
    stage.run()
    assert len(stage.jobs) == 1
    stage.clock.advance(timedelta(minutes=1))
    stage.run()
    assert [job.job_id for job in stage.jobs] == ["step-1-attempt-1", "step-1-retry-2"]
    stage.later(minutes=10)
    assert (first(stage, batch).status, len(stage.jobs)) == ("failed", 3)
    assert stage.member(batch).status is MemberStatus.FAILED


def test_o7_the_retry_of_the_step_replaces_the_global_one(stage: Stage) -> None:
    batch = started(stage, "retry: {max_retries: 5}\n" + WITH_RETRY.replace("max_retries: 2", "max_retries: 0"))
    stage.answers["Create"] = Failing()
    stage.run()
    assert first(stage, batch).status == "failed"


def test_o7_throttling_uses_up_no_retry(stage: Stage) -> None:
    batch = started(stage, WITH_RETRY)
    stage.answers["Create"] = THROTTLED
    stage.run()
    for _ in range(5):
        stage.later(minutes=10)
    assert (first(stage, batch).status, first(stage, batch).retry_count, len(stage.jobs)) == ("pending", 0, 6)
    stage.answers["Create"] = None
    stage.later(minutes=10)
    assert first(stage, batch).status == "succeeded"


def test_o7_throttling_is_waited_for_five_minutes_without_a_retry_and_only_for_so_long(stage: Stage) -> None:
    batch = started(stage, ONE_STEP)
    stage.answers["Create"] = THROTTLED
    stage.run()
    assert first(stage, batch).retry_after == stage.now + timedelta(minutes=5)
    stage.later(hours=23)
    assert first(stage, batch).status == "pending"
    stage.later(hours=1)
    assert (first(stage, batch).status, first(stage, batch).error_message) == ("failed", "busy")


def test_o15_what_an_answer_says_that_is_not_complete_is_not_put_out(stage: Stage) -> None:
    batch = started(stage, WITH_POLL)
    stage.answers["Create"] = {"complete": False, "id": "too early"}
    stage.run()
    assert first(stage, batch).status == "polling"
    assert stage.outputs(batch) == {}


def test_o6_a_step_polls_until_it_is_complete_and_takes_the_outputs_from_data(stage: Stage) -> None:
    batch = started(stage, WITH_POLL)
    stage.answers["Create"] = {"complete": False}
    stage.run()
    step = first(stage, batch)
    assert (step.status, step.poll_count, step.poll_started_at) == ("polling", 1, stage.now)
    assert step.poll_due_at == stage.now + timedelta(minutes=1)
    stage.later(minutes=1)
    assert [job.job_id for job in stage.jobs] == ["step-1-attempt-1", "step-1-poll-2"]
    assert first(stage, batch).poll_count == 2
    stage.answers["Create"] = {"complete": True, "data": {"id": 7}, "id": 8}
    stage.later(minutes=1)
    assert stage.outputs(batch) == {"UserId": 7}
    assert first(stage, batch).missing_outputs_json is None, "it owes nothing"
    assert stage.states(batch) == {"create": "succeeded", "license": "succeeded"}


def test_o6_outputs_come_from_the_result_itself_when_it_has_no_data(stage: Stage) -> None:
    batch = started(stage, WITH_POLL)
    stage.answers["Create"] = {"Complete": True, "ID": 8}
    stage.run()
    assert stage.outputs(batch) == {"UserId": 8}


def test_o6_after_downtime_one_more_poll_is_asked_before_the_step_times_out(stage: Stage) -> None:
    batch = started(stage, WITH_POLL)
    stage.answers["Create"] = {"complete": False}
    stage.run()
    stage.answers["Create"] = {"complete": True}
    stage.later(days=3)
    assert stage.states(batch)["create"] == "succeeded"


def test_o6_an_incomplete_answer_at_the_deadline_times_out_and_is_never_retried(stage: Stage) -> None:
    batch = started(stage, WITH_POLL)
    stage.answers["Create"] = {"complete": False}
    stage.run()
    stage.later(minutes=59)
    assert first(stage, batch).status == "polling"
    stage.later(minutes=1)
    step = first(stage, batch)
    assert (step.status, step.poll_count, step.retry_count, step.last_polled_at) == ("poll_timeout", 3, 0, stage.now)
    assert stage.states(batch)["license"] == "cancelled"
    assert stage.member(batch).status is MemberStatus.FAILED


def test_o6_the_deadline_is_kept_through_automatic_retries(stage: Stage) -> None:
    batch = started(stage, WITH_POLL)
    stage.answers["Create"] = {"complete": False}
    stage.run()
    began = stage.now
    stage.answers["Create"] = Failing()
    stage.later(minutes=30)
    stage.answers["Create"] = {"complete": False}
    stage.later(minutes=1)
    assert (first(stage, batch).status, first(stage, batch).poll_started_at) == ("polling", began)
    stage.later(minutes=29)
    assert first(stage, batch).status == "poll_timeout"


def test_o6_an_incomplete_answer_on_a_step_without_poll_is_a_failure(stage: Stage) -> None:
    batch = started(stage, ONE_STEP)
    stage.answers["Create"] = {"complete": False}
    stage.run()
    assert first(stage, batch).status == "failed"
    assert "no `poll`" in str(first(stage, batch).error_message)


def test_o6_a_poll_check_that_comes_twice_or_too_early_asks_once(stage: Stage) -> None:
    started(stage, WITH_POLL)
    stage.answers["Create"] = {"complete": False}
    stage.run()
    stage.check_polls(1)
    stage.handle()
    assert stage.take_jobs() == [], "it is too early"
    stage.clock.advance(timedelta(minutes=1))
    stage.check_polls(1)
    stage.check_polls(1)
    stage.handle()
    assert len(stage.take_jobs()) == 1


def test_o6_a_poll_check_of_work_that_does_not_exist_is_passed_over(stage: Stage) -> None:
    started(stage, WITH_POLL)
    stage.answers["Create"] = {"complete": False}
    stage.run()
    stage.clock.advance(timedelta(minutes=1))
    stage.check_polls(1, 999)
    assert stage.events.turn() == 2
    assert len(stage.take_jobs()) == 1
    assert stage.bus.receive(stage.events_of_orchestrator, 10) == []


def test_o16_a_job_without_result_counts_as_lost_and_is_tried_again(stage: Stage) -> None:
    batch = started(stage, WITH_RETRY)
    stage.answers["Create"] = Silent()
    stage.run()
    stage.later(hours=23)
    assert first(stage, batch).status == "dispatched"
    stage.later(hours=1)
    step = first(stage, batch)
    assert (step.status, step.retry_count, step.error_type, step.lost_at) == ("pending", 1, "JobLost", None)
    stage.answers["Create"] = None
    stage.later(minutes=10)
    assert [job.job_id for job in stage.jobs] == ["step-1-attempt-1", "step-1-retry-2"]
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_o16_a_lost_job_without_retries_fails_its_step(stage: Stage) -> None:
    batch = started(stage, ONE_STEP.replace("name: create,", "name: create, timeout: 30m,"))
    stage.answers["Create"] = Silent()
    stage.run()
    stage.later(minutes=30)
    assert (first(stage, batch).status, first(stage, batch).error_type) == ("failed", "JobLost")
    assert stage.reload(batch).status is BatchStatus.FAILED


def test_o16_sweeps_come_to_their_end_without_trouble(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    started(stage, ONE_STEP, 2)
    stage.answers["Create"] = Silent()
    stage.run()
    stage.clock.advance(timedelta(hours=24))
    for _ in range(2):
        stage.orchestrator.sweep()
    troubles = [record for record in caplog.records if "sweep" in record.getMessage()]
    assert troubles == []


def test_o16_work_that_cannot_be_handled_keeps_no_other_work_from_the_sweep(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = (stage.batch(stage.publish(ONE_STEP, name)) for name in ("bad", "good"))
    stage.answers["Create"] = Silent()
    for batch in (bad, good):
        stage.due(batch, "prepare")
    stage.run()
    with stage.store.transaction() as tx:
        tx.execute(text("UPDATE runbooks SET yaml_content = 'damaged' WHERE name = 'bad'"))
    stage.clock.advance(timedelta(hours=24))
    Stage(stage.store, stage.clock).orchestrator.sweep()  # another process, which has yet to read the runbooks
    assert (first(stage, bad).status, first(stage, good).status) == ("dispatched", "failed")
    assert len([told for told in caplog.messages if "skips" in told]) == 1


@pytest.mark.parametrize("fault", [RuntimeError("odd"), RowConflict("odd")])
def test_o16_a_sweep_that_fails_keeps_no_other_sweep_from_its_work(stage: Stage, fault: Exception) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))

    def fail(statement: str, _parameters: Any) -> None:
        if "FROM dead_letters" in statement:
            raise fault

    with stage.store.transaction() as tx:
        tx.execute(text("UPDATE phase_executions SET status = 'completed'"))
    stage.store.watchers.append(fail)
    stage.orchestrator.sweep()
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_o16_a_sweep_skips_nothing_in_an_outage_and_comes_back_to_it(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    batch = started(stage, WITH_RETRY)
    stage.answers["Create"] = Silent()
    stage.run()
    stage.clock.advance(timedelta(hours=24))
    Orchestrator(stage.store, BusThatIsAway(stage.store)).sweep()
    assert first(stage, batch).status == "dispatched"
    assert [told for told in caplog.messages if "skips" in told] == []
    stage.sweep()
    assert first(stage, batch).error_type == "JobLost"


def test_o16_the_result_of_a_lost_job_is_accepted_while_its_retry_is_pending(stage: Stage) -> None:
    batch = started(stage, WITH_RETRY)
    stage.answers["Create"] = Silent()
    stage.run()
    stage.later(hours=24)
    stage.answer("step-1-attempt-1", {"Id": 3})
    stage.run()
    assert first(stage, batch).status == "succeeded"
    stage.later(minutes=10)
    assert len(stage.jobs) == 1


def test_o16_a_failure_of_a_lost_job_leaves_its_retry_as_it_is(stage: Stage) -> None:
    batch = started(stage, WITH_RETRY)
    stage.answers["Create"] = Silent()
    stage.run()
    stage.later(hours=24)
    stage.answer("step-1-attempt-1", Failing())
    stage.run()
    assert (first(stage, batch).status, first(stage, batch).retry_count) == ("pending", 1)


def test_o16_after_its_retry_was_sent_only_the_outputs_of_a_lost_job_are_stored(stage: Stage) -> None:
    batch = started(stage, TWO_STEPS.replace("Create\n", "Create\n        retry: {max_retries: 1}\n"))
    stage.answers["Create"] = Silent()
    stage.run()
    stage.later(hours=24)
    stage.later(minutes=5)
    assert first(stage, batch).attempt == 2
    stage.answer("step-1-attempt-1", {"Id": 3})
    stage.handle()
    assert (first(stage, batch).status, stage.outputs(batch)) == ("dispatched", {"UserId": 3})


def test_o16_what_two_attempts_put_out_in_one_pile_is_kept_together_and_the_newer_one_wins(stage: Stage) -> None:
    retried = TWO_STEPS.replace("Create\n", "Create\n        retry: {max_retries: 1}\n")
    batch = started(stage, retried.replace("{UserId: Id}", "{UserId: Id, Mailbox: Box}"))
    stage.answers["Create"] = Silent()
    stage.run()
    stage.later(hours=24)
    stage.later(minutes=5)
    stage.answer("step-1-attempt-1", {"Id": 1, "Box": "mine"})
    stage.answer("step-1-retry-2", {"Id": 2})
    assert stage.results.turn() == 2
    assert stage.outputs(batch) == {"UserId": 2, "Mailbox": "mine"}
