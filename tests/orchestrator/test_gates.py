"""Rules G4 to G8: pauses take back what nobody has received, keep every job, and wake what waited."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject, open_gate, pause, resume, shut_pause
from matoolkit.domain.states import BatchStatus, MemberStatus, StepStatus
from matoolkit.orchestrator.agenda import Limits
from matoolkit.scheduler.gates import look_after_gates
from matoolkit.store.gatekeeping import gates_by_id
from tests.stage import Failing, Stage

from .runbooks import ONE_STEP, TWO_PHASES, TWO_STEPS, WITH_POLL, WITH_RETRY, WITH_ROLLBACK

SUBJECTS = {
    "all": Subject(),
    "batch": Subject(batch_id=1),
    "runbook": Subject(runbook_name="wave"),
    "worker": Subject(worker_id="worker-01"),
    "member": Subject(runbook_name="wave", member_key="U0"),
}


def started(stage: Stage, runbook: str = TWO_STEPS, members: int = 1) -> Any:
    batch = stage.batch(stage.publish(runbook), members)
    stage.due(batch, "prepare")
    stage.handle()
    return batch


def paused(stage: Stage, subject: Subject = SUBJECTS["all"], **other: Any) -> Any:
    return pause(stage.store, stage.bus, subject, by="anna", reason="legal hold", **other)


def resumed(stage: Stage, subject: Subject = SUBJECTS["all"]) -> None:
    resume(stage.store, stage.bus, subject, by="anna", reason="it is over")
    stage.handle()


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=list(SUBJECTS))
def test_g4_a_pause_takes_back_what_nobody_has_received_and_a_resume_sends_it(stage: Stage, subject: Subject) -> None:
    batch = started(stage)
    done = paused(stage, subject)
    assert (done.jobs.taken_back, done.jobs.out) == (1, 0)
    assert stage.states(batch) == {"create": "pending", "license": "pending"}
    assert stage.take_jobs() == []
    resumed(stage, subject)
    (job,) = stage.take_jobs()
    assert job.job_id.endswith("-attempt-2"), "the attempt that was taken back stays counted"
    stage.answer(job, {"Id": 7})
    stage.run()
    assert stage.states(batch) == {"create": "succeeded", "license": "succeeded"}


def test_g4_a_job_that_a_worker_has_is_counted_and_its_answer_is_taken(stage: Stage) -> None:
    batch = started(stage, members=3)
    (job,) = stage.take_jobs(most=1)
    done = paused(stage)
    assert (done.jobs.taken_back, done.jobs.out) == (2, 1)
    stage.answer(job, {"Id": 7})
    stage.handle()
    assert stage.states(batch) == {"create": "succeeded", "license": "pending"}
    assert stage.take_jobs() == []


def test_g4_a_retry_and_a_poll_that_are_taken_back_are_due_at_once_and_use_no_try_up(stage: Stage) -> None:
    for runbook, outcome, reason in ((WITH_RETRY, Failing(), "retry"), (WITH_POLL, {"complete": False}, "poll")):
        batch = stage.batch(stage.publish(runbook, reason), 1)
        stage.due(batch, "prepare")
        stage.handle()
        (job,) = stage.take_jobs()
        stage.answer(job, outcome)
        stage.handle()
        stage.clock.advance(timedelta(hours=1))
        stage.sweep()
        stage.handle()
        subject = Subject(batch_id=batch.id)
        tries = stage.steps(batch)[0].retry_count
        assert paused(stage, subject).jobs.taken_back == 1
        assert stage.steps(batch)[0].retry_count == tries
        assert stage.take_jobs() == []
        resume(stage.store, stage.bus, subject, by="anna", reason=None)
        stage.sweep()
        stage.handle()
        (again,) = stage.take_jobs()
        assert again.job_id.endswith(f"-{reason}-3")


def test_g4_the_job_of_a_step_that_was_cancelled_is_taken_back_for_good(stage: Stage) -> None:
    """Nobody waits any more for an answer that cannot come."""
    batch = started(stage)
    stage.cancel_steps(batch)
    assert paused(stage).jobs.taken_back == 1
    (create, _) = stage.steps(batch)
    assert (create.status, create.lost_at) == (StepStatus.CANCELLED, None)
    resumed(stage)
    assert stage.take_jobs() == []


def test_g4_if_who_pauses_dies_the_orchestrator_takes_the_jobs_back(stage: Stage) -> None:
    started(stage, members=2)
    gate = shut_pause(stage.store, Subject(), by="anna", reason="legal hold")
    stage.sweep()
    assert stage.take_jobs() == []
    with stage.store.reading() as tx:
        assert gates_by_id(tx, [gate.id])[0].swept_at == stage.now


def test_g5_what_begins_meanwhile_waits_for_the_send_door_too(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 1)
    paused(stage, Subject(batch_id=batch.id))
    stage.due(batch, "prepare")
    stage.join(batch, "late")
    stage.handle()
    assert (stage.take_jobs(), stage.states(batch, "late")["create"]) == ([], "pending")
    resumed(stage, Subject(batch_id=batch.id))
    assert len(stage.take_jobs()) == 2


def test_g5_let_finish_keeps_what_begins_and_lets_what_runs_go_on(stage: Stage) -> None:
    batch = started(stage, TWO_PHASES.replace("T-5d", "T-0"))
    done = paused(stage, let_finish=True)
    assert (done.jobs.taken_back, done.gate.reach) == (0, "start")
    stage.due(batch, "cutover")
    stage.work()
    stage.handle()
    assert stage.states(batch)["create"] == "succeeded"
    assert stage.states(batch)["move"] == "pending"
    resumed(stage)
    assert [job.function_name for job in stage.take_jobs()] == ["Move"]


def test_g5_compensations_and_inits_wait_and_are_woken(stage: Stage) -> None:
    batch = started(stage, WITH_ROLLBACK)
    stage.answer(stage.take_jobs()[0], {"Id": 7})
    stage.handle()
    (job,) = stage.take_jobs()
    paused(stage)
    stage.answer(job, Failing())
    stage.handle()
    assert stage.member(batch).status is MemberStatus.FAILED
    assert {one.status for one in stage.rollbacks(batch)} == {"pending"}
    resumed(stage)
    stage.run()
    assert {one.status for one in stage.rollbacks(batch)} == {"succeeded"}


@pytest.mark.parametrize("let_finish", [False, True])
def test_g5_an_init_begins_when_the_gate_is_open(stage: Stage, let_finish: bool) -> None:
    init = "init:\n  - {name: announce, worker_id: worker-01, function: Announce}\n"
    batch = stage.batch(stage.publish(init + ONE_STEP), 1)
    subject = Subject(batch_id=batch.id)
    paused(stage, subject, let_finish=let_finish)
    stage.request_init(batch, 1, times=1)
    stage.handle()
    assert (stage.take_jobs(), stage.reload(batch).status) == ([], BatchStatus.INIT_DISPATCHED)
    resumed(stage, subject)
    assert [job.function_name for job in stage.take_jobs()] == ["Announce"]


def test_g6_no_poll_is_asked_for_while_a_gate_keeps_it(stage: Stage, statements: Callable[[], list[str]]) -> None:
    batch = started(stage, WITH_POLL)
    (job,) = stage.take_jobs()
    stage.answer(job, {"complete": False})
    stage.handle()
    paused(stage)
    stage.later(hours=1)
    stage.sweep()
    assert stage.handle() == 0
    assert stage.states(batch)["create"] == "polling"
    resumed(stage)
    stage.sweep()
    stage.handle()
    assert len(stage.take_jobs()) == 1


@pytest.mark.parametrize(("kept", "status"), [(timedelta(days=3), "polling"), (timedelta(), "poll_timeout")])
def test_g7_the_time_behind_a_gate_does_not_count_for_the_timeout_of_a_poll(
    stage: Stage, kept: timedelta, status: str
) -> None:
    batch = started(stage, WITH_POLL)
    (job,) = stage.take_jobs()
    stage.answer(job, {"complete": False})
    stage.handle()
    if kept:
        paused(stage)
        stage.clock.advance(kept)
        resumed(stage)
    else:
        stage.clock.advance(timedelta(days=3))
    stage.sweep()
    stage.handle()
    (again,) = stage.take_jobs()
    stage.answer(again, {"complete": False})
    stage.handle()
    assert stage.states(batch)["create"] == status


def test_g7_the_time_behind_a_gate_does_not_count_for_the_throttle_limit(stage: Stage) -> None:
    batch = started(stage, ONE_STEP)
    busy = Failing("busy", "TooManyRequests", is_throttled=True)
    stage.answer(stage.take_jobs()[0], busy)
    stage.handle()
    paused(stage)
    stage.later(hours=30)
    resumed(stage)
    stage.sweep()
    stage.handle()
    stage.answer(stage.take_jobs()[0], busy)
    stage.handle()
    assert stage.member(batch).status is MemberStatus.ACTIVE
    assert stage.steps(batch)[0].retry_after is not None


def test_g8_each_gate_is_opened_by_itself_and_the_answer_names_those_that_are_still_shut(stage: Stage) -> None:
    batch = started(stage)
    everything, mine = paused(stage), paused(stage, Subject(batch_id=batch.id))
    done = open_gate(stage.store, stage.bus, everything.gate.id, by="anna", reason="it is over")
    assert done.still == []
    stage.handle()
    assert stage.take_jobs() == []
    again = paused(stage)
    done = resume(stage.store, stage.bus, Subject(batch_id=batch.id), by="anna", reason=None)
    assert [gate.id for gate in done.opened] == [mine.gate.id]
    assert [gate.id for gate in done.still] == [again.gate.id]


def test_g8_a_gate_whose_time_is_over_opens_by_itself_and_wakes_what_waited(stage: Stage) -> None:
    started(stage)
    gate = paused(stage, until=stage.now + timedelta(hours=2)).gate
    look_after_gates(stage.store, stage.bus, lambda _: None)
    stage.handle()
    assert stage.take_jobs() == []
    stage.later(hours=2)
    look_after_gates(stage.store, stage.bus, lambda _: None)
    stage.handle()
    assert len(stage.take_jobs()) == 1
    with stage.store.reading() as tx:
        assert gates_by_id(tx, [gate.id])[0].opened_by == "calendar"


def test_g8_a_gate_of_a_batch_that_has_ended_opens_by_itself(stage: Stage) -> None:
    batch = started(stage, ONE_STEP)
    jobs = stage.take_jobs()
    gate = paused(stage, Subject(batch_id=batch.id)).gate
    stage.answer(jobs[0])
    stage.handle()
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    look_after_gates(stage.store, stage.bus, lambda _: None)
    with stage.store.reading() as tx:
        (after,) = gates_by_id(tx, [gate.id])
    assert (after.opened_by, after.opened_reason) == ("system", "what it kept has ended")


def test_g8_many_are_woken_slice_by_slice(stage: Stage) -> None:
    stage = Stage(stage.store, stage.clock, Limits(slice_size=10))
    batch = started(stage, ONE_STEP, members=35)
    paused(stage)
    resume(stage.store, stage.bus, Subject(), by="anna", reason="it is over")
    assert stage.events.turn()
    assert len(stage.take_jobs()) == 10
    stage.handle()
    assert len(stage.take_jobs()) == 25
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_g8_who_has_yet_to_catch_up_is_given_steps_slice_by_slice_too(stage: Stage) -> None:
    """The defect: all joiners of a batch were given their steps in the pile of the first slice."""
    stage = Stage(stage.store, stage.clock, Limits(slice_size=10))
    batch = started(stage, ONE_STEP, members=1)
    paused(stage)
    for number in range(35):
        stage.add_row(batch, f"late{number}")
    resume(stage.store, stage.bus, Subject(), by="anna", reason="it is over")
    assert stage.events.turn()
    assert len(stage.steps(batch)) == 10
    stage.handle()
    assert len(stage.steps(batch)) == 36


def test_g8_a_request_for_init_that_has_not_come_yet_is_not_in_the_way(stage: Stage) -> None:
    init = "init:\n  - {name: announce, worker_id: worker-01, function: Announce}\n"
    batch = stage.batch(stage.publish(init + ONE_STEP), 1)
    paused(stage)
    stage.request_init(batch, 1, times=1)
    resume(stage.store, stage.bus, Subject(), by="anna", reason=None)
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Announce"]


def test_g3_a_clock_that_is_put_back_opens_no_gate(stage: Stage) -> None:
    """The defect: a gate that began later than it is now counted as one that was written ahead."""
    batch = started(stage, TWO_STEPS, members=1)
    (job,) = stage.take_jobs()
    paused(stage)
    stage.clock.jump(stage.now - timedelta(minutes=5))
    stage.answer(job, {"Id": 1})
    stage.handle()
    assert stage.take_jobs() == []
    assert stage.states(batch) == {"create": "succeeded", "license": "pending"}


def test_g8_who_resumes_after_the_clock_was_put_back_wakes_what_waited(stage: Stage) -> None:
    started(stage, TWO_STEPS, members=1)
    (job,) = stage.take_jobs()
    paused(stage)
    stage.answer(job, {"Id": 1})
    stage.handle()
    stage.clock.jump(stage.now - timedelta(minutes=5))
    resumed(stage)
    assert [job.function_name for job in stage.take_jobs()] == ["License"]


def test_k1_a_freeze_that_has_begun_goes_on_when_the_clock_is_put_back(stage: Stage) -> None:
    started(stage, TWO_STEPS, members=1)
    (job,) = stage.take_jobs()
    begins = (stage.now + timedelta(minutes=1)).isoformat()
    gate = shut_freeze(stage.store, Subject(), by="anna", reason="quarter end", begins=begins)
    stage.clock.advance(timedelta(minutes=2))
    stage.orchestrator.sweep()
    stage.clock.jump(stage.now - timedelta(minutes=5))
    stage.answer(job, {"Id": 1})
    stage.handle()
    assert stage.take_jobs() == []
    open_gate(stage.store, stage.bus, gate.id, by="anna", reason="over")
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["License"]
