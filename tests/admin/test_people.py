"""Rules O12, O13, O14, O1, T6 and M7: what people do, and what the orchestrator makes of it."""

from typing import Any

import orjson
import pytest
from sqlalchemy import text

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.approving import approve
from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.manual import add_to_manual_batch, create_manual_batch, remove_from_manual_batch
from matoolkit.admin.reinitializing import retry_init
from matoolkit.admin.retrying import preview_member_retry, retry_members
from matoolkit.admin.retryplan import Chosen
from matoolkit.domain.states import MOVED, BatchStatus, MemberStatus, PhaseStatus
from matoolkit.errors import (
    CannotAdvance,
    HoldChanged,
    InvalidMembers,
    NothingToRetry,
    NotManual,
    StillRunning,
    UnknownBatch,
    UnknownMembers,
    WrongBatchStatus,
)
from matoolkit.store.audit import audit_page
from tests.orchestrator.runbooks import ONE_STEP, TWO_PHASES, TWO_STEPS, WITH_FAREWELL, WITH_INIT, WITH_ROLLBACK
from tests.stage import Failing, Silent, Stage


def audited(stage: Stage) -> list[tuple[str, str, str | None]]:
    with stage.store.reading() as tx:
        return [(entry.action, entry.actor, entry.reason) for entry in reversed(audit_page(tx))]


def people(*keys: str) -> list[dict[str, Any]]:
    return [{"Email": key, "Name": key.upper()} for key in keys]


class TestCancelling:
    def test_o12_cancelling_stops_work(self, stage: Stage) -> None:
        """The defect: only the status of the batch changes."""
        batch = stage.batch(stage.publish(TWO_PHASES), 3)
        stage.due(batch, "prepare")
        stage.handle()
        (seen,) = stage.take_jobs(most=1)
        done = cancel_batch(stage.store, stage.bus, batch.id, by="anna", reason="wrong wave")
        assert (done.steps, done.jobs_in_flight, done.phases) == (3, 1, 3)
        assert stage.reload(batch).status is BatchStatus.CANCELLED
        assert set(stage.phases(batch).values()) == {PhaseStatus.CANCELLED}
        assert stage.take_jobs() == []
        stage.answer(seen)
        stage.run()
        stage.later(days=2)
        assert {step.status for step in stage.steps(batch)} == {"cancelled"}
        assert len(stage.jobs) == 1
        assert audited(stage) == [("batch.cancel", "anna", "wrong wave")]

    def test_o12_compensations_that_have_begun_finish_and_others_are_dropped(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_ROLLBACK), 2)
        stage.answers.update(Create={"Id": 1}, Forget=lambda job: Silent() if job.parameters["Email"] == "u0" else None)
        stage.answers["Create"] = lambda job: Silent() if job.parameters["Email"] == "u1" else {"Id": 1}
        stage.due(batch, "prepare")
        stage.run()
        stage.leave(batch, "u0", "u1")
        stage.run()
        assert stage.functions()[-1] == "Forget"
        done = cancel_batch(stage.store, stage.bus, batch.id, by="anna")
        assert done.compensations_finishing == 2
        stage.answer(stage.jobs[-1])
        stage.answer(next(job for job in stage.jobs if job.parameters["Email"] == "u1"))
        stage.run()
        states = {(row.batch_member_id, row.step_name): row.status for row in stage.rollbacks(batch)}
        assert sorted(states.values()) == ["cancelled", "cancelled", "succeeded", "succeeded"]
        assert stage.functions()[-1] == "Tell"

    @pytest.mark.parametrize(("first", "finishing"), [("attempt = 1, status = 'pending'", 2), ("status = 'failed'", 1)])
    def test_o12_a_compensation_that_tries_again_or_could_send_no_job_has_begun(
        self, stage: Stage, first: str, finishing: int
    ) -> None:
        batch = stage.batch(stage.publish(WITH_ROLLBACK))
        stage.answers["Create"] = Silent()
        stage.due(batch, "prepare")
        stage.run()
        stage.leave(batch, "u0")
        stage.run()
        with stage.store.transaction() as tx:
            tx.execute(text(f"UPDATE rollback_executions SET {first} WHERE step_index = 0"))
        done = cancel_batch(stage.store, stage.bus, batch.id, by="anna")
        assert done.compensations_finishing == finishing

    def test_o12_init_is_cancelled_too(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_INIT))
        stage.handle()
        cancel_batch(stage.store, stage.bus, batch.id, by="anna")
        stage.run()
        assert stage.jobs == []
        assert [row.status for row in stage.inits(batch)] == ["cancelled", "cancelled"]

    def test_o12_what_has_ended_cannot_be_cancelled(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(ONE_STEP))
        stage.due(batch, "prepare")
        stage.run()
        with pytest.raises(WrongBatchStatus):
            cancel_batch(stage.store, stage.bus, batch.id, by="anna")
        with pytest.raises(UnknownBatch):
            cancel_batch(stage.store, stage.bus, 99, by="anna")
        assert audited(stage) == []


class TestAdvancing:
    def test_o13_a_manual_batch_is_advanced_phase_by_phase_the_largest_offset_first(self, stage: Stage) -> None:
        """The defect: ascending offsets run the cutover first."""
        stage.publish(TWO_PHASES)
        batch = create_manual_batch(stage.store, "wave", people("a", "b"), by="anna").batch
        assert (batch.status, batch.batch_start_time) == (BatchStatus.DETECTED, None)
        for expected in ("prepare", "cutover", "check"):
            assert advance_batch(stage.store, stage.bus, batch.id, by="anna").phase_name == expected
            assert stage.reload(batch).current_phase == expected
            stage.run()
        assert stage.functions()[::2] == ["Create", "Move", "Finish", "Test"]
        assert stage.reload(batch).status is BatchStatus.COMPLETED
        assert advance_batch(stage.store, stage.bus, batch.id, by="anna").action == "all_phases_complete"
        assert stage.reload(batch).status is BatchStatus.COMPLETED

    def test_o13_a_phase_begins_when_the_one_before_has_ended(self, stage: Stage) -> None:
        stage.publish(TWO_PHASES)
        batch = create_manual_batch(stage.store, "wave", people("a"), by="anna").batch
        advance_batch(stage.store, stage.bus, batch.id, by="anna")
        with pytest.raises(CannotAdvance, match="'prepare' has not ended"):
            advance_batch(stage.store, stage.bus, batch.id, by="anna")

    def test_o13_init_comes_first(self, stage: Stage) -> None:
        stage.publish(WITH_INIT)
        batch = create_manual_batch(stage.store, "wave", people("a"), by="anna").batch
        assert advance_batch(stage.store, stage.bus, batch.id, by="anna").phase_name is None
        with pytest.raises(CannotAdvance, match="init"):
            advance_batch(stage.store, stage.bus, batch.id, by="anna")
        stage.run()
        assert advance_batch(stage.store, stage.bus, batch.id, by="anna").phase_name == "prepare"
        stage.run()
        assert stage.functions() == ["Domain", "Group", "Create"]

    def test_o13_only_manual_batches_are_advanced(self, stage: Stage) -> None:
        with pytest.raises(NotManual):
            advance_batch(stage.store, stage.bus, stage.batch(stage.publish(ONE_STEP)).id, by="anna")

    def test_o13_members_join_and_leave_a_manual_batch(self, stage: Stage) -> None:
        stage.publish(TWO_PHASES)
        batch = create_manual_batch(stage.store, "wave", people("a", "b"), by="anna").batch
        add_to_manual_batch(stage.store, stage.bus, batch.id, people("early"), by="anna")
        advance_batch(stage.store, stage.bus, batch.id, by="anna")
        stage.run()
        added = add_to_manual_batch(stage.store, stage.bus, batch.id, people("late", "A"), by="anna")
        assert (added.members, added.left_out) == (1, ("A",))
        remove_from_manual_batch(stage.store, stage.bus, batch.id, ["B"], by="anna", reason="changed their mind")
        stage.run()
        assert stage.states(batch, "early") == stage.states(batch, "late") == {"create": "succeeded"}
        assert stage.member(batch, "b").status is MemberStatus.REMOVED
        again = add_to_manual_batch(stage.store, stage.bus, batch.id, people("b"), by="anna")
        stage.run()
        assert (again.members, stage.member(batch, "b").epoch) == (1, 2)
        with pytest.raises(UnknownMembers):
            remove_from_manual_batch(stage.store, stage.bus, batch.id, ["nobody", "late"], by="anna")
        assert stage.member(batch, "late").status is MemberStatus.ACTIVE

    def test_o13_whatever_a_person_gives_for_a_reason_what_is_to_run_for_leavers_runs(self, stage: Stage) -> None:
        stage.publish(WITH_FAREWELL)
        batch = create_manual_batch(stage.store, "wave", people("a", "b"), by="anna").batch
        advance_batch(stage.store, stage.bus, batch.id, by="anna")
        stage.run()
        remove_from_manual_batch(stage.store, stage.bus, batch.id, ["b"], by="anna", reason=MOVED)
        stage.run()
        assert "Forget" in stage.functions()

    def test_o13_rows_that_cannot_be_used_are_refused_all_at_once(self, stage: Stage) -> None:
        stage.publish(ONE_STEP)
        with pytest.raises(InvalidMembers) as refused:
            create_manual_batch(stage.store, "wave", [*people("a", " ", "A"), {"Name": "x"}], by="anna")
        assert [problem.split(":")[0] for problem in refused.value.problems] == ["row 2", "row 3", "row 4"]

    def test_o13_who_is_in_a_batch_under_way_is_left_out(self, stage: Stage) -> None:
        stage.batch(stage.publish(ONE_STEP), ["busy"])
        made = create_manual_batch(stage.store, "wave", people("Busy", "free"), by="anna")
        assert (made.members, made.left_out) == (1, ("Busy",))

    def test_o13_whose_job_is_still_out_elsewhere_is_left_out(self, stage: Stage) -> None:
        """The simulation found two jobs of one person at a time."""
        over = stage.batch(stage.publish(ONE_STEP), ["busy"])
        stage.due(over, "prepare")
        stage.handle()
        (job,) = stage.take_jobs()
        cancel_batch(stage.store, stage.bus, over.id, by="anna")
        batch = create_manual_batch(stage.store, "wave", people("busy", "free"), by="anna").batch
        assert [member.member_key for member in stage.members(batch)] == ["free"]
        assert add_to_manual_batch(stage.store, stage.bus, batch.id, people("busy"), by="anna").left_out == ("busy",)
        stage.answer(job)
        stage.handle()
        assert add_to_manual_batch(stage.store, stage.bus, batch.id, people("busy"), by="anna").members == 1


class TestRetrying:
    def test_o14_who_failed_before_anything_was_undone_goes_on_from_there(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(TWO_PHASES), 2)
        stage.answers["Finish"] = lambda job: Failing() if job.parameters["Email"] == "u0" else None
        stage.due(batch, "prepare", "cutover")
        stage.run()
        stage.due(batch, "check")
        stage.run()
        assert stage.reload(batch).status is BatchStatus.COMPLETED
        stage.answers["Finish"] = None
        before = len(stage.jobs)
        shown = preview_member_retry(stage.store, batch.id)
        assert (shown.going_on, shown.beginning_again) == (("u0",), ())
        assert stage.member(batch).status is MemberStatus.FAILED, "a preview changes nothing"
        assert retry_members(stage.store, stage.bus, batch.id, by="anna") == shown
        assert stage.reload(batch).status is BatchStatus.ACTIVE
        stage.run()
        assert stage.functions()[before:] == ["Finish", "Test"], "the phase that came due since is caught up"
        assert set(stage.states(batch).values()) == {"succeeded"}
        assert (stage.member(batch).epoch, stage.reload(batch).status) == (1, BatchStatus.COMPLETED)

    def test_o14_a_persons_retry_resolves_parameters_anew(self, stage: Stage) -> None:
        runbook = stage.publish(ONE_STEP)
        batch = stage.batch(runbook)
        stage.answers["Create"] = Failing()
        stage.due(batch, "prepare")
        stage.run()
        stage.correct(runbook, batch, {"u0": {"Email": "corrected"}})
        retry_members(stage.store, stage.bus, batch.id, by="anna")
        stage.answers["Create"] = None
        stage.run()
        assert [job.parameters["Email"] for job in stage.jobs] == ["u0", "corrected"]
        assert [job.job_id for job in stage.jobs] == ["step-1-attempt-1", "step-1-attempt-2"]

    def test_o14_whose_work_was_undone_begins_again_without_its_outputs(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_ROLLBACK))
        stage.answers.update(Create={"Id": 1}, License=Failing())
        stage.due(batch, "prepare")
        stage.run()
        assert stage.functions() == ["Create", "License", "Unlicense", "Delete"]
        stage.answers["License"] = None
        done = retry_members(stage.store, stage.bus, batch.id, by="anna")
        assert done.beginning_again == ("u0",)
        assert stage.outputs(batch) == {}
        stage.run()
        assert stage.functions()[4:] == ["Create", "License"]
        assert stage.member(batch).epoch == 2

    def test_o14_a_retry_is_refused_while_the_rollback_runs(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_ROLLBACK))
        stage.answers.update(Create={"Id": 1}, License=Failing(), Unlicense=Silent())
        stage.due(batch, "prepare")
        stage.run()
        with pytest.raises(StillRunning, match="u0"):
            retry_members(stage.store, stage.bus, batch.id, by="anna")
        assert stage.member(batch).status is MemberStatus.FAILED

    def test_o14_who_failed_in_a_version_that_is_out_of_use_begins_again(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(TWO_PHASES), 2)
        stage.answers["Create"] = lambda job: Failing() if job.parameters["Email"] == "u0" else Silent()
        stage.due(batch, "prepare")
        stage.run()
        stage.change_version(batch, stage.publish(TWO_PHASES + "# 2\n"))
        stage.answers["Create"] = None
        assert retry_members(stage.store, stage.bus, batch.id, by="anna").beginning_again == ("u0",)
        stage.due(batch, "prepare")
        stage.run()
        assert stage.states(batch, "u0")["create"] == "succeeded"

    def test_o14_members_in_another_unfinished_batch_are_left_out_and_shown(self, stage: Stage) -> None:
        runbook = stage.publish(ONE_STEP)
        batch = stage.batch(runbook, 2)
        stage.answers["Create"] = Failing()
        stage.due(batch, "prepare")
        stage.run()
        stage.batch_at(runbook, ["U0"], days=9)
        done = retry_members(stage.store, stage.bus, batch.id, by="anna")
        assert (done.going_on, done.left_out) == (("u1",), ("u0",))

    def test_o14_members_whose_job_is_still_out_elsewhere_are_left_out_and_shown(self, stage: Stage) -> None:
        runbook = stage.publish(ONE_STEP)
        batch = stage.batch(runbook, 2)
        stage.answers["Create"] = Failing()
        stage.due(batch, "prepare")
        stage.run()
        other = stage.batch_at(runbook, ["U0"], days=9)
        stage.due(other, "prepare")
        stage.handle()
        assert len(stage.take_jobs()) == 1
        cancel_batch(stage.store, stage.bus, other.id, by="anna")
        done = retry_members(stage.store, stage.bus, batch.id, by="anna")
        assert (done.going_on, done.left_out) == (("u1",), ("u0",))

    def test_o14_a_batch_that_ended_while_held_is_not_held_when_it_is_taken_up_again(self, stage: Stage) -> None:
        """No tick looks at it any more, so nothing would ever end the hold."""
        batch = stage.batch(stage.publish(ONE_STEP))
        stage.due(batch, "prepare")
        stage.handle()
        stage.hold(batch)
        stage.answers["Create"] = Failing()
        stage.run()
        assert (stage.reload(batch).status, stage.reload(batch).is_held) == (BatchStatus.FAILED, True)
        del stage.answers["Create"]
        retry_members(stage.store, stage.bus, batch.id, by="anna")
        assert not stage.reload(batch).is_held
        stage.run()
        assert stage.reload(batch).status is BatchStatus.COMPLETED

    def test_o14_members_are_chosen_by_how_they_failed(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(ONE_STEP), 3)
        stage.answers["Create"] = lambda job: Failing("full" if job.parameters["Email"] == "u2" else "locked")
        stage.due(batch, "prepare")
        stage.run()
        with pytest.raises(NothingToRetry):
            retry_members(stage.store, stage.bus, batch.id, Chosen(error="unheard of"), by="anna")
        done = retry_members(stage.store, stage.bus, batch.id, Chosen(step_name="create", error="full"), by="anna")
        assert done.going_on == ("u2",)

    def test_o14_a_cancelled_batch_is_not_taken_up_again(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(TWO_STEPS), 2)
        stage.answers["Create"] = lambda job: Failing() if job.parameters["Email"] == "u0" else Silent()
        stage.due(batch, "prepare")
        stage.run()
        cancel_batch(stage.store, stage.bus, batch.id, by="anna")
        with pytest.raises(WrongBatchStatus):
            retry_members(stage.store, stage.bus, batch.id, by="anna")


class TestInit:
    def test_o1_a_failed_init_is_retried_from_where_it_failed(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_INIT))
        stage.answers["Group"] = Failing()
        stage.run()
        assert stage.reload(batch).status is BatchStatus.FAILED
        stage.answers["Group"] = None
        assert retry_init(stage.store, stage.bus, batch.id, by="anna").version == 1
        stage.run()
        assert stage.functions() == ["Domain", "Group", "Group"]
        assert stage.reload(batch).status is BatchStatus.ACTIVE

    def test_o1_an_init_that_was_undone_runs_again_from_its_beginning(self, stage: Stage) -> None:
        runbook = WITH_INIT.replace("function: Group}", "function: Group, on_failure: close}")
        batch = stage.batch(stage.publish(runbook))
        stage.answers["Group"] = Failing()
        stage.run()
        stage.answers["Group"] = None
        retry_init(stage.store, stage.bus, batch.id, by="anna")
        stage.run()
        assert stage.functions() == ["Domain", "Group", "Undomain", "Domain", "Group"]
        assert stage.reload(batch).status is BatchStatus.ACTIVE

    def test_v2_a_batch_that_failed_in_init_takes_the_active_version_when_it_is_retried(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_INIT))
        stage.answers["Group"] = Failing()
        stage.run()
        stage.publish(WITH_INIT.replace("function: Group", "function: Team"))
        assert retry_init(stage.store, stage.bus, batch.id, by="anna").version == 2
        stage.run()
        assert stage.functions() == ["Domain", "Group", "Domain", "Team"]
        assert [phase.status for phase in stage.phase_rows(batch)] == [PhaseStatus.SUPERSEDED, PhaseStatus.PENDING]
        assert stage.reload(batch).status is BatchStatus.ACTIVE

    def test_o1_an_init_that_has_not_failed_cannot_be_retried(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_INIT))
        stage.handle()
        with pytest.raises(NothingToRetry):
            retry_init(stage.store, stage.bus, batch.id, by="anna")

    def test_v5_a_held_init_is_passed_by_when_a_person_approves_exactly_that(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_INIT))
        stage.run()
        stage.answers["Domain"] = Failing()
        stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=True)
        stage.run()
        stage.join(batch, "late")
        stage.run()
        with pytest.raises(HoldChanged):
            approve(stage.store, stage.bus, batch.id, "init-v1-1", by="anna")
        held = stage.reload(batch)
        after = approve(stage.store, stage.bus, batch.id, str(held.hold_key), by="anna", reason="not needed")
        assert (after.status, after.is_held) == (BatchStatus.ACTIVE, False)
        stage.run()
        assert stage.member(batch, "late").caught_up_at is not None
        assert audited(stage)[-1] == ("batch.approve_hold", "anna", "not needed")

    def test_v5_a_held_init_can_be_retried_instead(self, stage: Stage) -> None:
        batch = stage.batch(stage.publish(WITH_INIT))
        stage.run()
        stage.answers["Domain"] = Failing()
        stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=True)
        stage.run()
        stage.answers["Domain"] = None
        retry_init(stage.store, stage.bus, batch.id, by="anna")
        stage.run()
        after = stage.reload(batch)
        assert (after.status, after.is_held) == (BatchStatus.ACTIVE, False)


def test_t6_another_hold_is_only_noted_as_approved_for_the_scheduler(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    stage.hold(batch, "removals-1")
    after = approve(stage.store, stage.bus, batch.id, "removals-1", by="anna")
    assert (after.is_held, after.approved_hold_key, after.approved_hold_by) == (True, "removals-1", "anna")


def test_a5_who_what_before_and_after_are_recorded(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP))
    cancel_batch(stage.store, stage.bus, batch.id, by="anna", reason="late")
    with stage.store.reading() as tx:
        (entry,) = audit_page(tx, batch_id=batch.id)
    assert (entry.subject_type, entry.subject_id, entry.runbook_name) == ("batch", str(batch.id), "wave")
    assert orjson.loads(str(entry.before_json)) == {"status": "active"}
    assert orjson.loads(str(entry.after_json))["status"] == "cancelled"
