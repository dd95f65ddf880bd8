"""Rules O1 and V5: init."""

from typing import Any

import pytest

from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.reinitializing import retry_init
from matoolkit.announcing.inits import request_inits
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.domain.messages import BatchInit
from matoolkit.domain.states import BatchStatus
from matoolkit.ports import Outgoing
from matoolkit.store.batches import cancel_batches
from tests.stage import Failing, Silent, Stage

from .runbooks import ONE_STEP, WITH_INIT


def test_o1_the_steps_of_init_run_one_after_the_other_and_then_the_batch_is_active(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Domain"]
    assert stage.jobs[0].parameters == {"Batch": batch.id}
    assert stage.reload(batch).status is BatchStatus.INIT_DISPATCHED
    stage.answer(stage.jobs[0])
    stage.run()
    assert stage.functions() == ["Domain", "Group"]
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_o1_a_request_that_comes_twice_runs_init_once(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.handle()
    stage.request_init(batch, 1, times=1)
    stage.run()
    stage.request_init(batch, 1, times=2)
    stage.run()
    assert stage.functions() == ["Domain", "Group"]


@pytest.mark.parametrize("answer", [{"complete": False}, Failing()], ids=["poll", "retry"])
def test_o1_a_request_that_comes_again_does_not_bring_a_poll_or_retry_forward(stage: Stage, answer: Any) -> None:
    waits = "poll: {interval: 1h, timeout: 1d}, retry: {max_retries: 1, interval: 1h}"
    batch = stage.batch(stage.publish(WITH_INIT.replace("function: Domain,", f"function: Domain, {waits},")))
    stage.answers["Domain"] = answer
    stage.run()
    stage.request_init(batch, 1, times=1)
    stage.run()
    assert stage.functions() == ["Domain"]


def test_o1_a_request_for_a_batch_that_was_cancelled_since_creates_nothing(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    cancel_batch(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    assert (stage.inits(batch), stage.jobs) == ([], [])


def test_o1_a_request_for_a_batch_that_does_not_exist_is_passed_over(stage: Stage) -> None:
    stage.publish(WITH_INIT)
    stage.bus.send([Outgoing("batch-init-99-v1-1", BatchInit(99, "wave", 1))])
    assert stage.handle() == 1, "a message that fails is delivered again"


def test_o1_a_request_whose_id_has_no_number_counts(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.bus.complete_now(stage.bus.receive(EVENTS_OF_ORCHESTRATOR, 10))
    stage.bus.send([Outgoing("sent-by-hand", BatchInit(batch.id, "wave", 1))])
    stage.run()
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_o1_an_init_that_fails_for_good_is_rolled_back_and_then_the_batch_fails(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.answers.update(Domain=Failing(), Undomain=Silent())
    stage.run()
    assert [row.status for row in stage.inits(batch)] == ["failed", "cancelled"]
    assert stage.reload(batch).status is BatchStatus.INIT_DISPATCHED, "its rollback has not ended"
    stage.answer(stage.jobs[-1])
    stage.run()
    assert stage.functions() == ["Domain", "Undomain"]
    assert stage.reload(batch).status is BatchStatus.FAILED


def test_o1_an_init_step_without_rollback_fails_the_batch_at_once(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.answers["Group"] = Failing()
    stage.run()
    assert stage.reload(batch).status is BatchStatus.FAILED
    assert stage.rollbacks(batch) == []


def test_o1_members_that_joined_during_init_are_caught_up_when_it_is_done(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.answers["Domain"] = Silent()
    stage.run()
    stage.join(batch, "late")
    stage.run()
    assert stage.member(batch, "late").caught_up_at is None
    stage.answer(stage.jobs[0])
    stage.run()
    assert stage.member(batch, "late").caught_up_at is not None


def rerun(stage: Stage, first_answer: Any = None) -> Any:
    """A batch that began under version 1, and whose init runs again under version 2."""
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.answers["Group"] = first_answer
    stage.run()
    stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=True)
    return batch


def test_v5_a_rerun_of_init_that_fails_holds_the_batch(stage: Stage) -> None:
    batch = rerun(stage)
    stage.answers["Domain"] = Failing()
    stage.run()
    held = stage.reload(batch)
    assert (held.status, held.is_held, held.hold_key) == (BatchStatus.INIT_DISPATCHED, True, "init-v2-2")
    assert stage.functions() == ["Domain", "Group", "Domain", "Undomain"]


def test_v5_a_rerun_of_init_gates_phases_and_wakes_those_that_waited(stage: Stage) -> None:
    runbook = stage.publish(WITH_INIT)
    batch = stage.batch(runbook)
    stage.run()
    stage.answers["Domain"] = Silent()
    stage.due(batch, "prepare")
    stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=True, keep_phases=True)
    stage.due(batch, "prepare")
    stage.run()
    assert stage.functions() == ["Domain", "Group", "Domain"]
    stage.answer(stage.jobs[-1])
    stage.run()
    assert stage.functions() == ["Domain", "Group", "Domain", "Group", "Create", "Create"]
    versions = [job.correlation["RunbookVersion"] for job in stage.jobs[-2:]]
    assert versions == [1, 2], "what is left of the old version comes before the new one (V4)"


def test_v5_the_new_init_waits_for_the_job_of_the_old_one(stage: Stage) -> None:
    batch = rerun(stage, Silent())
    stage.handle()
    assert [row.status for row in stage.inits(batch)] == ["succeeded", "cancelled", "pending", "pending"]
    assert stage.take_jobs() == []
    stage.answers["Group"] = None
    stage.answer("init-2-attempt-1")
    stage.run()
    assert stage.functions() == ["Domain", "Group", "Domain", "Group"]
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_v5_a_request_for_the_old_init_that_comes_late_is_ignored(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=True)
    stage.run()
    assert {row.runbook_version for row in stage.inits(batch)} == {2}
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_v5_without_rerun_an_unfinished_init_goes_on_under_its_own_version(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=False)
    stage.run()
    assert [(row.runbook_version, row.status) for row in stage.inits(batch)] == [(1, "succeeded"), (1, "succeeded")]
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_v5_an_init_that_fails_after_a_new_version_came_fails_a_batch_that_had_not_begun(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=False)
    stage.answers["Domain"] = Failing()
    stage.run()
    assert (stage.reload(batch).status, stage.reload(batch).is_held) == (BatchStatus.FAILED, False)
    assert "init failed; the batch is failed" in caplog.messages


def test_v5_a_rerun_of_an_init_that_has_no_steps_is_done_at_once(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.change_version(batch, stage.publish(ONE_STEP), rerun_init=True)
    stage.run()
    assert (stage.reload(batch).status, stage.jobs) == (BatchStatus.ACTIVE, [])


def test_v5_a_batch_that_began_after_its_first_init_had_failed_is_held_too(stage: Stage) -> None:
    """The simulation found steps under way in a batch that had failed."""
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.answers["Domain"] = Failing()
    stage.run()
    assert stage.reload(batch).status is BatchStatus.FAILED
    stage.publish(ONE_STEP)
    retry_init(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    assert stage.reload(batch).status is BatchStatus.ACTIVE
    stage.change_version(batch, stage.publish(WITH_INIT + "# 3\n"), rerun_init=True)
    stage.run()
    held = stage.reload(batch)
    assert (held.status, held.is_held) == (BatchStatus.INIT_DISPATCHED, True)


def test_o1_the_init_of_a_batch_that_has_ended_is_not_requested(stage: Stage) -> None:
    runbook = stage.publish(WITH_INIT)
    ended, unfinished = stage.batch(runbook), stage.batch_at(runbook, 1, days=9)
    with stage.store.transaction() as tx:
        cancel_batches(tx, [ended.id], stage.now)
        assert request_inits(tx, stage.bus, 1, [ended, unfinished], stage.now) == 1
    assert [stage.reload(batch).init_count for batch in (ended, unfinished)] == [
        ended.init_count,
        unfinished.init_count + 1,
    ]
