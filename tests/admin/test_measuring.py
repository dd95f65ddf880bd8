"""What the state says in numbers: gates that are shut, for how long they were, and phases that should have begun."""

from datetime import timedelta

import pytest

from matoolkit.admin.gating import Subject, pause, resume
from matoolkit.admin.measuring import measured
from matoolkit.telemetry.metering import GATES, PHASE_LAG
from tests.admin.test_attention import GATED
from tests.hosting.test_telemetry import sending
from tests.orchestrator.runbooks import TWO_PHASES
from tests.stage import Stage


def lag(stage: Stage) -> float:
    ((_, seconds),) = measured(stage.store)[PHASE_LAG]
    return seconds


def test_g3_gates_in_force_are_counted_by_kind(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    stage.hold(batch)
    for _ in range(2):
        pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
    counted = {labels["kind"]: count for labels, count in measured(stage.store)[GATES]}
    assert {kind: count for kind, count in counted.items() if count} == {"removals": 1, "pause": 2}
    assert counted["window"] == 0, "one that has nothing is there too, so that a graph begins at nothing"


def test_u6_a_phase_that_its_own_gate_keeps_does_not_count_as_overdue(stage: Stage) -> None:
    stage.batch(stage.publish(TWO_PHASES), 1)
    stage.clock.advance(timedelta(minutes=20))
    assert lag(stage) == 20 * 60
    stage.batch(stage.publish(GATED, "gated"), 1)
    stage.due(stage.batch(stage.publish(TWO_PHASES, "other"), 1), "prepare")
    pause(stage.store, stage.bus, Subject(runbook_name="wave"), by="kwu", reason="legal hold")
    stage.clock.advance(timedelta(hours=1))
    assert lag(stage) == 0.0


@pytest.mark.on("sqlite")
def test_g8_for_how_long_a_gate_was_shut_is_counted_when_it_opens(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    with sending("api") as collector:
        pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
        stage.clock.advance(timedelta(minutes=5))
        resume(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="it is over")
    assert collector.points["matoolkit.gate.wait"] == [({"kind": "pause", "runbook": "wave"}, 300.0)]
