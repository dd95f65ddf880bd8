"""The phases of a batch on a time line: times stay in their order, and idle time is folded."""

from datetime import timedelta

import pytest

from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.looking import look_at_batch
from matoolkit.store.batches import BatchRow
from matoolkit.web.timeline import TimeLine, time_line
from tests.orchestrator.runbooks import TWO_PHASES, WITH_INIT
from tests.stage import Silent, Stage

pytestmark = pytest.mark.on("sqlite")


def drawn(stage: Stage, batch: BatchRow) -> TimeLine:
    return time_line(look_at_batch(stage.store, batch.id))


def test_long_idle_stretches_are_folded_and_named(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    stage.answers["Move"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    stage.later(days=5)
    stage.due(batch, "cutover")
    stage.run()
    stage.later(minutes=20)
    line = drawn(stage, batch)
    assert [idle.label for idle in line.idle] == ["5d idle"]
    assert [lane.name for lane in line.lanes] == ["prepare", "cutover", "check"]
    begun = [float(line.x(lane.begun).rstrip("%")) for lane in line.lanes if lane.begun]
    assert 0 < begun[0] < line.idle[0].x < begun[1] < (line.now or 0) <= 100
    running = line.lanes[1]
    assert running.begun is not None
    assert float(line.width(running.begun, stage.now).rstrip("%")) > 50, "what happens gets the room"


def test_what_began_late_says_so(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    stage.later(hours=2)
    stage.due(batch, "prepare")
    stage.run()
    assert drawn(stage, batch).lanes[0].delay == timedelta(hours=2)


def test_the_init_is_a_lane_of_its_own(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT), 1)
    stage.run()
    init = drawn(stage, batch).lanes[0]
    assert (init.name, init.status, init.failed) == ("init", "completed", 0)


def test_a_batch_that_has_not_begun_has_a_line_too(stage: Stage) -> None:
    line = drawn(stage, stage.batch(stage.publish(TWO_PHASES), 1))
    assert line.now is not None
    assert [mark.label for mark in line.marks] == ["T-5d", "T-0"]


def test_a_batch_that_has_ended_has_no_now(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    cancel_batch(stage.store, stage.bus, batch.id, by="anna")
    line = drawn(stage, batch)
    assert line.now is None
    assert {lane.status for lane in line.lanes} == {"cancelled"}


@pytest.mark.parametrize("offsets", [(0, 0, 0), (1, 2, 3), (60 * 24 * 365, 5, 0)])
def test_places_are_within_the_line_and_in_order(stage: Stage, offsets: tuple[int, ...]) -> None:
    phases = "".join(
        f"  - name: p{number}\n    offset: T-{minutes}m\n    steps: [{{name: s, worker_id: worker-01, function: F}}]\n"
        if minutes
        else f"  - name: p{number}\n    offset: T-0\n    steps: [{{name: s, worker_id: worker-01, function: F}}]\n"
        for number, minutes in enumerate(offsets)
    )
    line = drawn(stage, stage.batch(stage.publish(f"phases:\n{phases}"), 1))
    xs = [mark.x for mark in line.marks]
    assert xs == sorted(xs)
    assert all(0 <= x <= 100 for x in xs)
