"""Rule T9, on real tables: polls and retries whose time has come."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.domain.moves.step import PollLater, RetryLater
from matoolkit.ids import Kind
from matoolkit.store.moves import move_steps
from tests.scheduler.calendar import Calendar

SOON = timedelta(seconds=40)


def waiting(calendar: Calendar, count: int, *, polls: bool = True) -> list[int]:
    """Let members wait for a poll, or a retry, that is due soon."""
    people = [f"m{number}" for number in range(count)]
    calendar.in_source(*people)
    calendar.tick()
    steps = [calendar.work(key) for key in people]
    due, at = calendar.clock.now() + SOON, calendar.clock.now()
    with calendar.store.transaction() as tx:
        if polls:
            move_steps(tx, Kind.STEP, [PollLater(one.id, one.job_id or "", None, due) for one in steps], at)
        else:
            retries = [RetryLater(one.id, one.job_id or "", None, "no", due, 1) for one in steps]
            move_steps(tx, Kind.STEP, retries, at)
    calendar.messages()
    return [one.id for one in steps]


def checks(kind: str, steps: Sequence[int]) -> list[str]:
    return [f"{kind}-check-step-{number}-1" for number in steps]


@pytest.mark.parametrize("kind", ["poll", "retry"])
def test_t9_what_is_due_is_asked_for_and_not_before(calendar: Calendar, kind: str) -> None:
    steps = waiting(calendar, 2, polls=kind == "poll")
    calendar.clock.advance(SOON - timedelta(seconds=1))
    assert calendar.scheduler.sweep() == 0
    assert calendar.messages() == []
    calendar.clock.advance(timedelta(seconds=1))
    assert calendar.scheduler.sweep() == 2
    assert calendar.messages() == checks(kind, steps)


def test_t9_nothing_is_asked_for_twice_while_it_is_not_handled(calendar: Calendar) -> None:
    steps = waiting(calendar, 2)
    for _ in range(4):
        calendar.clock.advance(timedelta(minutes=15))
        calendar.scheduler.sweep()
    assert calendar.messages() == checks("poll", steps)


def test_t9_a_check_that_was_lost_is_asked_for_again(calendar: Calendar) -> None:
    steps = waiting(calendar, 1)
    calendar.clock.advance(SOON)
    calendar.scheduler.sweep()
    received = calendar.bus.receive(EVENTS_OF_ORCHESTRATOR, 10)
    calendar.bus.complete_now(received)
    calendar.clock.advance(timedelta(minutes=11))
    calendar.scheduler.sweep()
    assert calendar.messages() == checks("poll", steps)


def test_t9_more_than_one_slice_is_asked_for_once_each(calendar: Calendar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matoolkit.scheduler.sweeps._AT_ONCE", 3)
    steps = waiting(calendar, 8)
    calendar.change("UPDATE step_executions SET attempt = 1")
    calendar.clock.advance(SOON)
    assert calendar.scheduler.sweep() == 8
    assert calendar.messages() == checks("poll", steps)


def test_t9_polls_of_a_held_batch_go_on(calendar: Calendar) -> None:
    steps = waiting(calendar, 3)
    calendar.people.rows = []
    calendar.tick(SOON)
    assert calendar.batch().held_at is not None
    calendar.messages()
    calendar.scheduler.sweep()
    assert calendar.messages() == checks("poll", steps)
