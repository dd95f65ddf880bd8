"""Rules S1, S4 and T6: where a runbook wants it, a hold ends when people have signed off what it stands for."""

from datetime import timedelta

import pytest

from matoolkit.admin.approvals import waiting_approvals
from matoolkit.admin.approving import approve, missing_sign_offs, withdraw_from_hold
from matoolkit.admin.late_batches import approve_late
from matoolkit.admin.queries import hold_of
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.signoff import Signer
from matoolkit.domain.states import BatchStatus, SignOffSubject
from matoolkit.errors import (
    AlreadySigned,
    HoldApproved,
    HoldChanged,
    NobodySigned,
    NotAmongSigners,
    NothingToWithdraw,
    RoleMissing,
)
from matoolkit.store.batches import BatchRow
from tests.signing import LOCAL, PIPELINE, Signers, person
from tests.stage import Stage

SAFE = """\
safeguards: {approval: {count: 2, by: ["role:Approver"]}}
phases:
  - name: cutover
    offset: T-0
    steps:
      - {name: move, worker_id: worker-01, function: Move}
"""


def held(stage: Stage, kind: HoldKind = HoldKind.REMOVALS, document: str = SAFE) -> BatchRow:
    batch = stage.batch(stage.publish(document), 2)
    stage.hold_for(batch, kind, "k1")
    return stage.reload(batch)


def sign(stage: Stage, batch: BatchRow, by: Signer, key: str = "k1") -> BatchRow:
    return approve(stage.store, stage.bus, batch.id, key, by=by.name, signer=by)


def test_s1_a_hold_is_approved_by_the_last_of_those_who_have_to_sign(stage: Stage) -> None:
    batch = held(stage)
    (asking,) = waiting_approvals(stage.store)
    assert (asking.asked.subject, asking.waits) == (SignOffSubject.HOLD, "waits for approval: 0 of 2 given")
    assert sign(stage, batch, person("ann")).approved_hold_at is None
    assert missing_sign_offs(stage.store, batch.id) == f"1 of 2 given (ann {stage.now:%H:%M} UTC)"
    done = sign(stage, batch, person("bob"))
    assert (done.approved_hold_by, done.approved_hold_key) == ("bob", "k1")
    assert (missing_sign_offs(stage.store, batch.id), waiting_approvals(stage.store)) == (None, [])
    with pytest.raises(HoldApproved):
        sign(stage, batch, person("cleo"))


def test_s1_an_init_that_failed_is_passed_by_with_the_last_sign_off(stage: Stage) -> None:
    batch = held(stage, HoldKind.INIT, "init:\n  - {name: a, worker_id: worker-01, function: A}\n" + SAFE)
    sign(stage, batch, person("ann"))
    assert stage.reload(batch).status is BatchStatus.INIT_DISPATCHED
    sign(stage, batch, person("bob"))
    assert stage.reload(batch).status is BatchStatus.ACTIVE


@pytest.mark.parametrize(
    ("by", "error"),
    [(person("zoe", "Operator"), NotAmongSigners), (PIPELINE, NobodySigned)],
    ids=["role", "application"],
)
def test_s4_who_may_not_sign_a_hold_is_refused(stage: Stage, by: Signer, error: type[Exception]) -> None:
    batch = held(stage)
    with pytest.raises(error):
        sign(stage, batch, by)


def test_s4_the_same_person_signs_a_hold_once_and_takes_it_back(stage: Stage) -> None:
    batch = held(stage)
    sign(stage, batch, person("ann"))
    with pytest.raises(AlreadySigned):
        sign(stage, batch, person("Ann"))
    withdraw_from_hold(stage.store, batch.id, by=person("ann"))
    assert missing_sign_offs(stage.store, batch.id) == "0 of 2 given"
    with pytest.raises(NothingToWithdraw):
        withdraw_from_hold(stage.store, batch.id, by=person("ann"))


def test_s4_where_nobody_signs_in_one_meets_the_quorum_of_a_hold(stage: Stage) -> None:
    assert sign(stage, held(stage), LOCAL).approved_hold_by == "local"


def test_s5_sign_offs_of_a_hold_do_not_count_for_another_one(stage: Stage) -> None:
    batch = held(stage)
    sign(stage, batch, person("ann"))
    stage.hold_for(batch, HoldKind.REMOVALS, "k2", "more are gone")
    with pytest.raises(HoldChanged):
        sign(stage, batch, person("bob"))
    assert sign(stage, batch, person("bob"), "k2").approved_hold_at is None


def test_s5_sign_offs_of_a_hold_do_not_outlive_their_age(stage: Stage) -> None:
    batch = held(stage)
    sign(stage, batch, person("ann"))
    stage.clock.advance(timedelta(days=7))
    assert sign(stage, batch, person("bob")).approved_hold_at is None


def test_g11_without_a_rule_a_hold_is_for_administrators(stage: Stage) -> None:
    batch = held(stage, document=SAFE.partition("\n")[2])
    with pytest.raises(RoleMissing):
        sign(stage, batch, person("ann", "Approver"))
    assert sign(stage, batch, person("ann", "Admin")).approved_hold_by == "ann"


def test_s1_many_late_batches_are_signed_off_together(stage: Stage) -> None:
    batch = held(stage, HoldKind.LATE)
    assert batch.batch_start_time is not None
    before = batch.batch_start_time + timedelta(days=1)

    def all_by(who: Signer) -> tuple[list[int], list[int]]:
        done = approve_late(stage.store, stage.bus, before, None, by=who.name, reason=None, signer=who)
        return list(done.batch_ids), list(done.signed_ids)

    assert all_by(person("ann")) == ([], [batch.id])
    assert all_by(person("bob")) == ([batch.id], [])


def test_s5_a_held_reschedule_says_whose_sign_offs_it_would_void(stage: Stage) -> None:
    document = SAFE.partition("\n")[2].replace("    offset: T-0\n", "    offset: T-0\n    approval: {count: 2}\n")
    batch = stage.batch(stage.publish(document), 2)
    Signers(stage).approve(batch, "ann")
    stage.hold_for(batch, HoldKind.RESCHEDULE, "k1", start=(stage.now + timedelta(days=1)).isoformat())
    assert hold_of(stage.store, batch.id).voided == ["ann"]
    stage.hold_for(batch, HoldKind.REMOVALS, "k2")
    assert hold_of(stage.store, batch.id).voided == ()


def test_s4_of_many_late_batches_those_that_one_may_not_sign_off_are_named(stage: Stage) -> None:
    batch = held(stage, HoldKind.LATE, SAFE.replace("role:Approver", "cleo").replace("count: 2", "count: 1"))
    assert batch.batch_start_time is not None
    before = batch.batch_start_time + timedelta(days=1)
    done = approve_late(stage.store, stage.bus, before, None, by="ann", reason=None, signer=person("ann"))
    assert (done.batch_ids, done.signed_ids, list(done.refused)) == ([], [], [batch.id])
    assert isinstance(done.refused[batch.id], NotAmongSigners)
