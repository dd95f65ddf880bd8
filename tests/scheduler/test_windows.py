"""Rules K2, G6, G7 and G8: outside of its window a phase does not begin, and what waits is woken when it opens.

The clock begins on Tuesday 2026-03-03 at 12:00 UTC.
"""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text, update

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.manual import create_manual_batch
from matoolkit.announcing.doors import load_doors
from matoolkit.clock import VirtualClock
from matoolkit.domain.doors import Door, Work
from matoolkit.domain.gates import Gates
from matoolkit.domain.states import MemberStatus, PhaseStatus, StepStatus
from matoolkit.errors import GateShut
from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from matoolkit.scheduler.windows import Windows
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow, lock_batches
from matoolkit.store.schema import phase_executions
from matoolkit.store.windows import running_phases
from tests.scheduler.calendar import Calendar
from tests.scheduler.calendar import runbook as calendar_runbook
from tests.stage import Failing, Stage

EVENING = 'window: {from: "20:00", to: "06:00", BINDS}'
POLLS = "poll: {interval: 10m, timeout: 2h}"
RETRIES = "retry: {max_retries: 3, interval: 5m}"


def runbook(binds: str = "start", more: str = "", of_first: str = EVENING) -> str:
    window = of_first.replace("BINDS", f"binds: {binds}")
    return f"""
phases:
  - name: prepare
    offset: T-5d
    {window}
    steps:
      - {{name: create, worker_id: worker-01, function: Create, params: {{Email: '{{{{Email}}}}'}}}}
      - name: license
        worker_id: worker-01
        function: License
        {more}
  - name: cutover
    offset: T-4d
    steps:
      - {{name: move, worker_id: worker-01, function: Move}}
"""


def begin_due(stage: Stage) -> int:
    """Let phases begin as a tick does, and hand out their steps."""
    begun = dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    stage.handle()
    return begun


@pytest.fixture
def sweep(stage: Stage) -> Callable[[], None]:
    """Let a scheduler sweep, which remembers the windows that it has seen, and the orchestrator handle what follows."""
    lease = SchedulerLease(stage.store, "one", timedelta(days=99), threading.Event())

    def no_source(_: Any) -> Any:
        raise AssertionError("a sweep reads no source")

    scheduler = Scheduler(stage.store, stage.bus, no_source, stage.clock, lease, timedelta(minutes=5))

    def swept() -> None:
        scheduler.sweep()
        stage.handle()

    return swept


def at(stage: Stage, hour: int, minute: int = 0) -> None:
    """Let it be that time, today or tomorrow."""
    wanted = stage.now.replace(hour=hour, minute=minute)
    stage.clock.advance(wanted - stage.now if wanted > stage.now else wanted + timedelta(days=1) - stage.now)


@pytest.mark.parametrize("binds", ["start", "every_job"])
def test_k2_a_due_phase_outside_its_window_waits_until_it_opens(stage: Stage, binds: str) -> None:
    batch = stage.batch(stage.publish(runbook(binds)), 2)
    assert (begin_due(stage), stage.phases(batch)["prepare"]) == (0, PhaseStatus.PENDING)
    at(stage, 19, 59)
    assert begin_due(stage) == 0
    at(stage, 20)
    assert (begin_due(stage), len(stage.take_jobs())) == (1, 2)


def test_g9_a_later_phase_does_not_overtake_one_that_waits_for_its_window(stage: Stage) -> None:
    batch = stage.batch(stage.publish(runbook()), 1)
    stage.clock.advance(timedelta(days=1, hours=2))
    assert begin_due(stage) == 0
    at(stage, 21)
    assert begin_due(stage) == 2
    assert set(stage.phases(batch).values()) == {PhaseStatus.DISPATCHED}


def test_k2_who_has_begun_goes_on_outside_the_window_and_others_wait_for_the_next(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    batch = stage.batch(stage.publish(runbook()), 1)
    at(stage, 20)
    begin_due(stage)
    (job,) = stage.take_jobs()
    at(stage, 7)
    stage.join(batch, "late")
    stage.answer(job)
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["License"]
    assert stage.states(batch, "late")["create"] == "pending"
    at(stage, 19, 59)
    sweep()
    assert stage.take_jobs() == []
    at(stage, 20)
    sweep()
    assert [job.function_name for job in stage.take_jobs()] == ["Create"]


def test_k2_with_every_job_nothing_leaves_outside_the_window(stage: Stage, sweep: Callable[[], None]) -> None:
    batch = stage.batch(stage.publish(runbook("every_job")), 1)
    at(stage, 20)
    begin_due(stage)
    (job,) = stage.take_jobs()
    at(stage, 7)
    stage.answer(job)
    stage.handle()
    assert (stage.take_jobs(), stage.states(batch)["license"]) == ([], "pending")
    at(stage, 20)
    sweep()
    assert [job.function_name for job in stage.take_jobs()] == ["License"]


def test_g4_when_a_window_shuts_that_binds_every_job_what_nobody_received_is_taken_back(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    batch = stage.batch(stage.publish(runbook("every_job")), 40)
    at(stage, 5, 59)
    begin_due(stage)
    taken = stage.take_jobs(most=10)
    at(stage, 6)
    sweep()
    assert stage.take_jobs() == []
    for job in taken:
        stage.answer(job)
    stage.handle()
    states = [(step.step_name, str(step.status)) for step in stage.steps(batch)]
    assert (states.count(("create", "succeeded")), states.count(("create", "pending"))) == (10, 30)
    sweep()
    assert stage.take_jobs() == []
    at(stage, 20)
    sweep()
    assert sorted(job.function_name for job in stage.take_jobs()) == ["Create"] * 30 + ["License"] * 10


def test_g4_a_scheduler_that_takes_over_takes_back_what_left_while_another_one_worked(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    """The defect: it remembered that it had taken back the jobs of this phase, when the window shut the day before."""
    stage.batch(stage.publish(runbook("every_job")), 3)
    at(stage, 5, 30)
    begin_due(stage)
    at(stage, 6)
    sweep()
    at(stage, 20)
    Windows().look_after(stage.store, stage.bus, lambda _: None)
    stage.handle()
    at(stage, 6)
    sweep()
    assert stage.take_jobs() == []


def test_k3_a_window_that_opens_twice_because_the_clock_is_put_back_wakes_twice(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    stage.batch(stage.publish(runbook("every_job")), 1)
    at(stage, 5, 30)
    begin_due(stage)
    (job,) = stage.take_jobs()
    at(stage, 20)
    sweep()
    stage.clock.jump(stage.now - timedelta(minutes=5))
    stage.answer(job)
    stage.handle()
    sweep()
    assert stage.take_jobs() == []
    at(stage, 20, 1)
    sweep()
    assert [job.function_name for job in stage.take_jobs()] == ["License"]


def test_k2_a_window_that_binds_the_start_only_takes_nothing_back(stage: Stage, sweep: Callable[[], None]) -> None:
    stage.batch(stage.publish(runbook()), 3)
    at(stage, 5, 59)
    begin_due(stage)
    at(stage, 6)
    sweep()
    assert len(stage.take_jobs()) == 3


def test_g4_statements_of_a_closing_do_not_grow_with_jobs(
    stage: Stage, sweep: Callable[[], None], statements: Callable[[], list[str]]
) -> None:
    counts: list[tuple[int, int]] = []
    for members in (5, 200):
        stage.batch(stage.publish(runbook("every_job"), f"wave{members}"), members)
        at(stage, 5, 50)
        begin_due(stage)
        sweep()
        at(stage, 6)
        statements()
        sweep()
        closing = len(statements())
        sweep()
        counts.append((closing, len(statements())))
        stage.take_jobs()
        with stage.store.transaction() as tx:
            tx.execute(text("UPDATE phase_executions SET status = 'cancelled'"))
    assert counts[0] == counts[1]
    assert counts[0][1] < counts[0][0]


def test_g8_a_window_wakes_once_each_time_that_it_opens(stage: Stage, sweep: Callable[[], None]) -> None:
    batch = stage.batch(stage.publish(runbook("every_job")), 1)
    at(stage, 20)
    begin_due(stage)
    woken: list[tuple[int, str]] = []
    for hour in (21, 7, 20, 21, 7, 22, 23):
        at(stage, hour)
        sweep()
        with stage.store.reading() as tx:
            woken += [(one.batch_id, f"{one.woken_at or stage.now:%d-%H}") for one in running_phases(tx)]
    assert woken == [(batch.id, at) for at in ("03-21", "04-07", "04-20", "04-20", "04-20", "05-22", "05-22")]


@pytest.mark.parametrize(
    ("more", "outcome", "state"),
    [(POLLS, {"complete": False}, "polling"), (RETRIES, Failing(), "pending")],
    ids=["poll", "retry"],
)
def test_g6_no_poll_and_no_retry_is_asked_for_while_a_window_keeps_every_job(
    stage: Stage, sweep: Callable[[], None], more: str, outcome: Any, state: str
) -> None:
    stage.answers = {"License": outcome}
    batch = stage.batch(stage.publish(runbook("every_job", more)), 1)
    at(stage, 5, 30)
    begin_due(stage)
    stage.run()
    assert stage.states(batch)["license"] == state
    at(stage, 7)
    sweep()
    assert stage.bus.receive(stage.events_of_orchestrator, 10) == []
    assert (stage.take_jobs(), stage.states(batch)["license"]) == ([], state)
    at(stage, 20)
    sweep()
    assert [job.function_name for job in stage.take_jobs()] == ["License"]


def test_g6_a_check_that_comes_while_the_window_is_shut_is_ignored(stage: Stage) -> None:
    stage.answers = {"License": {"complete": False}}
    batch = stage.batch(stage.publish(runbook("every_job", POLLS)), 1)
    at(stage, 5, 30)
    begin_due(stage)
    stage.run()
    at(stage, 7)
    stage.check_polls(*(step.id for step in stage.steps(batch) if step.step_name == "license"))
    stage.handle()
    assert (stage.take_jobs(), stage.states(batch)["license"]) == ([], "polling")


@pytest.mark.parametrize(("binds", "after"), [("every_job", StepStatus.POLLING), ("start", StepStatus.POLL_TIMEOUT)])
def test_g7_the_time_outside_a_window_does_not_count_for_a_poll_that_it_keeps(
    stage: Stage, sweep: Callable[[], None], binds: str, after: StepStatus
) -> None:
    stage.answers = {"License": {"complete": False}}
    batch = stage.batch(stage.publish(runbook(binds, POLLS)), 1)
    at(stage, 5, 30)
    begin_due(stage)
    stage.run()
    at(stage, 20, 30)
    sweep()
    stage.run()
    # Half an hour before six and half an hour after eight in the evening: one of the two hours that it has.
    assert stage.states(batch)["license"] == after
    if after is StepStatus.POLLING:
        at(stage, 21, 40)
        sweep()
        stage.run()
        assert stage.states(batch)["license"] == StepStatus.POLL_TIMEOUT


def test_g7_a_pause_within_the_hours_outside_does_not_count_twice(stage: Stage) -> None:
    batch = stage.batch(stage.publish(runbook("every_job")), 1)
    with stage.store.transaction() as tx:
        locked = {one.id: one for one in lock_batches(tx, [batch.id])}
        (door, _) = load_doors(tx, stage.phase_rows(batch), locked, stage.now).values()
    work = Work("wave", batch.id, "worker-01", "u0", phase=door)
    assert [why.kind for why in Gates().at(Door.SEND, work)] == ["window"]
    (why,) = Gates().at(Door.START, work)
    assert why.until == stage.now.replace(hour=20)
    assert why.sentence == "outside its window (20:00-06:00 UTC): it opens at 2026-03-03 20:00 UTC"


def test_k2_a_version_that_cannot_be_read_any_more_does_not_keep_the_sweep_from_others(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    broken = stage.batch(stage.publish(runbook("every_job"), "broken"), 1)
    batch = stage.batch(stage.publish(runbook("every_job")), 1)
    at(stage, 5, 30)
    begin_due(stage)
    with stage.store.transaction() as tx:
        tx.execute(text(f"UPDATE runbooks SET yaml_content = 'name: broken' WHERE id = {broken.runbook_id}"))
    at(stage, 7)
    sweep()
    assert [job.batch_id for job in stage.take_jobs()] == [broken.id], "nothing of it is taken back"
    at(stage, 20)
    sweep()
    assert [job.batch_id for job in stage.take_jobs()] == [batch.id]


def test_k2_a_phase_outside_its_window_begins_with_the_sweep_after_it_opens(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(calendar_runbook().replace("offset: T-7d", "offset: T-7d\n  window: {from: '20:00', to: '22:00'}"))
    calendar.in_source("ada")
    assert calendar.tick().batches_created == 1
    assert calendar.tick(timedelta(days=3, hours=1)).phases_dispatched == 0
    for minutes, begins in ((6 * 60 + 59, False), (1, True)):
        clock.advance(timedelta(minutes=minutes))
        calendar.scheduler.sweep()
        assert (calendar.phases()["prepare"] == "dispatched") is begins


def test_g12_a_manual_batch_is_not_advanced_outside_the_window_and_says_when_it_opens(stage: Stage) -> None:
    version = stage.publish(runbook())
    batch = create_manual_batch(stage.store, version.name, [{"Email": "ada", "Name": "Ada"}], by="ann").batch
    with pytest.raises(GateShut) as refused:
        advance_batch(stage.store, stage.bus, batch.id, by="ann")
    assert "it opens at 2026-03-03 20:00 UTC" in refused.value.message
    at(stage, 20)
    assert advance_batch(stage.store, stage.bus, batch.id, by="ann").phase_name == "prepare"


def test_k2_a_member_that_failed_meanwhile_is_not_woken(stage: Stage, sweep: Callable[[], None]) -> None:
    stage.answers = {"Create": Failing()}
    batch = stage.batch(stage.publish(runbook("every_job")), 1)
    at(stage, 20)
    begin_due(stage)
    stage.run()
    assert stage.member(batch).status is MemberStatus.FAILED
    at(stage, 7)
    at(stage, 20)
    sweep()
    assert stage.take_jobs() == []


def test_k2_who_was_retried_in_a_phase_that_never_began_for_all_is_woken_too(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    """A retry under `ignore` opens such a phase: it has no time at which it began (found by seed 125)."""
    batch = stage.batch(stage.publish(runbook()), 1)
    at(stage, 20)
    begin_due(stage)
    with stage.store.transaction() as tx:
        tx.execute(update(phase_executions).values(dispatched_at=None))
    at(stage, 7)
    stage.take_jobs()
    stage.join(batch, "late")
    stage.handle()
    assert stage.take_jobs() == []
    for _ in range(2):
        at(stage, 20)
        sweep()
    assert [job.function_name for job in stage.take_jobs()] == ["Create"]


def test_k2_who_is_woken_and_who_wakes_go_by_the_same_clock(stage: Stage) -> None:
    """A scheduler whose clock is ahead would wake them while it is still shut, and never again that day."""
    stage.batch(stage.publish(runbook("every_job")), 1)
    at(stage, 20)
    begin_due(stage)
    (job,) = stage.take_jobs()
    at(stage, 7)
    stage.answer(job)
    stage.handle()
    ahead = VirtualClock(stage.now)
    lease = SchedulerLease(stage.store, "one", timedelta(days=99), threading.Event())
    scheduler = Scheduler(stage.store, stage.bus, lambda _: None, ahead, lease, timedelta(minutes=5))  # type: ignore[arg-type, return-value]
    at(stage, 19, 59)
    for _ in range(2):
        ahead.jump(stage.now + timedelta(minutes=2))
        scheduler.sweep()
        stage.handle()
        stage.clock.advance(timedelta(minutes=2))
    assert [job.function_name for job in stage.take_jobs()] == ["License"]


def test_k2_a_scheduler_whose_clock_is_ahead_begins_no_phase_before_its_window(
    stage: Stage, sweep: Callable[[], None]
) -> None:
    batch = stage.batch(stage.publish(runbook()), 1)
    at(stage, 19, 59)
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now + timedelta(minutes=2))
    stage.handle()
    assert stage.phases(batch)["prepare"] is PhaseStatus.PENDING
    at(stage, 20, 2)
    begin_due(stage)
    sweep()
    assert len(stage.take_jobs()) == 1


def test_k2_runbooks_without_windows_cost_a_sweep_one_query(
    stage: Stage, sweep: Callable[[], None], statements: Callable[[], list[str]]
) -> None:
    def counted(members: int) -> int:
        batch: BatchRow = stage.batch(stage.publish(runbook(of_first=""), f"wave{members}"), members)
        stage.due(batch, "prepare")
        stage.handle()
        sweep()
        statements()
        sweep()
        return len(statements())

    assert counted(1) == counted(40)
    with stage.store.reading() as tx:
        assert len(running_phases(tx)) == 2
