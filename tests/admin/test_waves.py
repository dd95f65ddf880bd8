"""The calendar of waves: which are on it, how far each has come, and which are drawn when there are hundreds."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from matoolkit.admin.waves import Wave, WaveCalendar, wave_calendar
from tests.orchestrator.runbooks import ONE_STEP, TWO_PHASES
from tests.stage import Stage


def look(stage: Stage, days_back: int = 14, days_ahead: int = 42) -> WaveCalendar:
    return wave_calendar(stage.store, stage.now - timedelta(days=days_back), stage.now + timedelta(days=days_ahead))


def the_one(stage: Stage) -> Wave:
    ((wave,),) = (runbook.waves for runbook in look(stage).runbooks)
    return wave


def test_waves_with_t_or_a_phase_in_the_time_are_on_the_calendar_by_runbook(stage: Stage) -> None:
    wave, other = stage.publish(TWO_PHASES), stage.publish(TWO_PHASES, "another")
    near, far = stage.batch_at(wave, 2, days=6), stage.batch_at(wave, 1, days=41)
    by_its_phase = stage.batch_at(other, 1, days=45)
    stage.batch_at(other, 1, days=60)
    seen = look(stage)
    assert [(one.runbook_name, [wave.view.batch.id for wave in one.waves]) for one in seen.runbooks] == [
        ("another", [by_its_phase.id]),
        ("wave", [near.id, far.id]),
    ]
    assert (seen.found, seen.hidden) == (3, 0)
    assert [phase.phase_name for phase in seen.runbooks[1].waves[0].phases] == ["prepare", "cutover", "check"]
    assert look(stage, days_ahead=0).found == 0
    assert look(stage, days_back=-100, days_ahead=200).runbooks == []


def test_a_wave_has_come_to_the_first_phase_that_has_not_begun(stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 1, days=6)
    prepared, start = stage.now + timedelta(days=1), stage.now + timedelta(days=6)
    assert (the_one(stage).span, the_one(stage).reached(stage.now)) == ((prepared, start), prepared)
    stage.clock.advance(timedelta(days=3))
    assert the_one(stage).reached(stage.now) == prepared, "it has not begun, although it is due"
    assert the_one(stage).is_overdue(stage.now)
    stage.due(batch, "prepare")
    running = the_one(stage).running
    assert running is not None
    assert running.phase_name == "prepare"
    assert the_one(stage).reached(stage.now) == stage.now
    assert not the_one(stage).is_overdue(stage.now)
    stage.due(batch, "cutover", "check")
    stage.run()
    assert the_one(stage).has_ended
    assert the_one(stage).reached(stage.now) == start


@pytest.mark.on("sqlite")
def test_of_many_waves_the_held_and_the_nearest_of_each_runbook_are_drawn(stage: Stage) -> None:
    many, few = stage.publish(ONE_STEP, "many"), stage.publish(ONE_STEP, "few")
    batches = [stage.batch_at(many, 1, days=day) for day in range(1, 41)]
    stage.hold(batches[-1])
    lone = stage.batch_at(few, 1, days=30)
    seen = look(stage)
    assert (seen.found, seen.hidden) == (41, 17)
    one, another = seen.runbooks
    assert [wave.view.batch.id for wave in one.waves] == [lone.id]
    drawn = [wave.view.batch.id for wave in another.waves]
    assert drawn == [*(batch.id for batch in batches[:22]), batches[-1].id]
    assert another.hidden == 17


@pytest.mark.on("sqlite")
def test_the_calendar_costs_as_many_statements_for_many_waves_as_for_few(
    stage: Stage, statements: Callable[[], list[str]]
) -> None:
    runbook = stage.publish(TWO_PHASES)
    stage.batch_at(runbook, 1, days=1)
    statements()
    look(stage)
    few = len(statements())
    for day in range(2, 12):
        stage.batch_at(runbook, 20, days=day)
    statements()
    assert look(stage).found == 11
    assert len(statements()) == few
