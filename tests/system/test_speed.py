"""A calendar that runs faster than the clock (rule U5): what is planned hurries, what is waited for does not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from matoolkit.bus.topology import LOCK_DURATION, jobs_of_worker
from matoolkit.clock import FastClock, Pace, VirtualClock
from matoolkit.domain.states import BatchStatus
from matoolkit.store import Store
from matoolkit.store.leases import held_leases
from tests.scheduler.calendar import Calendar, runbook
from tests.stage import WORKER, Failing, Silent, Stage

MINUTE = timedelta(minutes=1)
DAY_IN_A_MINUTE = 1440


class Hurried:
    """A scheduler, an orchestrator and a scripted worker, for whom a day takes a minute."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        store.pace = Pace(DAY_IN_A_MINUTE, clock.now())
        self.fast = FastClock(clock, store.pace)
        self.clock = clock
        self.calendar = Calendar(store, clock)
        self.calendar.scheduler = replace(self.calendar.scheduler, clock=self.fast)
        self.stage = Stage(store, clock)

    def pass_real(self, duration: timedelta) -> None:
        self.calendar.tick(duration)
        self.stage.run()
        self.calendar.scheduler.sweep()
        self.stage.orchestrator.sweep()
        self.stage.run()


@pytest.fixture
def hurried(store: Store, clock: VirtualClock) -> Hurried:
    return Hurried(store, clock)


def test_u5_ten_days_of_phases_take_ten_minutes(hurried: Hurried) -> None:
    calendar = hurried.calendar
    calendar.publish()
    calendar.in_source("ada", "grace")
    hurried.pass_real(timedelta())
    assert set(calendar.phases().values()) == {"pending"}
    hurried.pass_real(3 * MINUTE)
    assert calendar.phases() == {"prepare": "completed", "warn": "pending", "cutover": "pending"}
    hurried.pass_real(7 * MINUTE)
    assert set(calendar.phases().values()) == {"completed"}
    batch = hurried.stage.reload(calendar.batch())
    assert batch.status is BatchStatus.COMPLETED
    assert batch.completed_at == hurried.fast.now(), "what people see is of the calendar"


@pytest.mark.parametrize(("seconds", "is_held"), [(50, True), (70, False)])
def test_u5_the_guard_counts_a_day_of_the_calendar(hurried: Hurried, seconds: int, is_held: bool) -> None:
    calendar = hurried.calendar
    calendar.publish(runbook(safeguards={"max_removals": 1}))
    calendar.in_source("a", "b", "c", "d")
    hurried.pass_real(timedelta())
    calendar.gone("a")
    hurried.pass_real(timedelta())
    calendar.gone("b")
    hurried.pass_real(timedelta(seconds=seconds))
    assert calendar.batch().is_held is is_held
    assert calendar.members()["b"] == ("active" if is_held else "removed")


def test_u5_a_batch_is_late_by_ticks_of_the_calendar(hurried: Hurried) -> None:
    calendar = hurried.calendar
    calendar.publish()
    now = hurried.fast.now()
    calendar.in_source("soon", at=now - timedelta(minutes=4))
    calendar.in_source("late", at=now - timedelta(minutes=6))
    hurried.pass_real(timedelta())
    held = {batch.batch_start_time: batch.is_held for batch in calendar.batches()}
    assert held == {now - timedelta(minutes=4): False, now - timedelta(minutes=6): True}


def test_u5_the_lease_lasts_as_long_as_ever(hurried: Hurried, store: Store) -> None:
    hurried.calendar.publish()
    hurried.calendar.tick()
    hurried.clock.advance(timedelta(seconds=89))
    with store.reading() as tx:
        assert [lease.name for lease in held_leases(tx)] == ["scheduler"]
    hurried.clock.advance(timedelta(seconds=2))
    with store.reading() as tx:
        assert held_leases(tx) == []


def test_u5_a_message_stays_locked_as_long_as_ever(hurried: Hurried) -> None:
    stage = hurried.stage
    stage.due(stage.batch(stage.publish(RETRIED), 1), "only")
    stage.handle()
    jobs = jobs_of_worker(WORKER)
    assert stage.bus.receive(jobs, 10)
    hurried.clock.advance(LOCK_DURATION - timedelta(seconds=1))
    assert not stage.bus.receive(jobs, 10)
    hurried.clock.advance(timedelta(seconds=2))
    assert stage.bus.receive(jobs, 10)


RETRIED = """\
phases:
  - name: only
    offset: T-0
    steps:
      - {name: one, worker_id: worker-01, function: One, timeout: 10m, retry: {max_retries: 1, interval: 4h}}
"""


def test_u5_a_retry_comes_after_its_interval_of_the_calendar(hurried: Hurried) -> None:
    stage = hurried.stage
    stage.answers["One"] = Failing("not now")
    batch = stage.batch(stage.publish(RETRIED), 1)
    stage.due(batch, "only")
    stage.run()
    hurried.clock.advance(timedelta(seconds=9))
    stage.run()
    assert [step.attempt for step in stage.steps(batch)] == [1]
    hurried.clock.advance(timedelta(seconds=1))
    stage.run()
    assert [step.attempt for step in stage.steps(batch)] == [2], "four hours of the calendar are ten seconds"


def test_u5_a_worker_has_all_its_time_before_a_job_is_lost(hurried: Hurried) -> None:
    stage = hurried.stage
    stage.answers["One"] = Silent()
    batch = stage.batch(stage.publish(RETRIED), 1)
    stage.due(batch, "only")
    stage.run()
    hurried.clock.advance(timedelta(minutes=9, seconds=59))
    stage.orchestrator.sweep()
    assert [step.retry_after for step in stage.steps(batch)] == [None]
    hurried.clock.advance(timedelta(seconds=1))
    stage.orchestrator.sweep()
    assert [step.error_type for step in stage.steps(batch)] == ["JobLost"]
