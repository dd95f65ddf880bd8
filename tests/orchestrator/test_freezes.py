"""Rule K1: nothing leaves during a freeze; it begins by the sweep, ends by the calendar, and can be taken back."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject, open_gate
from matoolkit.errors import InvalidFreeze
from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.scheduler.gates import look_after_gates
from matoolkit.store.gatekeeping import GateRow, gates_by_id, gates_to_sweep
from tests.stage import Stage

from .runbooks import TWO_STEPS, WITH_POLL

SUBJECTS = {
    "all": Subject(),
    "batch": Subject(batch_id=1),
    "runbook": Subject(runbook_name="wave"),
    "worker": Subject(worker_id="worker-01"),
}


def started(stage: Stage, members: int = 1, runbook: str = TWO_STEPS, name: str = "wave") -> Any:
    batch = stage.batch(stage.publish(runbook, name), members)
    stage.due(batch, "prepare")
    stage.handle()
    return batch


def frozen(stage: Stage, *, after: float, hours: float | None = 5, subject: Subject = SUBJECTS["all"]) -> GateRow:
    """Write a freeze that begins so many hours from now."""
    begins = stage.now + timedelta(hours=after)
    until = None if hours is None else (begins + timedelta(hours=hours)).isoformat()
    times = {"begins": begins.isoformat(), "until": until}
    return shut_freeze(stage.store, subject, by="anna", reason="quarter end", **times)


def calendar(stage: Stage) -> int:
    opened = look_after_gates(stage.store, stage.bus, lambda _: None)
    stage.handle()
    return opened


def row(stage: Stage, gate: GateRow) -> GateRow:
    with stage.store.reading() as tx:
        return gates_by_id(tx, [gate.id])[0]


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=list(SUBJECTS))
def test_k1_nothing_leaves_from_its_beginning_to_its_end(stage: Stage, subject: Subject) -> None:
    batch = started(stage)
    frozen(stage, after=1, subject=subject)
    (job,) = stage.take_jobs()
    stage.clock.advance(timedelta(hours=1))
    stage.answer(job, {"Id": 7})
    stage.handle()
    stage.sweep()
    assert (stage.take_jobs(), stage.states(batch)["license"]) == ([], "pending")
    stage.clock.advance(timedelta(hours=5))
    assert calendar(stage) == 1
    assert [job.function_name for job in stage.take_jobs()] == ["License"]


def test_k1_before_it_begins_all_goes_on(stage: Stage) -> None:
    batch = started(stage)
    frozen(stage, after=1)
    stage.clock.advance(timedelta(minutes=59))
    stage.answers = {"Create": {"Id": 7}}
    stage.run()
    assert set(stage.states(batch).values()) == {"succeeded"}


def test_k1_a_phase_that_is_due_meanwhile_begins_when_it_is_over(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 1)
    gate = frozen(stage, after=1)
    stage.clock.advance(timedelta(hours=2))
    assert dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now) == 0
    assert set(stage.phases(batch).values()) == {"pending"}
    stage.clock.advance(timedelta(hours=4))
    calendar(stage)
    assert dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now) == 1
    assert row(stage, gate).opened_by == "calendar"


@pytest.mark.on("sqlite")
def test_k1_a_freeze_that_begins_while_5000_jobs_are_out_takes_back_what_nobody_received(stage: Stage) -> None:
    batch = started(stage, 5_000)
    gate = frozen(stage, after=1)
    taken = stage.take_jobs(most=1_200)
    stage.clock.advance(timedelta(hours=1))
    stage.sweep()
    assert (stage.take_jobs(), row(stage, gate).swept_at) == ([], stage.now)
    for job in taken:
        stage.answer(job, {"Id": 7})
    stage.handle()
    states = [(step.step_name, str(step.status)) for step in stage.steps(batch)]
    assert states.count(("create", "succeeded")) == 1_200
    assert states.count(("create", "pending")) == 3_800
    assert states.count(("license", "pending")) == 5_000
    assert stage.take_jobs() == []
    stage.clock.advance(timedelta(hours=5))
    calendar(stage)
    assert sum(len(stage.take_jobs()) for _ in range(6)) == 5_000


def test_k1_statements_of_a_beginning_do_not_grow_with_jobs(stage: Stage, statements: Callable[[], list[str]]) -> None:
    counts = []
    for members in (10, 400):
        batch = started(stage, members, name=f"wave-{members}")
        frozen(stage, after=1, hours=1, subject=Subject(batch_id=batch.id))
        stage.clock.advance(timedelta(hours=1))
        statements()
        stage.orchestrator.sweep()
        counts.append(len(statements()))
        assert stage.take_jobs() == []
    assert counts[0] == counts[1]


def test_k1_a_freeze_that_begins_now_takes_back_at_once_if_its_caller_does_and_else_by_the_sweep(stage: Stage) -> None:
    started(stage, 3)
    gate = shut_freeze(stage.store, Subject(), by="anna", reason="quarter end")
    assert gate.shut_from == stage.now
    stage.sweep()
    assert stage.take_jobs() == []


def test_k1_one_that_is_removed_before_it_begins_never_stops_anything(
    stage: Stage, statements: Callable[[], list[str]]
) -> None:
    started(stage)
    gate = frozen(stage, after=1)
    done = open_gate(stage.store, stage.bus, gate.id, by="anna", reason="not needed")
    assert [one.id for one in done.opened] == [gate.id]
    assert stage.handle() == 0, "nobody waited, so nobody is woken"
    stage.clock.advance(timedelta(hours=2))
    with stage.store.reading() as tx:
        assert gates_to_sweep(tx, stage.now) == []
    stage.sweep()
    assert (calendar(stage), len(stage.take_jobs())) == (0, 1)


def test_k1_one_that_is_removed_after_it_began_wakes_what_waited(stage: Stage) -> None:
    started(stage, 3)
    gate = frozen(stage, after=1, hours=None)
    stage.clock.advance(timedelta(hours=1))
    stage.sweep()
    assert stage.take_jobs() == []
    stage.clock.advance(timedelta(days=400))
    assert calendar(stage) == 0
    open_gate(stage.store, stage.bus, gate.id, by="anna", reason="it is over")
    stage.handle()
    assert len(stage.take_jobs()) == 3


def test_k1_two_freezes_overlap_and_each_ends_by_itself(stage: Stage) -> None:
    started(stage)
    frozen(stage, after=1, hours=4)
    frozen(stage, after=2, hours=10, subject=SUBJECTS["runbook"])
    stage.clock.advance(timedelta(hours=6))
    stage.sweep()
    calendar(stage)
    assert stage.take_jobs() == []
    stage.clock.advance(timedelta(hours=6))
    calendar(stage)
    assert len(stage.take_jobs()) == 1


def test_k1_a_freeze_that_nobody_saw_begin_or_end_stops_nothing_afterwards(stage: Stage) -> None:
    """All processes were away for the whole of it."""
    started(stage)
    frozen(stage, after=1)
    stage.clock.advance(timedelta(hours=7))
    stage.sweep()
    calendar(stage)
    assert len(stage.take_jobs()) == 1


def test_g7_the_time_of_a_freeze_does_not_count_for_the_timeout_of_a_poll(stage: Stage) -> None:
    batch = started(stage, runbook=WITH_POLL)
    (job,) = stage.take_jobs()
    stage.answer(job, {"complete": False})
    stage.handle()
    frozen(stage, after=0, hours=72)
    stage.clock.advance(timedelta(hours=72))
    calendar(stage)
    stage.sweep()
    stage.handle()
    (again,) = stage.take_jobs()
    stage.answer(again, {"complete": False})
    stage.handle()
    assert stage.states(batch)["create"] == "polling"


def test_k1_nobody_is_frozen_alone(stage: Stage) -> None:
    started(stage)
    with pytest.raises(InvalidFreeze) as refused:
        shut_freeze(stage.store, Subject(runbook_name="wave", member_key="u0"), by="anna", reason="why")
    assert refused.value.hint == "pause the person: `matoolkit pause member`"
