"""Where the gates of one phase meet: sign-offs, places, pilots and windows together."""

import pytest

from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.store.batches import BatchRow
from tests.signing import Signers
from tests.stage import Stage

BOTH = """\
pilot: {count: 1}
phases:
  - name: cutover
    offset: T-5d
    approval: {APPROVAL}
    rollout: {ROLLOUT}
    steps:
      - {name: move, worker_id: worker-01, function: Move, params: {Email: '{{Email}}'}}
"""


@pytest.fixture
def signers(stage: Stage) -> Signers:
    return Signers(stage)


def begun(stage: Stage, signers: Signers, rollout: str, approval: str = "count: 1", members: int = 3) -> BatchRow:
    text = BOTH.replace("APPROVAL", approval).replace("ROLLOUT", rollout)
    batch = stage.batch(stage.publish(text), members)
    signers.approve(batch, "ann")
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    stage.handle()
    return batch


def sent(stage: Stage) -> list[str]:
    jobs = stage.take_jobs()
    for job in jobs:
        stage.answer(job)
    return [str(job.parameters["Email"]) for job in jobs]


def test_c5_places_are_taken_in_a_phase_that_was_signed_off(stage: Stage, signers: Signers) -> None:
    begun(stage, signers, "at_once: 2")
    assert sent(stage) == ["u0", "u1"]
    stage.handle()
    assert sent(stage) == ["u2"]


def test_c5_who_joined_after_the_sign_off_waits_and_takes_no_place(stage: Stage, signers: Signers) -> None:
    batch = begun(stage, signers, "at_once: 2")
    stage.join(batch, "late")
    stage.handle()
    assert sent(stage) == ["u0", "u1"]
    stage.handle()
    assert sent(stage) == ["u2"]
    stage.handle()
    assert sent(stage) == []
    signers.approve(batch, "bob")
    stage.handle()
    assert sent(stage) == ["late"]


def test_c2_pilots_go_first_in_a_phase_that_was_signed_off(stage: Stage, signers: Signers) -> None:
    begun(stage, signers, "{pilot_first: true, at_once: 2}".strip("{}"))
    assert sent(stage) == ["u0"]
    stage.handle()
    assert sent(stage) == ["u1", "u2"]


def test_s7_who_joins_after_the_time_for_sign_offs_can_be_approved_still(stage: Stage, signers: Signers) -> None:
    batch = begun(stage, signers, "at_once: 9", "until: T-119h")
    assert len(stage.take_jobs()) == 3
    stage.later(hours=3)
    stage.join(batch, "late")
    stage.handle()
    assert sent(stage) == []
    signers.approve(batch, "bob")
    stage.handle()
    assert sent(stage) == ["late"]
