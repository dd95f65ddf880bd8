"""Where the gates of one phase meet: sign-offs, places, pilots and windows together."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject, pause, resume
from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from matoolkit.store.batches import BatchRow, Reschedule, lock_batches, reschedule_batches
from tests.orchestrator.runbooks import WITH_INIT
from tests.signing import Signers
from tests.stage import Stage

BOTH = """\
pilot: {count: 1}
phases:
  - name: cutover
    offset: T-5d
    approval: {APPROVAL}
    rollout: {ROLLOUT}
    steps:
      - {name: move, worker_id: worker-01, function: Move, params: {Email: '{{Email}}'}}
"""


@pytest.fixture
def signers(stage: Stage) -> Signers:
    return Signers(stage)


def begun(stage: Stage, signers: Signers, rollout: str, approval: str = "count: 1", members: int = 3) -> BatchRow:
    text = BOTH.replace("APPROVAL", approval).replace("ROLLOUT", rollout)
    batch = stage.batch(stage.publish(text), members)
    signers.approve(batch, "ann")
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    stage.handle()
    return batch


def sent(stage: Stage) -> list[str]:
    jobs = stage.take_jobs()
    for job in jobs:
        stage.answer(job)
    return [str(job.parameters["Email"]) for job in jobs]


def test_c5_places_are_taken_in_a_phase_that_was_signed_off(stage: Stage, signers: Signers) -> None:
    begun(stage, signers, "at_once: 2")
    assert sent(stage) == ["u0", "u1"]
    stage.handle()
    assert sent(stage) == ["u2"]


def test_c5_who_joined_after_the_sign_off_waits_and_takes_no_place(stage: Stage, signers: Signers) -> None:
    batch = begun(stage, signers, "at_once: 2")
    stage.join(batch, "late")
    stage.handle()
    assert sent(stage) == ["u0", "u1"]
    stage.handle()
    assert sent(stage) == ["u2"]
    stage.handle()
    assert sent(stage) == []
    signers.approve(batch, "bob")
    stage.handle()
    assert sent(stage) == ["late"]


def test_c2_pilots_go_first_in_a_phase_that_was_signed_off(stage: Stage, signers: Signers) -> None:
    begun(stage, signers, "{pilot_first: true, at_once: 2}".strip("{}"))
    assert sent(stage) == ["u0"]
    stage.handle()
    assert sent(stage) == ["u1", "u2"]


def test_s7_who_joins_after_the_time_for_sign_offs_can_be_approved_still(stage: Stage, signers: Signers) -> None:
    batch = begun(stage, signers, "at_once: 9", "until: T-119h")
    assert len(stage.take_jobs()) == 3
    stage.later(hours=3)
    stage.join(batch, "late")
    stage.handle()
    assert sent(stage) == []
    signers.approve(batch, "bob")
    stage.handle()
    assert sent(stage) == ["late"]


EVENING = """\
pilot: {count: 1}
phases:
  - name: cutover
    offset: T-5d
    window: {from: "20:00", to: "23:00", binds: BINDS}
    rollout: {ROLLOUT}
    steps:
      - {name: move, worker_id: worker-01, function: Move, params: {Email: '{{Email}}'}}
      - {name: tell, worker_id: worker-01, function: Tell, params: {Email: '{{Email}}'}}
"""


@pytest.fixture
def sweep(stage: Stage) -> Callable[[], None]:
    """Let a scheduler sweep, and the orchestrator do what follows."""
    lease = SchedulerLease(stage.store, "one", timedelta(days=99), threading.Event())

    def no_source(_: Any) -> Any:
        raise AssertionError("a sweep reads no source")

    scheduler = Scheduler(stage.store, stage.bus, no_source, stage.clock, lease, timedelta(minutes=5))

    def swept() -> None:
        scheduler.sweep()
        stage.orchestrator.sweep()
        stage.handle()

    return swept


def at(stage: Stage, hour: int, minute: int = 0) -> None:
    """Let it be that time, today or tomorrow."""
    wanted = stage.now.replace(hour=hour, minute=minute)
    stage.clock.advance(wanted - stage.now if wanted > stage.now else wanted + timedelta(days=1) - stage.now)


def in_the_evening(stage: Stage, rollout: str, binds: str = "start", members: int = 3) -> BatchRow:
    batch = stage.batch(stage.publish(EVENING.replace("ROLLOUT", rollout).replace("BINDS", binds)), members)
    at(stage, 22)
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    stage.handle()
    return batch


def both_steps(stage: Stage) -> list[str]:
    """Let those who have a job do all that follows from it, and say who they were."""
    done = set()
    while people := sent(stage):
        done.update(people)
        stage.handle()
    return sorted(done)


@pytest.mark.parametrize("soak", ["", ", soak: 2h", ", soak: 12h", ", soak: 23h"])
def test_c2_pilots_who_end_outside_the_window_let_the_others_begin_when_both_are_open(
    stage: Stage, sweep: Callable[[], None], soak: str
) -> None:
    in_the_evening(stage, f"pilot_first: true{soak}")
    (job,) = stage.take_jobs()
    at(stage, 23, 30)
    stage.answer(job)
    stage.handle()
    assert sent(stage) == ["u0"]
    stage.handle()
    begun = 0
    for hour, minute in ((2, 0), (11, 30), (19, 59), (20, 0), (21, 0), (22, 0), (22, 30), (22, 59)):
        at(stage, hour, minute)
        sweep()
        people = sent(stage)
        assert not people or (hour >= 20 and people == ["u1", "u2"])
        begun += len(people)
        assert begun == 0 or (soak != ", soak: 23h" or hour >= 22)
    assert begun == 4, "two steps of two"


def test_c5_places_are_kept_while_the_window_is_shut_and_go_on_when_it_opens(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    in_the_evening(stage, "at_once: 1", "every_job")
    (job,) = stage.take_jobs()
    at(stage, 23, 30)
    sweep()
    stage.answer(job)
    stage.handle()
    assert sent(stage) == []
    at(stage, 20)
    sweep()
    assert both_steps(stage) == ["u0", "u1", "u2"]


@pytest.mark.parametrize("gate", ["pause", "freeze", "hold"])
def test_c2_pilots_who_end_while_all_is_stopped_let_the_others_begin_afterwards(
    stage: Stage, sweep: Callable[[], None], gate: str
) -> None:
    batch = in_the_evening(stage, "pilot_first: true, soak: 10m")
    stage.answer(stage.take_jobs()[0])
    stage.handle()
    (job,) = stage.take_jobs()
    if gate == "hold":
        stage.hold(batch)
    elif gate == "pause":
        pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="anna", reason="wait")
    else:
        until = (stage.now + timedelta(minutes=30)).isoformat()
        shut_freeze(stage.store, Subject(), by="anna", reason="wait", until=until)
    stage.answer(job)
    stage.handle()
    stage.clock.advance(timedelta(minutes=20))
    sweep()
    assert sent(stage) == []
    stage.clock.advance(timedelta(minutes=10))
    if gate == "hold":
        stage.release(batch)
    elif gate == "pause":
        resume(stage.store, stage.bus, Subject(batch_id=batch.id), by="anna", reason=None)
    sweep()
    assert both_steps(stage) == ["u1", "u2"]


def test_s5_an_init_whose_job_was_taken_back_begins_when_it_is_signed_off_for_another_t(
    stage: Stage, signers: Signers
) -> None:
    batch = stage.batch(stage.publish(WITH_INIT.replace("init:", "init_approval: {count: 1}\ninit:", 1)), 1)
    signers.approve(batch, "ann", "init")
    stage.handle()
    pause(stage.store, stage.bus, Subject(), by="anna", reason="wait")
    with stage.store.transaction() as tx:
        lock_batches(tx, [batch.id])
        assert batch.batch_start_time is not None
        reschedule_batches(tx, [Reschedule(batch.id, batch.batch_start_time + timedelta(hours=1))])
    resume(stage.store, stage.bus, Subject(), by="anna", reason=None)
    stage.handle()
    assert stage.take_jobs() == []
    signers.approve(batch, "ann", "init")
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Domain"]


def test_s3_who_joins_and_is_approved_before_anybody_was_told_of_it_begins(stage: Stage, signers: Signers) -> None:
    batch = begun(stage, signers, "at_once: 9")
    assert len(sent(stage)) == 3
    stage.join(batch, "late")
    signers.approve(batch, "bob")
    stage.handle()
    assert sent(stage) == ["late"]


def test_c5_who_is_paused_alone_takes_no_place_and_gets_one_afterwards(stage: Stage, signers: Signers) -> None:
    text = BOTH.replace("APPROVAL", "count: 1").replace("ROLLOUT", "at_once: 1")
    batch = stage.batch(stage.publish(text), 3)
    signers.approve(batch, "ann")
    person = Subject(runbook_name="wave", member_key="u0")
    pause(stage.store, stage.bus, person, by="anna", reason="legal hold", let_finish=True)
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    stage.handle()
    assert sent(stage) == ["u1"]
    stage.handle()
    assert sent(stage) == ["u2"]
    stage.handle()
    assert sent(stage) == []
    resume(stage.store, stage.bus, person, by="anna", reason=None)
    stage.handle()
    assert sent(stage) == ["u0"]


def test_c2_a_soak_that_ends_twice_because_the_clock_is_put_back_wakes_twice(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    batch = in_the_evening(stage, "pilot_first: true, soak: 10m")
    assert both_steps(stage) == ["u0"]
    stage.clock.advance(timedelta(minutes=10))
    sweep()
    assert len(stage.take_jobs()) == 2
    stage.join(batch, "late")
    stage.clock.jump(stage.now - timedelta(minutes=5))
    stage.handle()
    sweep()
    assert sent(stage) == []
    stage.clock.advance(timedelta(minutes=6))
    sweep()
    assert both_steps(stage) == ["late"]
