"""Rules O2, O3, R8, R9, O15: members go through steps and phases in order, each at its own pace."""

import pytest

from matoolkit.announcing.phases import dispatch_and_announce
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.domain.messages import PhaseDue
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.orchestrator.agenda import Limits
from matoolkit.ports import Outgoing
from tests.stage import Failing, Silent, Stage

from .runbooks import ONE_STEP, TWO_PHASES, TWO_STEPS


def test_o2_a_phase_that_is_due_gives_each_member_its_steps_and_sends_the_first(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 3)
    stage.due(batch, "prepare")
    stage.handle()
    assert sorted(str(job.parameters["Email"]) for job in stage.take_jobs()) == ["u0", "u1", "u2"]
    assert len(stage.steps(batch)) == 6


def test_r8_a_step_sees_the_outputs_of_the_one_before_it_in_the_same_phase(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 2)
    stage.answers["Create"] = lambda job: {"id": f"id-of-{job.parameters['Email']}"}
    stage.due(batch, "prepare")
    stage.run()
    licensed = [str(job.parameters["User"]) for job in stage.jobs if job.function_name == "License"]
    assert sorted(licensed) == ["id-of-u0", "id-of-u1"]
    assert stage.phases(batch) == {"prepare": PhaseStatus.COMPLETED}
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_r8_automatic_retries_keep_the_resolved_parameters_though_the_data_changed(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS.replace("Create\n", "Create\n        retry: {max_retries: 1}\n")))
    stage.answers["Create"] = Failing()
    stage.due(batch, "prepare")
    stage.run()
    stage.refresh(batch, "u0", {"Email": "changed"})
    stage.later(minutes=5)
    assert [job.parameters["Email"] for job in stage.jobs] == ["u0", "u0"]


def test_r9_a_variable_that_nobody_supplies_fails_the_step_and_names_variable_step_and_member(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP.replace("{{Email}}", "{{Phone}}")), 2)
    stage.due(batch, "prepare")
    stage.run()
    first = stage.steps(batch)[0]
    assert (first.status, first.attempt, first.error_type) == ("failed", 0, "UnresolvedVariable")
    assert all(word in str(first.error_message) for word in ("'Phone'", "'create'", "'u0'"))
    assert {member.status for member in stage.members(batch)} == {MemberStatus.FAILED}
    assert stage.jobs == []
    assert stage.reload(batch).status is BatchStatus.FAILED


def test_o3_members_do_not_wait_for_each_other(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 2)
    stage.answers["Create"] = lambda job: {"Id": 1} if job.parameters["Email"] == "u0" else Silent()
    stage.due(batch, "prepare")
    stage.run()
    assert stage.states(batch, "u0") == {"create": "succeeded", "license": "succeeded"}
    assert stage.states(batch, "u1") == {"create": "dispatched", "license": "pending"}
    assert stage.phases(batch) == {"prepare": PhaseStatus.DISPATCHED}


def test_o3_the_check_at_t0_does_not_run_while_the_mailbox_still_moves(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare")
    stage.run()
    stage.due(batch, "check", "cutover")
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Move"]
    stage.answer(stage.jobs[-1])
    stage.run()
    assert stage.functions() == ["Create", "Move", "Finish", "Test"]


def test_o3_an_earlier_phase_that_lags_behind_keeps_the_member_from_a_later_one(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.answers["Create"] = lambda job: Silent() if job.parameters["Email"] == "u0" else None
    stage.due(batch, "prepare")
    stage.run()
    stage.due(batch, "cutover", "check")
    stage.run()
    assert stage.states(batch, "u0") == {
        "create": "dispatched", "move": "pending", "finish": "pending", "test": "pending",
    }  # fmt: skip
    assert stage.states(batch, "u1")["test"] == "succeeded"
    stage.answer(stage.jobs[0])
    stage.run()
    assert stage.states(batch, "u0")["test"] == "succeeded"
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_o3_who_has_rows_in_an_earlier_phase_does_not_wait_until_everybody_has(stage: Stage) -> None:
    stage = Stage(stage.store, stage.clock, Limits(slice_size=1))
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.due(batch, "prepare", "cutover")
    stage.events.turn()
    assert len(stage.bus.receive(EVENTS_OF_ORCHESTRATOR, 10)) == 2, "the rest of both phases is on its way"
    while stage.work():
        stage.results.turn()
    assert stage.functions() == ["Create", "Move", "Finish"]
    assert stage.states(batch, "u1") == {}


def test_o3_nobody_waits_for_rows_in_a_later_phase_of_which_the_news_comes_later(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare", "cutover")
    dues = stage.bus.receive(EVENTS_OF_ORCHESTRATOR, 10)
    stage.bus.abandon(dues[:1])
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Create"]


def test_o3_who_is_in_the_middle_of_a_phase_goes_on_though_an_earlier_one_comes_due(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "cutover")
    stage.handle()
    stage.due(batch, "prepare")
    stage.work()
    stage.results.turn()
    assert [job.function_name for job in stage.take_jobs()] == ["Finish"]


@pytest.mark.parametrize("members", [1, 4, 5, 9])
def test_m4_a_phase_due_is_expanded_in_slices_a_commit_each(stage: Stage, members: int) -> None:
    stage = Stage(stage.store, stage.clock, Limits(slice_size=4))
    batch = stage.batch(stage.publish(TWO_STEPS), members)
    stage.answers["Create"] = {"Id": 1}
    stage.due(batch, "prepare")
    piles = 0
    while stage.events.turn():
        piles += 1
        assert len(stage.steps(batch)) <= 8 * piles
    assert piles == members // 4 + 1
    stage.run()
    assert len(stage.steps(batch)) == 2 * members
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_m4_a_phase_does_not_end_before_all_its_slices_were_expanded(stage: Stage) -> None:
    stage = Stage(stage.store, stage.clock, Limits(slice_size=2))
    batch = stage.batch(stage.publish(ONE_STEP), 4)
    stage.due(batch, "prepare")
    stage.events.turn()
    stage.work()
    while stage.results.turn():
        pass
    assert stage.phases(batch) == {"prepare": PhaseStatus.DISPATCHED}
    stage.run()
    assert len(stage.jobs) == 4
    assert stage.phases(batch) == {"prepare": PhaseStatus.COMPLETED}


def test_o2_a_phase_due_that_comes_twice_gives_nobody_more_steps(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 2)
    stage.due(batch, "prepare")
    stage.handle()
    stage.remind(batch, "prepare")
    stage.handle()
    assert len(stage.steps(batch)) == 4
    assert len(stage.take_jobs()) == 2


def test_o2_a_phase_due_for_a_phase_that_a_new_version_has_ended_gives_nobody_steps(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    stage.change_version(batch, stage.publish(ONE_STEP + "# 2\n"))
    stage.run()
    assert (stage.steps(batch), stage.jobs) == ([], [])


def test_o2_a_phase_due_for_a_phase_that_does_not_exist_is_passed_over(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.bus.send([Outgoing("phase-due-99-1", PhaseDue(batch.id, "wave", 1, "prepare", 99))])
    assert stage.handle() == 1, "a message that fails is delivered again"


def test_o15_outputs_are_found_whatever_their_case_and_new_values_win(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS.replace("User: '{{UserId}}'", "User: '{{userid}}'")))
    stage.keep(batch, "u0", {"USERID": "old", "Other": 1})
    stage.answers["Create"] = {"ID": "new"}
    stage.due(batch, "prepare")
    stage.run()
    assert stage.outputs(batch) == {"UserId": "new", "Other": 1}
    assert stage.jobs[-1].parameters == {"User": "new"}


def test_o15_a_missing_output_is_recorded_and_the_step_that_needs_it_says_who_owed_it(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS))
    stage.answers["Create"] = {"Name": "u0"}
    stage.due(batch, "prepare")
    stage.run()
    create, license_ = stage.steps(batch)
    assert (create.status, create.missing_outputs_json) == ("succeeded", '["UserId"]')
    assert license_.status == "failed"
    assert "step 'create' should have put it out" in str(license_.error_message)


def test_o15_each_step_that_no_job_can_be_made_of_says_its_own_reason(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP.replace("'{{Email}}'", "'{{Nickname}}'")), 2)
    stage.refresh(batch, "u1", {"Nickname": "x" * 250_000})
    stage.due(batch, "prepare")
    stage.run()
    missing, large = stage.steps(batch)
    assert (missing.error_type, large.error_type) == ("UnresolvedVariable", "MessageTooLarge")
    assert "put it out" not in str(missing.error_message), "nobody owed it"


def test_m9_a_job_that_no_bus_would_carry_fails_its_step_and_says_why(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP), 2)
    stage.refresh(batch, "u0", {"Email": "x" * 250_000})
    stage.due(batch, "prepare")
    stage.run()
    large = stage.steps(batch)[0]
    assert (large.status, large.error_type) == ("failed", "MessageTooLarge")
    assert stage.states(batch, "u1") == {"create": "succeeded"}


def test_t8_a_phase_that_has_begun_since_it_was_read_is_not_announced_again(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    phases = stage.phase_rows(batch)
    with stage.store.transaction() as tx:
        begun = dispatch_and_announce(tx, stage.bus, phases, {batch.id: batch}, stage.now)
        assert [phase.id for phase in begun] == [phase.id for phase in phases]
        assert dispatch_and_announce(tx, stage.bus, phases, {batch.id: batch}, stage.now) == []
