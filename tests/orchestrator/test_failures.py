"""Rules O5, O8, O9 and O11: failure for good, rollbacks, what ends how."""

from typing import Any

from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.store.failures import failures_by_error, members_that_failed
from tests.stage import Failing, Silent, Stage

from .runbooks import ONE_STEP, TWO_PHASES, TWO_STEPS, WITH_ROLLBACK


def play(stage: Stage, members: int = 2) -> Any:
    batch = stage.batch(stage.publish(WITH_ROLLBACK), members)
    stage.answers["Create"] = lambda job: {"Id": job.parameters["Email"]}
    stage.answers["License"] = lambda job: Failing() if job.parameters["User"] == "u0" else None
    stage.due(batch, "prepare")
    return batch


def test_o8_a_member_that_fails_for_good_stops_and_the_others_go_on(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.answers["Create"] = lambda job: Failing() if job.parameters["Email"] == "u0" else Silent()
    stage.due(batch, "prepare", "cutover")
    stage.run()
    assert stage.member(batch, "u0").status is MemberStatus.FAILED
    assert stage.states(batch, "u0") == {"create": "failed", "move": "cancelled", "finish": "cancelled"}
    assert stage.states(batch, "u1") == {"create": "dispatched", "move": "pending", "finish": "pending"}
    assert stage.member(batch, "u1").status is MemberStatus.ACTIVE


def test_o9_a_rollback_runs_one_step_after_the_other_with_data_and_outputs(stage: Stage) -> None:
    """The defect: all its steps are sent at once, and their results are dead letters."""
    batch = play(stage)
    while stage.handle() and "Unlicense" not in stage.functions():
        stage.work()
    undoing = [job for job in stage.jobs if job.function_name == "Unlicense"]
    assert [job.parameters for job in undoing] == [{"Email": "u0", "User": "u0"}]
    assert "Delete" not in stage.functions()
    stage.run()
    assert stage.functions()[-1] == "Delete"
    assert [(row.step_name, row.status) for row in stage.rollbacks(batch)] == [
        ("unlicense", "succeeded"), ("delete", "succeeded"),
    ]  # fmt: skip
    assert stage.states(batch, "u0") == {"create": "succeeded", "license": "failed"}


def test_o9_a_rollback_step_that_fails_is_recorded_and_the_next_still_runs(stage: Stage) -> None:
    batch = play(stage, 1)
    stage.answers["Unlicense"] = Failing("cannot")
    stage.run()
    first, second = stage.rollbacks(batch)
    assert (first.status, first.error_message, second.status) == ("failed", "cannot", "succeeded")


def test_o9_a_failed_step_is_undone_only_if_it_failed_its_member(stage: Stage) -> None:
    """Two fail in one pile, and one of them has left: its removal steps undo what it had."""
    batch = play(stage)
    stage.answers["License"] = Silent()
    stage.run()
    stage.leave_unannounced(batch, "u0")
    for job in stage.jobs:
        if job.function_name == "License":
            stage.answer(job, Failing())
    assert stage.results.turn() == 2
    assert {row.batch_member_id for row in stage.rollbacks(batch)} == {stage.member(batch, "u1").id}


def test_o9_a_rollback_step_whose_variable_is_missing_is_recorded_and_the_next_still_runs(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers["Move"] = Failing()
    stage.due(batch, "cutover")
    stage.run()
    first, second = stage.rollbacks(batch)
    assert (first.status, second.status) == ("failed", "succeeded")
    assert "'UserId'" in str(first.error_message)


def test_o9_rollback_steps_are_retried_and_may_poll(stage: Stage) -> None:
    extra = "retry: {max_retries: 1, interval: 1m}, poll: {interval: 1m, timeout: 1h}"
    runbook = WITH_ROLLBACK.replace("function: Delete,", f"function: Delete, {extra},")
    batch = stage.batch(stage.publish(runbook))
    outcomes = iter([Failing(), {"complete": False}, {"complete": True}])
    stage.answers.update(Create={"Id": 1}, License=Failing(), Delete=lambda _: next(outcomes))
    stage.due(batch, "prepare")
    stage.run()
    assert stage.rollbacks(batch)[1].status == "pending"
    stage.later(minutes=1)
    assert stage.rollbacks(batch)[1].status == "polling"
    stage.later(minutes=1)
    assert stage.rollbacks(batch)[1].status == "succeeded"
    assert [job.job_id for job in stage.jobs[-3:]] == [
        "rollback-2-attempt-1",
        "rollback-2-retry-2",
        "rollback-2-poll-3",
    ]


def test_o9_a_batch_does_not_end_before_its_compensations_have(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers.update(Create={"Id": 1}, License=None, Move=Failing(), Unlicense=Silent())
    stage.due(batch, "prepare", "cutover")
    stage.run()
    assert stage.phases(batch) == {"prepare": PhaseStatus.COMPLETED, "cutover": PhaseStatus.FAILED}
    assert stage.reload(batch).status is BatchStatus.ACTIVE
    stage.answer(stage.jobs[-1])
    stage.run()
    assert stage.reload(batch).status is BatchStatus.FAILED


def test_o11_a_phase_is_completed_if_a_member_went_through_and_failed_if_nobody_did(stage: Stage) -> None:
    batch = play(stage)
    stage.run()
    assert stage.phases(batch)["prepare"] is PhaseStatus.COMPLETED
    other = stage.batch(stage.publish(ONE_STEP, "other"), 2)
    stage.answers["Create"] = Failing()
    stage.due(other, "prepare")
    stage.run()
    assert stage.phases(other) == {"prepare": PhaseStatus.FAILED}
    assert stage.reload(other).status is BatchStatus.FAILED


def test_o11_a_batch_is_cancelled_if_every_member_was_removed(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP), 2)
    stage.due(batch, "prepare")
    stage.handle()
    stage.leave(batch, "u0", "u1")
    stage.run()
    assert stage.states(batch, "u0") == {"create": "cancelled"}
    assert stage.phases(batch) == {"prepare": PhaseStatus.FAILED}
    assert stage.reload(batch).status is BatchStatus.CANCELLED


def test_u1_a_batch_whose_members_all_failed_after_a_phase_is_not_completed(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.answers["Move"] = Failing()
    stage.due(batch, "prepare")
    stage.run()
    stage.due(batch, "cutover", "check")
    stage.run()
    assert stage.phases(batch)["prepare"] is PhaseStatus.COMPLETED
    assert stage.reload(batch).status is BatchStatus.FAILED


def test_o11_batches_that_end_in_one_pile_each_end_as_their_own_phases_did(stage: Stage) -> None:
    runbook = stage.publish(ONE_STEP)
    good, bad = stage.batch_at(runbook, ["u0"], days=5), stage.batch_at(runbook, ["u1"], days=6)
    stage.answers["Create"] = lambda job: Failing() if job.parameters["Email"] == "u1" else None
    for batch in (good, bad):
        stage.due(batch, "prepare")
    stage.handle()
    stage.work()
    assert stage.results.turn() == 2
    assert stage.reload(good).status is BatchStatus.COMPLETED
    assert stage.reload(bad).status is BatchStatus.FAILED


def test_o11_a_batch_does_not_end_while_a_phase_is_still_to_come(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare")
    stage.run()
    assert stage.phases(batch)["prepare"] is PhaseStatus.COMPLETED
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_o16_a_phase_that_was_left_open_is_ended_by_the_sweep(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.due(batch, "prepare")
    stage.handle()
    stage.cancel_steps(batch)
    assert stage.phases(batch) == {"prepare": PhaseStatus.DISPATCHED}
    stage.sweep()
    assert stage.phases(batch) == {"prepare": PhaseStatus.FAILED}
    assert stage.reload(batch).status is BatchStatus.FAILED


def test_r9_failures_with_one_cause_are_one_group_although_they_name_different_people(stage: Stage) -> None:
    """The defect: three people with one cause were three groups, and a retry of one group chose one of them."""
    batch = stage.batch(stage.publish(TWO_STEPS), 4)
    ids = [f"{number:08x}-6f0e-4a57-9d6b-2f4f6f1f6a99" for number in range(3)]
    messages = iter([f"Graph: GET /v1.0/users/{{id}}: Resource '{one}' does not exist (Missing)" for one in ids])
    stage.answers["Create"] = lambda job: {} if job.parameters["Email"] == "u0" else Failing(next(messages))
    stage.due(batch, "prepare")
    stage.run()
    with stage.store.reading() as tx:
        graph, unresolved = failures_by_error(tx, batch.id)
        assert (graph.step_name, graph.members) == ("create", 3)
        assert ids[0] in graph.error
        assert len(members_that_failed(tx, batch.id, fingerprint=graph.fingerprint)) == 3
        assert "step 'license' of member 'u0': variable 'UserId'" in unresolved.error
        assert members_that_failed(tx, batch.id, fingerprint=unresolved.fingerprint) == [stage.member(batch, "u0").id]


def test_r9_unresolved_variables_are_grouped_by_variable_and_not_by_member(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 3)
    stage.answers["Create"] = {}
    stage.due(batch, "prepare")
    stage.run()
    with stage.store.reading() as tx:
        (group,) = failures_by_error(tx, batch.id)
    assert (group.step_name, group.members) == ("license", 3)
