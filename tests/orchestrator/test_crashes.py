"""A crash at any moment loses nothing and repeats nothing."""

from datetime import timedelta
from itertools import count

import pytest

from matoolkit.bus.topology import LOCK_DURATION
from matoolkit.crashpoints import SimulatedCrash, arm, disarm
from matoolkit.domain.states import BatchStatus
from matoolkit.orchestrator.agenda import Limits
from tests.stage import Failing, Stage

from .runbooks import WITH_INIT, WITH_ROLLBACK

MOMENTS = ["store.before_commit", "store.after_commit", "consumer.handled", "bus.received"]
RUNBOOK = WITH_INIT.split("rollbacks:")[0].replace(", on_failure: close", "") + WITH_ROLLBACK.lstrip("\n")


def handled(stage: Stage, moment: str, every: int) -> Stage:
    """Let orchestrators handle all there is, each of which dies at a moment, a little later than the last."""
    for further in count():
        arm(moment, on_hit=every + further)
        try:
            stage.handle()
        except SimulatedCrash:
            stage.clock.advance(LOCK_DURATION + timedelta(seconds=1))
            stage = Stage(stage.store, stage.clock, stage.limits, stage.answers, stage.jobs)
        else:
            return stage
        finally:
            disarm(moment)
    raise AssertionError


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_a_batch_ends_as_if_nothing_had_happened(stage: Stage, moment: str, every: int) -> None:
    stage = Stage(stage.store, stage.clock, Limits(slice_size=2))
    batch = stage.batch(stage.publish(RUNBOOK), 3)
    stage.answers = {
        "Create": lambda job: {"Id": job.parameters["Email"]},
        "License": lambda job: Failing() if job.parameters["User"] == "u1" else None,
    }
    stage = handled(stage, moment, every)
    while stage.work():
        stage = handled(stage, moment, every)
    for phase in ("prepare", "cutover"):
        stage.due(batch, phase)
        stage = handled(stage, moment, every)
        while stage.work():
            stage = handled(stage, moment, every)
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    assert [stage.member(batch, key).status for key in ("u0", "u1", "u2")] == ["active", "failed", "active"]
    assert {row.status for row in stage.rollbacks(batch)} == {"succeeded"}
    done = [job.job_id for job in stage.jobs]
    assert len(done) == len(set(done)), "no job was sent twice"
