"""Rule T1 for sweeps: a version that today's rules refuse keeps its own batches, and nobody else's."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from matoolkit.domain.states import PhaseStatus
from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from matoolkit.store.batches import BatchRow
from tests.orchestrator.runbooks import ONE_STEP, WITH_POLL
from tests.orchestrator.test_cohorts import ONE_STEP as WITH_ROLLOUT
from tests.orchestrator.test_cohorts import answered, runbook
from tests.stage import Stage

INIT = "init:\n  - {name: announce, worker_id: worker-01, function: Announce}\ninit_approval: {until: T-1d}\n"


def scheduler(stage: Stage) -> Scheduler:
    lease = SchedulerLease(stage.store, "one", timedelta(days=99), threading.Event())

    def no_source(_: Any) -> Any:
        raise AssertionError("a sweep reads no source")

    return Scheduler(stage.store, stage.bus, no_source, stage.clock, lease, timedelta(minutes=5))


def waiting_for_init(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(INIT + ONE_STEP, "broken"), 1)
    stage.handle()
    return batch


def waiting_for_soak(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(runbook("pilot_first: true, soak: 1m", "count: 1", WITH_ROLLOUT), "broken"), 2)
    stage.due(batch, "prepare")
    stage.handle()
    answered(stage, stage.take_jobs())
    return batch


def spoil(stage: Stage, batch: BatchRow) -> None:
    with stage.store.transaction() as tx:
        tx.execute(text(f"UPDATE runbooks SET yaml_content = 'name: broken' WHERE id = {batch.runbook_id}"))


@pytest.mark.parametrize("broken", [waiting_for_init, waiting_for_soak])
def test_t1_a_version_that_cannot_be_read_does_not_keep_the_sweep_from_others(stage: Stage, broken: Any) -> None:
    spoil(stage, broken(stage))
    stage.answers["Create"] = {"complete": False}
    batch = stage.batch(stage.publish(WITH_POLL), 1)
    stage.due(batch, "prepare")
    stage.handle()
    stage.work()
    stage.handle()
    stage.clock.advance(timedelta(hours=1))
    assert scheduler(stage).sweep() == 1, "the poll of another runbook is asked for"


def test_t1_a_version_that_cannot_be_read_does_not_keep_phases_of_others_from_beginning(stage: Stage) -> None:
    broken = stage.batch(stage.publish(ONE_STEP, "broken"), 1)
    batch = stage.batch(stage.publish(ONE_STEP), 1)
    spoil(stage, broken)
    stage.clock.advance(timedelta(days=9))
    assert dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now) > 0
    assert {phase.status for phase in stage.phase_rows(broken)} == {PhaseStatus.PENDING}
    assert {phase.status for phase in stage.phase_rows(batch)} == {PhaseStatus.DISPATCHED}
