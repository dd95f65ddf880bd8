"""How members go through a phase over time, counted in the database."""

from collections.abc import Callable

from matoolkit.admin.progress import phase_progress
from matoolkit.domain.states import StepStatus
from matoolkit.store.batches import BatchRow
from tests.orchestrator.runbooks import TWO_PHASES
from tests.stage import Failing, Silent, Stage


def under_way(stage: Stage, members: int = 4, name: str = "wave") -> BatchRow:
    """Let one member fail in the cutover, one have its job out, and the others come through at half time."""
    batch = stage.batch(stage.publish(TWO_PHASES, name), members)
    answers = {"u0": Failing("over quota"), "u1": Silent()}
    stage.answers["Finish"] = lambda job: answers.get(job.parameters["Email"])
    stage.due(batch, "prepare")
    stage.run()
    stage.due(batch, "cutover")
    stage.later(minutes=30)
    stage.run()
    stage.later(minutes=30)
    return batch


def test_the_phase_that_runs_is_counted_by_time_and_by_step(stage: Stage) -> None:
    seen = phase_progress(stage.store, under_way(stage).id)
    assert seen is not None
    assert (seen.phase.phase_name, seen.members, seen.end - seen.begin) == ("cutover", 4, stage.now - seen.begin)
    assert len(seen.begun) == len(seen.through) == 49
    assert (seen.begun[0], seen.begun[24], seen.begun[-1]) == (0, 4, 4)
    assert (seen.through[0], seen.through[23], seen.through[24], seen.through[-1]) == (0, 0, 2, 2)
    assert [(step.name, dict(step.counts)) for step in seen.steps] == [
        ("move", {StepStatus.SUCCEEDED: 4}),
        ("finish", {StepStatus.DISPATCHED: 1, StepStatus.FAILED: 1, StepStatus.SUCCEEDED: 2}),
    ]
    assert (seen.remaining, seen.each_minute, seen.ends_about) == (1, 0.0, None), "nobody came through of late"


def test_the_end_is_expected_at_the_rate_of_late(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 4)
    stage.answers["Finish"] = lambda job: Silent() if job.parameters["Email"] == "u0" else None
    stage.due(batch, "prepare", "cutover")
    stage.later(minutes=56)
    stage.run()
    stage.later(minutes=4)
    seen = phase_progress(stage.store, batch.id)
    assert seen is not None
    assert (seen.remaining, round(seen.each_minute, 2)) == (1, 0.2), "three in a quarter of an hour"
    assert seen.ends_about is not None
    assert round((seen.ends_about - stage.now).total_seconds()) == 300


def test_nothing_is_counted_before_a_phase_has_begun(stage: Stage) -> None:
    assert phase_progress(stage.store, stage.batch(stage.publish(TWO_PHASES), 2).id) is None


def test_a_phase_that_ended_is_shown_until_another_begins(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.due(batch, "prepare")
    stage.run()
    seen = phase_progress(stage.store, batch.id)
    assert seen is not None
    assert (seen.phase.phase_name, seen.begun[-1], seen.through[-1], seen.ends_about) == ("prepare", 2, 2, None)


def test_counting_takes_the_same_number_of_statements_for_few_and_for_many(
    stage: Stage, statements: Callable[[], list[str]]
) -> None:
    counted = []
    for members in (3, 60):
        batch = under_way(stage, members, f"wave-{members}")
        statements()
        phase_progress(stage.store, batch.id)
        counted.append(len(statements()))
    assert counted[0] == counted[1] <= 8
