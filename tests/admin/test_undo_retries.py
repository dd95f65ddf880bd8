"""Steps that were to undo something and failed are found and tried again (rules O9 and O14)."""

from collections.abc import Sequence
from typing import Any

import pytest

from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.retrying import retry_members
from matoolkit.admin.undoretries import preview_undo_retry, retry_undo
from matoolkit.domain.states import BatchStatus, MemberState
from matoolkit.errors import NothingToRetry
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import BatchRow
from matoolkit.store.memberstates import states_of_members
from matoolkit.store.undofailures import UndoFailure, count_undo_failures, undo_failure_counts, undo_failures_page
from tests.orchestrator.runbooks import WITH_INIT, WITH_ROLLBACK
from tests.stage import Failing, Silent, Stage


def broken(stage: Stage, members: int = 1) -> BatchRow:
    """Let all members of a batch fail, and the first step of each one's rollback too."""
    batch = stage.batch(stage.publish(WITH_ROLLBACK), members)
    stage.answers.update(Create={"Id": "1"}, License=Failing(), Unlicense=Failing("cannot"))
    stage.due(batch, "prepare")
    stage.run()
    return batch


def failures(stage: Stage, **wanted: Any) -> Sequence[UndoFailure]:
    with stage.store.reading() as tx:
        return undo_failures_page(tx, **wanted)


def retry(stage: Stage, batch: BatchRow, ids: list[int] | None = None) -> list[int]:
    return list(retry_undo(stage.store, stage.bus, batch.id, ids, by="ann", reason="it is back").step_ids)


def test_o9_failed_undo_steps_are_listed_and_run_again_in_order_with_a_new_attempt(stage: Stage) -> None:
    batch = broken(stage, 2)
    found = failures(stage, batch_id=batch.id)
    assert [(one.member_key, one.step_name, one.error_message) for one in found] == [
        ("u1", "unlicense", "cannot"),
        ("u0", "unlicense", "cannot"),
    ]
    with stage.store.reading() as tx:
        assert [(one.runbook_name, one.count) for one in undo_failure_counts(tx)] == [("wave", 2)]
    assert stage.reload(batch).status in {BatchStatus.ACTIVE, BatchStatus.FAILED}
    stage.answers["Unlicense"] = None
    assert preview_undo_retry(stage.store, batch.id).step_ids == tuple(sorted(one.id for one in found))
    assert retry(stage, batch) == sorted(one.id for one in found)
    with stage.store.reading() as tx:
        ids = [member.id for member in stage.members(batch)]
        assert set(states_of_members(tx, ids).values()) == {MemberState.UNDOING}
    stage.run()
    assert [(row.step_name, row.status, row.attempt) for row in stage.rollbacks(batch)] == [
        ("unlicense", "succeeded", 2),
        ("delete", "succeeded", 1),
    ] * 2
    assert failures(stage) == []
    with stage.store.reading() as tx:
        (entry,) = audit_page(tx, batch_id=batch.id)
        assert (entry.action, entry.actor, entry.reason) == ("batch.retry_undo", "ann", "it is back")


def test_o9_one_of_several_is_chosen_and_another_failure_of_it_is_listed_again(stage: Stage) -> None:
    batch = broken(stage, 2)
    later, first = failures(stage)
    assert retry(stage, batch, [first.id]) == [first.id]
    stage.run()
    assert [(one.id, one.attempt) for one in failures(stage)] == [(later.id, 1), (first.id, 2)]
    with pytest.raises(NothingToRetry, match="no undo step that was asked for"):
        retry(stage, batch, [first.id + 1_000])


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_o9_an_undo_step_is_tried_again_in_a_batch_that_has_ended(stage: Stage, *, is_cancelled: bool) -> None:
    batch = broken(stage)
    if is_cancelled:
        cancel_batch(stage.store, stage.bus, batch.id, by="ann")
    else:
        stage.due(batch, "cutover")
        stage.run()
    ended = stage.reload(batch).status
    assert ended is (BatchStatus.CANCELLED if is_cancelled else BatchStatus.FAILED)
    stage.answers["Unlicense"] = None
    retry(stage, batch)
    stage.run()
    assert failures(stage) == []
    assert stage.reload(batch).status is ended


def test_o9_nothing_is_undone_for_a_member_that_has_begun_again(stage: Stage) -> None:
    batch = broken(stage)
    (failed,) = failures(stage)
    stage.answers["License"] = Silent()
    retry_members(stage.store, stage.bus, batch.id, by="ann")
    stage.run()
    assert failures(stage) == []
    (left_out,) = preview_undo_retry(stage.store, batch.id).left_out
    assert (left_out.because, left_out.step_ids) == ("u0 has begun again since", (failed.id,))
    with pytest.raises(NothingToRetry, match="u0 has begun again since"):
        retry(stage, batch)
    assert [row.status for row in stage.rollbacks(batch)] == ["failed", "succeeded"]


def test_o9_a_step_of_a_rollback_is_not_tried_again_while_the_next_one_runs(stage: Stage) -> None:
    stage.answers["Delete"] = Silent()
    batch = broken(stage)
    with pytest.raises(NothingToRetry, match="something else is under way for u0"):
        retry(stage, batch)


def test_o9_the_rollback_of_an_init_is_tried_again_until_the_init_has_begun_again(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT), 1)
    stage.answers.update(Domain=Failing(), Undomain=Failing("cannot"))
    stage.run()
    (failed,) = failures(stage)
    assert (failed.member_key, failed.cause, failed.sequence_name) == (None, "init_failed", "close")
    stage.answers["Undomain"] = None
    retry(stage, batch)
    stage.run()
    assert [row.status for row in stage.rollbacks(batch)] == ["succeeded"]
    with stage.store.reading() as tx:
        assert count_undo_failures(tx) == 0


def test_o9_u2_what_failed_to_be_undone_stays_for_somebody_who_is_done_in_a_later_batch(stage: Stage) -> None:
    batch = broken(stage)
    stage.answers.update(License=None, Unlicense=None)
    stage.later(hours=1)
    later = stage.batch_at(stage.publish(WITH_ROLLBACK), 1, days=9)
    stage.due(later, "prepare", "cutover")
    stage.run()
    assert stage.reload(later).status is BatchStatus.COMPLETED
    with pytest.raises(NothingToRetry, match="u0 is done in a later batch"):
        retry(stage, batch)
