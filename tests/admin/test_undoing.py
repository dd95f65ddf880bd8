"""Rule U2: a person undoes members of a batch, in any status of it, and the orchestrator carries it out."""

from collections.abc import Callable

import pytest

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.excluding import preview_exclusion
from matoolkit.admin.manual import add_to_manual_batch, create_manual_batch
from matoolkit.admin.retrying import retry_members
from matoolkit.admin.undoing import MemberUndo, preview_undo, undo_members
from matoolkit.admin.undoplan import Wanted
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.retrying import VersionChoice
from matoolkit.domain.states import MOVED, BatchStatus, MemberState, MemberStatus, PhaseStatus, StepStatus
from matoolkit.domain.undoing import NothingToRun, NotUndoneBecause
from matoolkit.errors import NothingToRetry, NothingToUndo, UnknownBatch, UnknownMembers
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import BatchRow
from matoolkit.store.memberstates import states_of_members
from matoolkit.store.undoing import UndoProgress, undo_progress
from tests.orchestrator.runbooks import TWO_PHASES, WITH_FAREWELL, WITH_INIT, WITH_ROLLBACK
from tests.stage import Failing, Silent, Stage

OTHER_FAREWELL = WITH_FAREWELL.replace("name: forget", "name: clear").replace("function: Forget", "function: Clear")


def undo(
    stage: Stage, batch: BatchRow, *keys: str, version: VersionChoice | None = None, state: MemberState | None = None
) -> MemberUndo:
    """Undo members, or everybody."""
    wanted = Wanted(member_keys=keys or None, state=state)
    return undo_members(stage.store, stage.bus, batch.id, wanted, version, by="anna", reason="wrong wave")


def state_of(stage: Stage, batch: BatchRow, key: str) -> MemberState:
    member = stage.member(batch, key).id
    with stage.store.reading() as tx:
        return states_of_members(tx, [member])[member]


def called(stage: Stage, function: str) -> list[str]:
    return [str(job.parameters["Email"]) for job in stage.jobs if job.function_name == function]


def farewells(stage: Stage, batch: BatchRow) -> list[tuple[str, StepStatus]]:
    return [(row.step_name, row.status) for row in stage.rollbacks(batch)]


def under_way(stage: Stage, members: int = 2, runbook: str = WITH_FAREWELL) -> BatchRow:
    """Let a batch do its first phase."""
    batch = stage.batch(stage.publish(runbook), members)
    stage.due(batch, "prepare")
    stage.run()
    return batch


def completed(stage: Stage, members: int = 2) -> BatchRow:
    batch = under_way(stage, members)
    stage.due(batch, "cutover", "check")
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    return batch


def test_u2_an_undo_runs_the_removal_steps_and_the_others_go_on(stage: Stage) -> None:
    batch = under_way(stage)
    done = undo(stage, batch, "U0 ")
    assert (done.running, done.left_out, done.version) == (("u0",), (), 1)
    assert [(step.name, step.function) for step in done.steps] == [("forget", "Forget")]
    stage.run()
    assert called(stage, "Forget") == ["u0"]
    member = stage.member(batch, "u0")
    assert member.status is MemberStatus.REMOVED
    assert member.undone_at is not None
    assert (member.removed_by, member.remove_reason) == ("anna", "undone by a person: wrong wave")
    stage.due(batch, "cutover")
    stage.run()
    assert called(stage, "Move") == ["u1"]


def test_u2_everybody_who_is_active_or_failed_is_undone(stage: Stage) -> None:
    stage.answers["Create"] = lambda job: Failing() if job.parameters["Email"] == "u1" else {}
    batch = under_way(stage, 3)
    assert undo(stage, batch).running == ("u0", "u1", "u2")
    stage.run()
    assert sorted(called(stage, "Forget")) == ["u0", "u1", "u2"]
    with pytest.raises(NothingToUndo, match="no active or failed member"):
        undo(stage, batch)


def test_u2_only_failed_members_or_those_that_failed_alike(stage: Stage) -> None:
    stage.answers["Create"] = lambda job: Failing(job.parameters["Email"]) if job.parameters["Email"] != "u0" else {}
    batch = under_way(stage, 3)
    seen = preview_undo(stage.store, batch.id, Wanted(state=MemberState.FAILED))
    assert seen.running == ("u1", "u2")
    alike = preview_undo(stage.store, batch.id, Wanted(phase_name="prepare", step_name="create", error="u2"))
    assert alike.running == ("u2",)
    assert undo(stage, batch, state=MemberState.FAILED).running == ("u1", "u2")
    assert stage.member(batch, "u0").status is MemberStatus.ACTIVE


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_u2_in_a_batch_that_has_ended(stage: Stage, end: str) -> None:
    if end == "failed":
        stage.answers["Create"] = Failing()
    batch = completed(stage, 1) if end == "completed" else under_way(stage, 1)
    if end == "failed":
        stage.due(batch, "cutover", "check")
        stage.skip(batch, "cutover", "check")
        stage.run()
    if end == "cancelled":
        cancel_batch(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    before = stage.reload(batch)
    undo(stage, batch)
    stage.run()
    assert farewells(stage, batch) == [("forget", StepStatus.SUCCEEDED)]
    after = stage.reload(batch)
    # Nobody is left in it, so it reads as that. It did not begin again.
    assert after.status is BatchStatus.CANCELLED
    assert after.completed_at is not None
    assert (before.reopened_at, after.reopened_at) == (None, None)


def test_u2_a_completed_batch_stays_so_while_somebody_is_left(stage: Stage) -> None:
    batch = completed(stage)
    undo(stage, batch, "u0")
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    undo(stage, batch, "u1")
    assert stage.reload(batch).status is BatchStatus.CANCELLED


def test_u2_a_completed_batch_is_failed_if_only_failed_members_are_left(stage: Stage) -> None:
    stage.answers["Create"] = lambda job: Failing() if job.parameters["Email"] == "u1" else {}
    batch = completed(stage)
    undo(stage, batch, "u0")
    stage.run()
    assert stage.reload(batch).status is BatchStatus.FAILED
    stage.answers.clear()
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    assert stage.member(batch, "u1").status is MemberStatus.ACTIVE


def test_u2_o5_a_job_in_flight_is_waited_for_and_its_outputs_are_used(stage: Stage) -> None:
    own, outputs = "function: Forget, params: {Email: '{{Email}}'", "function: Forget, params: {User: '{{UserId}}'"
    farewell = WITH_ROLLBACK.replace(own, outputs)
    stage.answers["Create"] = Silent()
    batch = under_way(stage, 1, farewell)
    (create,) = stage.jobs
    undo(stage, batch)
    stage.run()
    assert len(stage.jobs) == 1
    with stage.store.reading() as tx:
        assert undo_progress(tx, batch.id).undoing == 1
    assert state_of(stage, batch, "u0") is MemberState.UNDOING
    stage.answer(create, {"Id": "42"})
    stage.run()
    assert state_of(stage, batch, "u0") is MemberState.UNDONE
    assert [job.parameters["User"] for job in stage.jobs if job.function_name == "Forget"] == ["42"]
    assert called(stage, "License") == []


@pytest.mark.parametrize("ends", [False, True])
def test_u2_o16_a_job_that_is_lost_does_not_keep_an_undo_waiting(stage: Stage, *, ends: bool) -> None:
    stage.answers["Create"] = Silent()
    batch = under_way(stage, 1)
    if ends:
        cancel_batch(stage.store, stage.bus, batch.id, by="anna")
    undo(stage, batch)
    stage.run()
    stage.later(hours=25)
    assert farewells(stage, batch) == [("forget", StepStatus.SUCCEEDED)]


def test_u2_o16_an_undo_of_an_ended_batch_outlives_lost_jobs_and_lost_messages(stage: Stage) -> None:
    batch = completed(stage, 1)
    stage.answers["Forget"] = Silent()
    undo(stage, batch)
    stage.bus.complete_now(stage.bus.receive(stage.events_of_orchestrator, 10))
    stage.later(hours=2)
    assert called(stage, "Forget") == ["u0"], "a sweep sees off whose message was lost"
    stage.later(hours=25)
    assert farewells(stage, batch) == [("forget", StepStatus.FAILED)]
    with stage.store.reading() as tx:
        assert undo_progress(tx, batch.id) == UndoProgress(1, 0, {StepStatus.FAILED: 1})


def test_u2_members_are_left_out_while_their_rollback_runs(stage: Stage) -> None:
    stage.answers |= {"Create": {"Id": "1"}, "License": Failing(), "Unlicense": Silent()}
    batch = under_way(stage, 2, WITH_ROLLBACK)
    with pytest.raises(NothingToUndo, match="the rollback of u0, u1 has not ended"):
        undo(stage, batch)
    first = next(job for job in stage.jobs if job.function_name == "Unlicense")
    stage.answer(first)
    stage.run()
    seen = preview_undo(stage.store, batch.id)
    assert (seen.running, seen.rolled_back) == (("u0",), ("u0",))
    running = [(NotUndoneBecause.ROLLBACK_RUNS, ("u1",))]
    assert [(group.because, group.members) for group in seen.left_out] == running
    failed = preview_undo(stage.store, batch.id, Wanted(state=MemberState.FAILED))
    assert (failed.running, [(group.because, group.members) for group in failed.left_out]) == (("u0",), running)


def test_u2_a_preview_names_whom_nothing_runs_for_and_changes_nothing(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_FAREWELL), 1)
    seen = preview_undo(stage.store, batch.id)
    assert [(group.because, group.members) for group in seen.nothing_to_run] == [(NothingToRun.NOTHING_DONE, ("u0",))]
    assert stage.member(batch, "u0").status is MemberStatus.ACTIVE
    undo(stage, batch)
    stage.run()
    assert stage.jobs == []
    assert stage.member(batch, "u0").undone_at is not None
    with stage.store.reading() as tx:
        assert undo_progress(tx, batch.id).undoing == 0


def test_u2_nothing_runs_if_the_version_has_no_removal_steps(stage: Stage) -> None:
    batch = under_way(stage, 1, TWO_PHASES)
    seen = preview_undo(stage.store, batch.id)
    assert [group.because for group in seen.nothing_to_run] == [NothingToRun.NO_STEPS]
    stage.publish(WITH_FAREWELL)
    active = preview_undo(stage.store, batch.id, version=VersionChoice.ACTIVE)
    assert (active.version, active.running) == (2, ("u0",))


def test_u2_the_version_that_the_batch_follows_runs_or_the_active_one(stage: Stage) -> None:
    batch = under_way(stage)
    stage.publish(OTHER_FAREWELL)
    undo(stage, batch, "u0")
    undo(stage, batch, "u1", version=VersionChoice.ACTIVE)
    stage.run()
    assert (called(stage, "Forget"), called(stage, "Clear")) == (["u0"], ["u1"])


def test_u2_what_was_shown_runs_even_if_the_batch_takes_another_version_meanwhile(stage: Stage) -> None:
    batch = under_way(stage)
    undo(stage, batch, "u0")
    stage.change_version(batch, stage.publish(OTHER_FAREWELL))
    stage.run()
    assert (called(stage, "Forget"), called(stage, "Clear")) == (["u0"], [])


def test_u2_nobody_is_undone_where_another_batch_has_it_or_it_is_done_since(stage: Stage) -> None:
    stage.answers["Create"] = Failing()
    first = under_way(stage, 1)
    stage.answers.clear()
    runbook = stage.publish(WITH_FAREWELL)
    second = stage.batch_at(runbook, ["u0"], days=9)
    with pytest.raises(NothingToUndo, match="another batch has u0"):
        undo(stage, first)
    stage.due(second, "prepare", "cutover", "check")
    stage.run()
    assert stage.reload(second).status is BatchStatus.COMPLETED
    with pytest.raises(NothingToUndo, match="u0 is done in a later batch"):
        undo(stage, first)
    assert undo(stage, second).running == ("u0",)


def test_u2_a_batch_that_somebody_came_back_to_is_the_later_one(stage: Stage) -> None:
    runbook = stage.publish(WITH_FAREWELL)
    first = stage.batch_at(runbook, 1, days=9)
    stage.leave(first, "u0", reason=MOVED)
    stage.later(hours=1)
    second = stage.batch_at(runbook, 1, days=5)
    stage.due(second, "prepare", "cutover", "check")
    stage.later(hours=1)
    stage.come_back(first, "u0")
    stage.due(first, "prepare", "cutover", "check")
    stage.run()
    assert {stage.reload(batch).status for batch in (first, second)} == {BatchStatus.COMPLETED}
    with pytest.raises(NothingToUndo, match="u0 is done in a later batch"):
        undo(stage, second)
    seen = preview_exclusion(stage.store, "wave", "u0", undo=True)
    assert seen.undo is not None
    assert seen.undo.batch_id == first.id
    assert undo(stage, first).running == ("u0",)


def test_u2_t5_work_that_somebody_brought_from_another_batch_is_undone(stage: Stage) -> None:
    first = under_way(stage, 1)
    stage.leave(first, "u0", reason=MOVED)
    stage.later(hours=1)
    second = stage.batch_at(stage.publish(WITH_FAREWELL), 1, days=9)
    assert undo(stage, second).running == ("u0",)
    stage.run()
    assert called(stage, "Forget") == ["u0"]
    stage.later(hours=1)
    third = stage.batch_at(stage.publish(WITH_FAREWELL), 1, days=10)
    (group,) = undo(stage, third).nothing_to_run
    assert group.because is NothingToRun.NOTHING_DONE, "it was undone before, and began afresh"


def test_u2_an_undone_member_cannot_be_retried_or_undone_again(stage: Stage) -> None:
    stage.answers["Create"] = Failing()
    batch = under_way(stage, 1)
    undo(stage, batch)
    with pytest.raises(NothingToRetry):
        retry_members(stage.store, stage.bus, batch.id, by="anna")
    with pytest.raises(NothingToUndo, match="u0 was undone before"):
        undo(stage, batch, "u0")
    stage.run()
    assert called(stage, "Forget") == ["u0"]


def test_u2_who_is_asked_for_must_be_in_the_batch(stage: Stage) -> None:
    batch = under_way(stage, 1)
    with pytest.raises(UnknownMembers, match="no such member nobody"):
        undo(stage, batch, "u0", "nobody")
    with pytest.raises(UnknownBatch):
        preview_undo(stage.store, 99)


def test_u2_a_failed_step_of_an_undo_is_recorded_and_the_next_runs(stage: Stage) -> None:
    stage.answers |= {"Create": {"Id": "1"}, "Forget": Failing()}
    batch = under_way(stage, 1, WITH_ROLLBACK)
    undo(stage, batch)
    stage.run()
    assert farewells(stage, batch) == [("forget", StepStatus.FAILED), ("tell", StepStatus.SUCCEEDED)]


def test_u2_a_batch_ends_only_after_its_undo(stage: Stage) -> None:
    batch = under_way(stage)
    stage.answers["Forget"] = Silent()
    undo(stage, batch, "u0")
    stage.due(batch, "cutover", "check")
    stage.run()
    assert set(stage.phases(batch).values()) == {PhaseStatus.COMPLETED}
    assert stage.reload(batch).status is BatchStatus.ACTIVE
    stage.answer(next(job for job in stage.jobs if job.function_name == "Forget"))
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_u2_cancelling_drops_no_undo(stage: Stage) -> None:
    """A cancelled batch begins nothing new, but a person asked for this."""
    stage.answers["Create"] = Silent()
    batch = under_way(stage, 1)
    undo(stage, batch)
    stage.run()
    assert farewells(stage, batch) == [("forget", StepStatus.PENDING)], "it waits for the job that is out"
    done = cancel_batch(stage.store, stage.bus, batch.id, by="anna")
    assert done.compensations_finishing == 1
    stage.answer(stage.jobs[0])
    stage.run()
    assert farewells(stage, batch) == [("forget", StepStatus.SUCCEEDED)]


@pytest.mark.parametrize("hit", range(1, 9))
def test_u2_a_process_that_dies_on_the_way_loses_and_repeats_nothing(stage: Stage, hit: int) -> None:
    batch = under_way(stage, 2)
    try:
        with crashing("store.before_commit", on_hit=hit):
            undo(stage, batch)
            stage.run()
    except SimulatedCrash:
        pass
    if not stage.members(batch)[0].undone_at:
        assert farewells(stage, batch) == []
        undo(stage, batch)
    stage.later(minutes=10)
    assert farewells(stage, batch) == [("forget", StepStatus.SUCCEEDED)] * 2


def test_u2_a_held_batch_and_one_in_its_init(stage: Stage) -> None:
    batch = under_way(stage, 2)
    stage.hold(batch)
    undo(stage, batch, "u0")
    stage.run()
    assert called(stage, "Forget") == ["u0"]
    waiting = stage.batch(stage.publish(WITH_INIT, "other"), 1)
    assert undo(stage, waiting).running == ()


def test_u2_manual_batches(stage: Stage) -> None:
    stage.publish(WITH_FAREWELL)
    rows = [{"Email": "ann", "Name": "Ann"}, {"Email": "bob", "Name": "Bob"}]
    batch = create_manual_batch(stage.store, "wave", rows, by="anna").batch
    advance_batch(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    stage.keep(batch, "ann", {"Id": "1"})
    stage.answers["Forget"] = Silent()
    undo(stage, batch, "ann")
    stage.run()
    again = [{"Email": "ann", "Name": "Ann"}]
    assert add_to_manual_batch(stage.store, stage.bus, batch.id, again, by="anna").left_out == ("ann",)
    stage.answer(stage.jobs[-1])
    stage.run()
    assert add_to_manual_batch(stage.store, stage.bus, batch.id, again, by="anna").members == 1
    member = stage.member(batch, "ann")
    assert (member.status, member.epoch, member.worker_data_json) == (MemberStatus.ACTIVE, 2, "{}")
    assert member.undone_at is None


def test_u2_an_undo_is_audited(stage: Stage) -> None:
    batch = under_way(stage)
    undo(stage, batch)
    with stage.store.reading() as tx:
        (entry,) = audit_page(tx)
    assert (entry.action, entry.actor, entry.reason) == ("batch.undo", "anna", "wrong wave")
    assert entry.after_json == '{"version":1,"members":2,"running":2}'


def test_u2_an_undo_takes_the_same_statements_for_any_number(stage: Stage, statements: Callable[[], list[str]]) -> None:
    counts = []
    for members in (5, 300):
        batch = stage.batch(stage.publish(WITH_FAREWELL, f"wave-{members}"), members)
        stage.due(batch, "prepare")
        stage.run()
        statements()
        undo(stage, batch)
        asked = len(statements())
        stage.events.turn()
        counts.append((asked, len(statements())))
    assert counts[0] == counts[1]
    assert max(counts[0]) < 40
