"""The last hour, minute by minute, from what is stored of it."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from matoolkit.admin.rates import KnownMinutes, rates_of_last_hour
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from tests.databases import NOON
from tests.orchestrator.runbooks import ONE_STEP, TWO_PHASES
from tests.stage import Failing, Silent, Stage


def test_steps_are_counted_in_the_minute_in_which_they_ended(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 4)
    answers = iter([Failing("no licence")])
    stage.answers["Create"] = lambda _: next(answers, None)
    stage.due(batch, "prepare")
    stage.run()
    stage.clock.advance(timedelta(minutes=10, seconds=30))
    stage.due(batch, "cutover")
    stage.run()
    stage.clock.advance(timedelta(minutes=20))
    seen = rates_of_last_hour(stage.store)
    assert (seen.steps, seen.failed, seen.jobs_out) == (10, 1, 0)
    assert len(seen.minutes) == 60
    assert [(minute.begin, minute.steps, minute.failed, minute.workers) for minute in seen.minutes if minute.steps] == [
        (NOON, 4, 1, 1),
        (NOON + timedelta(minutes=10), 6, 0, 1),
    ]
    assert seen.busiest.steps == 6
    stage.clock.advance(timedelta(minutes=35))
    assert rates_of_last_hour(stage.store).steps == 6, "what ended earlier than an hour ago no longer counts"


def test_minutes_that_are_over_are_counted_once(stage: Stage) -> None:
    known = KnownMinutes()
    runbook = stage.publish(ONE_STEP)
    for _ in range(3):
        batch = stage.batch(runbook, 2)
        stage.due(batch, "prepare")
        stage.run()
        stage.clock.advance(timedelta(minutes=7))
        assert rates_of_last_hour(stage.store, known).minutes == rates_of_last_hour(stage.store).minutes
    assert rates_of_last_hour(stage.store, known).steps == 6
    with stage.store.transaction() as tx:
        announce_functions(tx, "worker-02", [AnnouncedFunction("Other", "[]")], stage.now)
    assert rates_of_last_hour(stage.store, known).minutes == rates_of_last_hour(stage.store).minutes
    assert rates_of_last_hour(stage.store, known).workers == 2
    stage.clock.advance(timedelta(hours=2))
    assert rates_of_last_hour(stage.store, known).steps == 0


def test_jobs_that_are_out_and_workers_that_are_known_are_counted(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP), 3)
    stage.answers["Create"] = Silent()
    with stage.store.transaction() as tx:
        announce_functions(tx, "worker-02", [AnnouncedFunction("Other", "[]")], stage.now)
    stage.due(batch, "prepare")
    stage.run()
    seen = rates_of_last_hour(stage.store)
    assert (seen.jobs_out, seen.workers_heard, seen.workers, seen.steps) == (3, 0, 2, 0)
    stage.answers["Create"] = None
    again = stage.batch(stage.publish(ONE_STEP, "again"), 1)
    stage.due(again, "prepare")
    stage.run()
    stage.clock.advance(timedelta(seconds=1))
    assert rates_of_last_hour(stage.store).workers_heard == 1


def test_the_lag_is_that_of_the_slowest_phase_and_leaves_out_what_a_person_held(stage: Stage) -> None:
    runbook = stage.publish(ONE_STEP)
    assert rates_of_last_hour(stage.store).longest_lag is None
    slow, held, late = (stage.batch_at(runbook, 1, days=days) for days in (5, 6, 4))
    stage.clock.advance(timedelta(minutes=4))
    stage.due(slow, "prepare")
    assert rates_of_last_hour(stage.store).longest_lag == timedelta(minutes=4)
    stage.due(late, "prepare")
    assert rates_of_last_hour(stage.store).longest_lag == timedelta(minutes=4), "its batch was found after it was due"
    stage.hold(held)
    stage.release(held)
    stage.clock.advance(timedelta(days=1, minutes=9))
    stage.due(held, "prepare")
    assert rates_of_last_hour(stage.store).longest_lag is None


@pytest.mark.on("sqlite")
def test_the_hour_costs_as_many_statements_for_many_steps_as_for_few(
    stage: Stage, statements: Callable[[], list[str]]
) -> None:
    def cost(members: int, name: str) -> int:
        batch = stage.batch(stage.publish(ONE_STEP, name), members)
        stage.due(batch, "prepare")
        stage.run()
        statements()
        rates_of_last_hour(stage.store)
        return len(statements())

    assert cost(1, "few") == cost(50, "many")
