"""Rules O5, O9, O10, T5 and T6: late joiners, leavers, returners, holds."""

from datetime import timedelta
from typing import Any

import pytest

from matoolkit.admin.cancelling import cancel_batch
from matoolkit.domain.messages import MemberAdded, MemberRemoved
from matoolkit.domain.states import MOVED, BatchStatus, MemberStatus, PhaseStatus
from matoolkit.ports import Outgoing
from tests.stage import Failing, Silent, Stage

from .runbooks import ONE_STEP, TWO_PHASES, TWO_STEPS, WITH_FAREWELL, WITH_ROLLBACK


def test_o10_a_late_joiner_goes_through_every_phase_that_has_begun_oldest_first(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare", "cutover")
    stage.run()
    stage.join(batch, "late")
    stage.run()
    mine = [job.function_name for job in stage.jobs if job.parameters["Email"] == "late"]
    assert mine == ["Create", "Move", "Finish"]
    assert stage.member(batch, "late").caught_up_at is not None
    assert stage.phases(batch)["check"] is PhaseStatus.PENDING


def test_o10_a_phase_that_is_given_rows_again_is_dispatched_until_they_end(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare")
    stage.run()
    assert stage.phases(batch)["prepare"] is PhaseStatus.COMPLETED
    stage.answers["Create"] = Silent()
    stage.join(batch, "late")
    stage.run()
    assert stage.phases(batch)["prepare"] is PhaseStatus.DISPATCHED
    stage.answer(stage.jobs[-1])
    stage.run()
    assert stage.phases(batch)["prepare"] is PhaseStatus.COMPLETED


def test_o10_skipped_phases_are_caught_up_too(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.skip(batch, "prepare")
    stage.join(batch, "late")
    stage.run()
    assert stage.states(batch, "late") == {"create": "succeeded"}
    assert stage.states(batch, "u0") == {}


def test_o10_a_member_added_that_comes_twice_gives_nothing_more(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare")
    stage.run()
    stage.join(batch, "late")
    stage.handle()
    stage.announce(batch, "late", times=1)
    stage.handle()
    assert len([step for step in stage.steps(batch) if step.step_name == "create"]) == 2
    assert len(stage.take_jobs()) == 1


def test_o10_joiners_of_two_batches_in_one_pile_each_go_through_their_own(stage: Stage) -> None:
    runbook = stage.publish(TWO_PHASES)
    first, second = stage.batch_at(runbook, ["u0"], days=5), stage.batch_at(runbook, ["u1"], days=6)
    for batch in (first, second):
        stage.due(batch, "prepare")
    stage.run()
    stage.join(first, "late-0")
    stage.join(second, "late-1")
    assert stage.events.turn() == 2
    for batch in (first, second):
        assert [step.batch_member_id for step in stage.steps(batch)] == [one.id for one in stage.members(batch)]


@pytest.mark.parametrize("message", [MemberAdded, MemberRemoved])
def test_o10_news_of_a_member_in_the_name_of_another_batch_are_passed_over(
    stage: Stage, message: type[MemberAdded] | type[MemberRemoved]
) -> None:
    runbook = stage.publish(TWO_PHASES)
    mine, other = stage.batch_at(runbook, ["u0"], days=5), stage.batch_at(runbook, ["u1"], days=6)
    stage.due(mine, "prepare")
    stage.run()
    stage.add_row(mine, "late")
    if message is MemberRemoved:
        stage.leave_unannounced(mine, "late")
    stage.bus.send([Outgoing("wrong-1", message(other.id, "late", stage.member(mine, "late").id))])
    assert stage.events.turn() == 1
    assert stage.bus.receive(stage.events_of_orchestrator, 10) == []
    assert stage.states(mine, "late") == {}


def test_o10_who_has_left_before_its_joining_is_heard_of_gets_no_steps(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare")
    stage.run()
    stage.join(batch, "late")
    stage.leave_unannounced(batch, "late")
    stage.run()
    assert stage.states(batch, "late") == {}


def test_o10_a_phase_that_comes_due_before_the_joiner_is_caught_up_does_not_overtake_it(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare")
    stage.run()
    stage.due(batch, "cutover")
    stage.join(batch, "late")
    stage.run()
    mine = [job.function_name for job in stage.jobs if job.parameters["Email"] == "late"]
    assert mine == ["Create", "Move", "Finish"]


def test_o11_a_batch_does_not_end_while_a_member_waits_to_be_caught_up(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    stage.handle()
    stage.add_row(batch, "late")
    stage.run()
    assert stage.phases(batch) == {"prepare": PhaseStatus.COMPLETED}
    assert stage.reload(batch).status is BatchStatus.ACTIVE
    stage.announce(batch, "late", times=1)
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    assert stage.states(batch, "late") == {"create": "succeeded"}


def test_o5_a_member_that_leaves_is_stopped_and_unsent_jobs_are_taken_back(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 2)
    stage.due(batch, "prepare")
    stage.handle()
    stage.leave(batch, "u0")
    stage.handle()
    assert stage.states(batch, "u0") == {"create": "cancelled", "license": "cancelled"}
    assert [job.parameters["Email"] for job in stage.take_jobs()] == ["u1"]
    assert stage.steps(batch)[0].lost_at is None


def test_o5_removal_steps_wait_for_the_job_in_flight_and_see_its_outputs(stage: Stage) -> None:
    runbook = WITH_ROLLBACK.replace(
        "function: Forget, params: {Email", "function: Forget, params: {User: '{{UserId}}', Email"
    )
    batch = stage.batch(stage.publish(runbook))
    stage.due(batch, "prepare")
    stage.handle()
    (job,) = stage.take_jobs()
    stage.leave(batch, "u0")
    stage.handle()
    assert stage.take_jobs() == []
    assert [row.status for row in stage.rollbacks(batch)] == ["pending", "pending"]
    stage.answer(job, {"Id": "made after all"})
    stage.handle()
    (forget,) = stage.take_jobs()
    assert (forget.function_name, forget.parameters["User"]) == ("Forget", "made after all")
    stage.answer(forget)
    stage.run()
    assert stage.functions() == ["Create", "Forget", "Tell"]
    assert stage.states(batch) == {"create": "cancelled", "license": "cancelled"}
    assert stage.reload(batch).status is BatchStatus.ACTIVE, "the cutover is still to come"


def test_o5_removal_steps_begin_when_the_job_in_flight_counts_as_lost(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    stage.leave(batch, "u0")
    stage.run()
    assert stage.functions() == ["Create"]
    stage.later(hours=24)
    assert stage.functions() == ["Create", "Forget", "Tell"]


def test_o9_a_batch_that_everybody_left_does_not_end_before_the_removal_steps_are_begun(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.due(batch, "prepare", "cutover")
    stage.handle()
    stage.leave(batch, "u0")
    stage.orchestrator.sweep()
    assert stage.reload(batch).status is BatchStatus.ACTIVE
    stage.run()
    assert stage.functions() == ["Forget", "Tell"]
    assert stage.reload(batch).status is BatchStatus.CANCELLED


def test_o9_removal_steps_run_in_a_batch_whose_init_fails_meanwhile(stage: Stage) -> None:
    init = "init:\n  - {name: check, worker_id: worker-01, function: Check}"
    batch = stage.batch(stage.publish(init + WITH_ROLLBACK))
    stage.handle()
    (job,) = stage.take_jobs()
    stage.leave(batch, "u0")
    stage.answer(job, Failing())
    stage.results.turn()
    assert stage.reload(batch).status is BatchStatus.FAILED
    stage.run()
    assert stage.functions() == ["Check", "Forget", "Tell"]


def test_o12_nothing_is_undone_for_a_leaver_whose_batch_is_cancelled_before_anybody_hears_of_it(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers["Create"] = {"Id": 1}
    stage.due(batch, "prepare")
    stage.run()
    stage.leave(batch, "u0")
    cancel_batch(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    assert stage.rollbacks(batch) == []


def test_t5_a_member_that_moved_to_another_batch_is_not_undone(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK), 2)
    stage.answers["Create"] = {"Id": 1}
    stage.due(batch, "prepare")
    stage.run()
    stage.leave(batch, "u0", reason=MOVED)
    stage.run()
    assert stage.rollbacks(batch) == []


def test_o10_a_member_removed_for_one_who_is_back_already_is_ignored(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers["Create"] = {"Id": 1}
    stage.due(batch, "prepare")
    stage.handle()
    stage.leave(batch, "u0")
    stage.come_back(batch, "u0")
    stage.run()
    assert stage.rollbacks(batch) == []
    member = stage.member(batch)
    assert (member.status, member.epoch) == (MemberStatus.ACTIVE, 2)
    assert stage.states(batch) == {"create": "succeeded", "license": "succeeded"}
    assert [step.status for step in stage.steps(batch) if step.epoch == 1] == ["cancelled", "cancelled"]


def test_t5_a_compensation_not_yet_started_is_dropped_when_the_member_returns(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    stage.leave(batch, "u0")
    stage.run()
    stage.come_back(batch, "u0")
    stage.run()
    assert [row.status for row in stage.rollbacks(batch)] == ["cancelled", "cancelled"]
    assert stage.functions() == ["Create"], "the job in flight is waited for"
    stage.answers["Create"] = {"Id": 2}
    stage.answer(stage.jobs[0], {"Id": 1})
    stage.run()
    assert stage.functions() == ["Create", "Create", "License"]
    assert stage.outputs(batch) == {"UserId": 2}, "what the old epoch put out is not the new one's"


def test_o15_what_an_older_epoch_puts_out_late_is_not_kept_for_the_new_one(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS))
    stage.due(batch, "prepare")
    stage.handle()
    (old,) = stage.take_jobs()
    stage.leave(batch, "u0")
    stage.come_back(batch, "u0")
    stage.handle()
    stage.answer(old, {"Id": "of the past"})
    stage.handle()
    assert stage.outputs(batch) == {}
    (new,) = stage.take_jobs()
    stage.answer(new, {"Other": "nothing that is promised"})
    stage.run()
    assert stage.states(batch)["license"] == "failed", "what it needs was never put out"


def test_t5_a_compensation_that_has_begun_finishes_before_the_returner_begins_again(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers.update(Create={"Id": 1}, Forget=Silent())
    stage.due(batch, "prepare")
    stage.run()
    stage.leave(batch, "u0")
    stage.run()
    assert stage.functions()[-1] == "Forget"
    stage.come_back(batch, "u0")
    stage.run()
    assert stage.functions()[-1] == "Forget"
    stage.answer(stage.jobs[-1])
    stage.run()
    assert stage.functions()[-4:] == ["Forget", "Tell", "Create", "License"]


def test_o5_a_failed_job_of_an_old_epoch_does_not_fail_the_member_that_came_back(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    stage.leave_unannounced(batch, "u0")
    stage.come_back_unannounced(batch, "u0")
    stage.answer(stage.jobs[0], Failing())
    stage.run()
    assert stage.member(batch).status is MemberStatus.ACTIVE
    stage.answers["Create"] = {"Id": 1}
    stage.announce(batch, "u0", times=1)
    stage.run()
    assert stage.states(batch) == {"create": "succeeded", "license": "succeeded"}


@pytest.fixture
def held(stage: Stage) -> Any:
    """A batch that is held while u0 is in the middle of the cutover and u1 has not begun it."""
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.answers["Create"] = lambda job: Silent() if job.parameters["Email"] == "u1" else None
    stage.answers["Move"] = Silent()
    stage.due(batch, "prepare", "cutover", "check")
    stage.run()
    stage.hold(batch)
    return batch


def test_t6_while_held_no_member_starts_another_phase_and_what_runs_goes_on(stage: Stage, held: Any) -> None:
    stage.answers["Move"] = None
    for job in tuple(stage.jobs):
        stage.answer(job)
    stage.run()
    assert stage.states(held, "u0") == {
        "create": "succeeded", "move": "succeeded", "finish": "succeeded", "test": "pending",
    }  # fmt: skip
    assert stage.states(held, "u1") == {
        "create": "succeeded", "move": "pending", "finish": "pending", "test": "pending",
    }  # fmt: skip


def test_t6_the_end_of_a_hold_wakes_the_members_that_wait(stage: Stage, held: Any) -> None:
    stage.answers["Move"] = None
    for job in tuple(stage.jobs):
        stage.answer(job)
    stage.run()
    stage.release(held)
    stage.run()
    assert {status for key in ("u0", "u1") for status in stage.states(held, key).values()} == {"succeeded"}
    assert stage.reload(held).status is BatchStatus.COMPLETED


def test_t6_who_joins_while_held_waits_for_the_end_of_the_hold(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    stage.run()
    batch = stage.batch(stage.publish(TWO_PHASES, "second"))
    stage.due(batch, "prepare")
    stage.run()
    stage.hold(batch)
    stage.join(batch, "late")
    stage.run()
    assert stage.member(batch, "late").caught_up_at is None
    assert stage.states(batch, "late") == {}
    stage.release(batch)
    stage.run()
    assert stage.states(batch, "late") == {"create": "succeeded"}


def test_t6_retries_and_polls_go_on_while_held(stage: Stage) -> None:
    retried = ONE_STEP.replace("function: Create,", "function: Create, retry: {max_retries: 1, interval: 1m},")
    batch = stage.batch(stage.publish(retried))
    stage.answers["Create"] = Failing()
    stage.due(batch, "prepare")
    stage.run()
    stage.hold(batch)
    stage.answers["Create"] = None
    stage.clock.advance(timedelta(minutes=1))
    stage.run()
    assert stage.states(batch) == {"create": "succeeded"}


def test_o16_who_left_is_seen_off_even_if_the_message_was_put_away(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_FAREWELL))
    stage.due(batch, "prepare")
    stage.run()
    stage.leave(batch, "u0")
    for message in stage.bus.receive(stage.events_of_orchestrator, 10):
        stage.bus.dead_letter(message, "Poison", "")
    stage.sweep()
    assert stage.member(batch, "u0").seen_off_at is None
    stage.clock.advance(timedelta(hours=2))
    stage.sweep()
    stage.run()
    assert stage.member(batch, "u0").seen_off_at is not None
    assert "Forget" in stage.functions()
