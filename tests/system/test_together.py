"""Scheduler, orchestrator and a scripted worker on one database: a wave from its discovery to its end."""

from datetime import timedelta
from typing import Any

import pytest

from matoolkit.admin.approving import approve
from matoolkit.clock import VirtualClock
from matoolkit.domain.states import BatchStatus, MemberStatus, OverdueBehavior
from matoolkit.store import Store
from tests.scheduler.calendar import Calendar, runbook, step
from tests.stage import Failing, Silent, Stage

DAY = timedelta(days=1)


class Together:
    """A calendar and a stage that share a database; a worker that answers at once."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.calendar = Calendar(store, clock)
        self.stage = Stage(store, clock)
        self.clock = clock

    def pass_time(self, duration: timedelta) -> None:
        self.calendar.tick(duration)
        self.stage.run()
        self.calendar.scheduler.sweep()
        self.stage.orchestrator.sweep()
        self.stage.run()


@pytest.fixture
def together(store: Store, clock: VirtualClock) -> Together:
    return Together(store, clock)


def with_extras(**changes: Any) -> str:
    leaving = [{"name": "forget", "worker_id": "worker-01", "function": "Forget"}]
    init = [{"name": "open", "worker_id": "worker-01", "function": "Open"}]
    return runbook(on_member_removed=leaving, init=init, **changes)


def test_a_wave_goes_from_its_discovery_to_its_end(together: Together) -> None:
    calendar, stage = together.calendar, together.stage
    calendar.publish(with_extras())
    calendar.in_source(*(f"u{number}" for number in range(30)))
    together.pass_time(timedelta())
    batch = calendar.batch()
    assert stage.reload(batch).status is BatchStatus.ACTIVE
    together.pass_time(3 * DAY)
    calendar.in_source("late")
    calendar.gone("u3")
    together.pass_time(DAY)
    assert "Forget" in stage.functions()
    assert stage.states(batch, "late") == {"prepare-it": "succeeded"}
    calendar.in_source("u3")
    together.pass_time(DAY)
    assert stage.member(batch, "u3").epoch == 2
    together.pass_time(5 * DAY)
    assert set(stage.phases(batch).values()) == {"completed"}
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    assert {member.status for member in stage.members(batch)} == {MemberStatus.ACTIVE}


def test_a_broken_view_holds_the_wave_and_a_mended_one_lets_it_go_on(together: Together) -> None:
    calendar, stage = together.calendar, together.stage
    calendar.publish(with_extras())
    keys = [f"u{number}" for number in range(30)]
    calendar.in_source(*keys)
    together.pass_time(timedelta())
    batch = calendar.batch()
    calendar.gone(*keys[:20])
    together.pass_time(9 * DAY)
    held = stage.reload(batch)
    assert held.is_held
    assert "Forget" not in stage.functions()
    assert calendar.phases()["prepare"] == "pending", "no new phase begins while it is held"
    calendar.in_source(*keys[:20])
    together.pass_time(timedelta(minutes=5))
    together.pass_time(2 * DAY)
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_what_a_person_approves_leaves_and_is_undone(together: Together) -> None:
    calendar, stage = together.calendar, together.stage
    calendar.publish(with_extras())
    keys = [f"u{number}" for number in range(30)]
    calendar.in_source(*keys)
    together.pass_time(4 * DAY)
    batch = calendar.batch()
    calendar.gone(*keys[:10])
    together.pass_time(timedelta(minutes=5))
    held = stage.reload(batch)
    approve(stage.store, stage.bus, batch.id, str(held.hold_key), by="anna")
    together.pass_time(timedelta(minutes=5))
    assert stage.functions().count("Forget") == 10
    together.pass_time(6 * DAY)
    assert stage.reload(batch).status is BatchStatus.COMPLETED


@pytest.mark.parametrize("overdue", list(OverdueBehavior))
@pytest.mark.parametrize("rerun_init", [True, False])
def test_a_new_version_in_the_middle(together: Together, overdue: OverdueBehavior, rerun_init: bool) -> None:
    calendar, stage = together.calendar, together.stage
    calendar.publish(with_extras())
    calendar.in_source("a", "b")
    stage.answers["Set-EntraUserEnabled"] = lambda job: Silent() if job.parameters["UserId"] == "b" else None
    together.pass_time(3 * DAY)
    together.pass_time(timedelta(minutes=5))  # `prepare` has begun: one that has not would stay due (rule V4)
    batch = calendar.batch()
    phases = [{"name": name, "offset": offset, "steps": [step(f"new-{name}")]} for name, offset in
              (("prepare", "T-7d"), ("warn", "T-1h"), ("cutover", "T-0"))]  # fmt: skip
    calendar.publish(with_extras(phases=phases), overdue=overdue, rerun_init=rerun_init)
    together.pass_time(timedelta(minutes=5))
    together.pass_time(DAY)
    stage.answers["Set-EntraUserEnabled"] = None
    together.pass_time(timedelta(hours=25))
    together.pass_time(6 * DAY)
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    assert stage.functions().count("Open") == (2 if rerun_init else 1)
    repeated = [step for step in stage.steps(batch) if step.step_name == "new-prepare"]
    assert len(repeated) == (2 if overdue is OverdueBehavior.RERUN else 0)


def test_a_member_that_fails_is_not_taken_again_and_the_wave_goes_on(together: Together) -> None:
    calendar, stage = together.calendar, together.stage
    calendar.publish(with_extras())
    calendar.in_source("a", "b")
    stage.answers["Set-EntraUserEnabled"] = lambda job: Failing() if job.parameters["UserId"] == "b" else None
    for _ in range(12):
        together.pass_time(DAY)
    batch = calendar.batch()
    assert calendar.members() == {"a": "active", "b": "failed"}
    assert stage.reload(batch).status is BatchStatus.COMPLETED
