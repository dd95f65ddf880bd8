"""Rule M7: a dead-lettered or expired job fails its step; people resend and discard dead letters."""

from datetime import timedelta

import pytest

from matoolkit.admin.deadletters import discard_dead_letter, resend_dead_letter
from matoolkit.admin.manual import create_manual_batch
from matoolkit.admin.reinitializing import retry_init
from matoolkit.admin.retrying import retry_members
from matoolkit.bus.topology import TIME_TO_LIVE, jobs_of_worker
from matoolkit.bus.wire import decode
from matoolkit.domain.states import BatchStatus, DeadLetterStatus
from matoolkit.errors import DeadLetterResolved, NothingToRetry, UnknownDeadLetter
from matoolkit.store.batches import BatchRow
from matoolkit.store.deadletters import DeadLetterRow, dead_letters_page
from tests.orchestrator.runbooks import ONE_STEP, WITH_INIT, WITH_ROLLBACK
from tests.stage import WORKER, Failing, Silent, Stage

WITH_LONG_TIMEOUT = ONE_STEP.replace("name: create,", "name: create, timeout: 30d,")


def letters(stage: Stage, status: DeadLetterStatus = DeadLetterStatus.OPEN) -> list[DeadLetterRow]:
    with stage.store.reading() as tx:
        return dead_letters_page(tx, status=status)


def bury(stage: Stage) -> None:
    """Put all jobs aside as a worker does that cannot handle them."""
    for message in stage.bus.receive(jobs_of_worker(WORKER), 100):
        stage.bus.dead_letter(message, "Poison", "the worker choked on it")


def with_dead_rollback(stage: Stage, runbook: str = "wave") -> BatchRow:
    """Let the only member of a batch fail, and the job of its first rollback step be put aside."""
    batch = stage.batch(stage.publish(WITH_ROLLBACK, runbook), ["ada"])
    stage.answers.update(Create={"Id": 1}, License=Failing())
    stage.due(batch, "prepare")
    while "License" not in stage.functions():
        stage.handle()
        stage.work()
    stage.handle()
    bury(stage)
    stage.sweep()
    return batch


def test_m7_a_dead_lettered_job_fails_its_step_and_says_why(stage: Stage) -> None:
    """The defect: it is logged and deleted, and the step hangs."""
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    stage.handle()
    bury(stage)
    stage.sweep()
    (step,) = stage.steps(batch)
    assert (step.status, step.error_type) == ("failed", "DeadLetter")
    assert "Poison (the worker choked on it)" in str(step.error_message)
    assert stage.reload(batch).status is BatchStatus.FAILED
    assert len(letters(stage)) == 1


def test_m7_a_job_that_nobody_took_in_time_fails_its_step(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_LONG_TIMEOUT))
    stage.due(batch, "prepare")
    stage.handle()
    stage.clock.advance(TIME_TO_LIVE + timedelta(seconds=1))
    stage.sweep()
    assert stage.steps(batch)[0].status == "failed"


def test_m7_the_dead_job_of_an_attempt_that_was_followed_fails_nothing(stage: Stage) -> None:
    retried = ONE_STEP.replace("name: create,", "name: create, timeout: 10m, retry: {max_retries: 1, interval: 1m},")
    batch = stage.batch(stage.publish(retried))
    stage.due(batch, "prepare")
    stage.handle()
    bury(stage)
    stage.clock.advance(timedelta(minutes=10))
    stage.orchestrator.sweep()
    stage.answers["Create"] = Silent()
    stage.later(minutes=1)
    assert stage.steps(batch)[0].status == "dispatched"


def test_m7_a_dead_job_of_a_cancelled_step_lets_the_compensation_begin(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.due(batch, "prepare")
    stage.handle()
    received = stage.bus.receive(jobs_of_worker(WORKER), 100)
    stage.leave(batch, "u0")
    stage.handle()
    stage.bus.dead_letter(received[0], "Poison", "")
    stage.sweep()
    stage.run()
    assert stage.functions() == ["Forget", "Tell"]


def test_m7_resending_a_job_is_a_persons_retry_of_its_step(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    stage.handle()
    bury(stage)
    stage.sweep()
    (letter,) = letters(stage)
    done = resend_dead_letter(stage.store, stage.bus, decode, letter.id, by="anna")
    assert (done.retried, done.message_id) == ("step-1", None)
    stage.run()
    assert [job.job_id for job in stage.jobs] == ["step-1-attempt-2"]
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    with pytest.raises(DeadLetterResolved):
        resend_dead_letter(stage.store, stage.bus, decode, letter.id, by="anna")


def test_m7_resending_the_job_of_an_init_or_a_rollback_tries_that_again(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.handle()
    bury(stage)
    stage.sweep()
    stage.run()
    assert stage.reload(batch).status is BatchStatus.FAILED
    (letter,) = letters(stage)
    resend_dead_letter(stage.store, stage.bus, decode, letter.id, by="anna")
    stage.run()
    assert stage.reload(batch).status is BatchStatus.ACTIVE

    other = with_dead_rollback(stage, "other")
    stage.run()
    assert [row.status for row in stage.rollbacks(other)] == ["failed", "succeeded"]
    (letter,) = letters(stage)
    resend_dead_letter(stage.store, stage.bus, decode, letter.id, by="anna")
    stage.run()
    assert [row.status for row in stage.rollbacks(other)] == ["succeeded", "succeeded"]


def test_m7_an_event_is_resent_under_a_new_id(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    (message,) = stage.bus.receive(stage.events_of_orchestrator, 10)
    stage.bus.dead_letter(message, "Poison", "")
    (letter,) = letters(stage)
    done = resend_dead_letter(stage.store, stage.bus, decode, letter.id, by="anna", reason="fixed")
    assert done.message_id == "phase-due-1-1-s1"
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_m7_a_job_whose_step_moved_on_is_not_tried_again(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    stage.handle()
    bury(stage)
    stage.answer("step-1-attempt-1")
    stage.run()
    (letter,) = letters(stage)
    with pytest.raises(NothingToRetry):
        resend_dead_letter(stage.store, stage.bus, decode, letter.id, by="anna")
    discard_dead_letter(stage.store, letter.id, by="anna", reason="done anyway")
    assert [found.status for found in letters(stage, DeadLetterStatus.DISCARDED)] == [DeadLetterStatus.DISCARDED]
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    with pytest.raises(UnknownDeadLetter):
        discard_dead_letter(stage.store, 99, by="anna")


def test_m7_who_comes_second_to_a_letter_changes_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PostgreSQL both may have seen it open; the one whose move finds it moved is undone as a whole."""
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    (message,) = stage.bus.receive(stage.events_of_orchestrator, 10)
    stage.bus.dead_letter(message, "Poison", "")
    (seen,) = letters(stage)
    discard_dead_letter(stage.store, seen.id, by="ben")
    monkeypatch.setattr("matoolkit.admin.deadletters._open_letter", lambda _tx, _number: seen)
    with pytest.raises(DeadLetterResolved):
        resend_dead_letter(stage.store, stage.bus, decode, seen.id, by="anna")
    with pytest.raises(DeadLetterResolved):
        discard_dead_letter(stage.store, seen.id, by="anna")
    assert stage.bus.receive(stage.events_of_orchestrator, 10) == []


def refuse_resending(stage: Stage, because: str) -> None:
    (letter,) = letters(stage)
    with pytest.raises(NothingToRetry, match=because):
        resend_dead_letter(stage.store, stage.bus, decode, letter.id, by="anna")


def test_m7_a_rollback_is_not_tried_again_while_another_batch_has_the_person(stage: Stage) -> None:
    """The simulation found two jobs of one person at a time."""
    batch = with_dead_rollback(stage)
    stage.run()
    create_manual_batch(stage.store, batch.runbook_name, [{"Email": "Ada"}], by="anna")
    refuse_resending(stage, "something else is under way for ada")
    assert [row.status for row in stage.rollbacks(batch)] == ["failed", "succeeded"]


def test_m7_a_rollback_is_not_tried_again_before_those_after_it_have_ended(stage: Stage) -> None:
    batch = with_dead_rollback(stage)
    assert [row.status for row in stage.rollbacks(batch)] == ["failed", "dispatched"]
    refuse_resending(stage, "something else is under way for ada")


def test_m7_a_rollback_is_not_tried_again_once_its_member_has_begun_again(stage: Stage) -> None:
    """The simulation found a member's work being done and undone at the same time."""
    batch = with_dead_rollback(stage)
    stage.run()
    stage.answers.update(License={})
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    refuse_resending(stage, "ada has begun again since")
    stage.run()
    assert stage.steps(batch)[-1].status == "succeeded"
    refuse_resending(stage, "ada has begun again since")
    assert [row.status for row in stage.rollbacks(batch)] == ["failed", "succeeded"]


def test_m7_a_rollback_of_an_init_is_not_tried_again_once_the_init_has_begun_again(stage: Stage) -> None:
    """The simulation found one that waited for the init for ever, after a new version had passed that by."""
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.answers.update(Domain=Failing())
    stage.handle()
    stage.work()
    stage.handle()
    bury(stage)
    stage.sweep()
    stage.run()
    assert [row.status for row in stage.rollbacks(batch)] == ["failed"]
    assert stage.reload(batch).status is BatchStatus.FAILED
    stage.answers.update(Domain=None)
    retry_init(stage.store, stage.bus, batch.id, by="anna")
    refuse_resending(stage, "its init has begun again since")
    stage.run()
    assert stage.reload(batch).status is BatchStatus.ACTIVE
    refuse_resending(stage, "its init has begun again since")
    assert [row.status for row in stage.rollbacks(batch)] == ["failed"]
