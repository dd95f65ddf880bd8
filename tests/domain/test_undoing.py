"""Rules U2 and U3: for whom an undo runs what, decided for every member that there can be."""

from itertools import product

import pytest

from matoolkit.domain.states import ABSENT, EXCLUDED, MOVED, NOT_BEGUN, BatchStatus, MemberStatus
from matoolkit.domain.undoing import (
    LeaveOut,
    NothingToRun,
    NotUndoneBecause,
    Removal,
    Undo,
    Undoable,
    decide_undo,
    version_that_undoes,
)

ACTIVE, FAILED, REMOVED = MemberStatus.ACTIVE, MemberStatus.FAILED, MemberStatus.REMOVED
FOLLOWED, CHOSEN = 3, 4


@pytest.mark.parametrize("status", [ACTIVE, FAILED])
def test_u2_active_and_failed_members_are_undone(status: MemberStatus) -> None:
    assert decide_undo(Undoable(status), has_steps=True) == Undo()
    assert decide_undo(Undoable(status, was_rolled_back=True), has_steps=True) == Undo(None, was_rolled_back=True)


def test_u2_nothing_runs_for_somebody_for_whom_nothing_was_done() -> None:
    idle = Undoable(ACTIVE, has_done=False)
    assert decide_undo(idle, has_steps=True) == Undo(NothingToRun.NOTHING_DONE)
    assert decide_undo(idle, has_steps=False) == Undo(NothingToRun.NOTHING_DONE)
    assert decide_undo(Undoable(ACTIVE), has_steps=False) == Undo(NothingToRun.NO_STEPS)


@pytest.mark.parametrize(
    ("member", "because"),
    [
        (Undoable(REMOVED), NotUndoneBecause.LEFT),
        (Undoable(REMOVED, is_undone=True), NotUndoneBecause.UNDONE_BEFORE),
        (Undoable(FAILED, is_rolling_back=True), NotUndoneBecause.ROLLBACK_RUNS),
        (Undoable(ACTIVE, is_elsewhere=True), NotUndoneBecause.IN_ANOTHER_BATCH),
        (Undoable(FAILED, is_done_since=True), NotUndoneBecause.DONE_SINCE),
    ],
)
def test_u2_who_is_left_out_and_why(member: Undoable, because: NotUndoneBecause) -> None:
    assert decide_undo(member, has_steps=True) == LeaveOut(because)


def test_u3_what_somebody_did_before_it_was_excluded_can_be_undone_later() -> None:
    assert decide_undo(Undoable(REMOVED, is_excluded=True), has_steps=True) == Undo()
    again = Undoable(REMOVED, is_undone=True, is_excluded=True)
    assert decide_undo(again, has_steps=True) == LeaveOut(NotUndoneBecause.UNDONE_BEFORE)


def test_u2_every_member_is_either_left_out_or_undone() -> None:
    flags = [False, True]
    for status, told in product(MemberStatus, product(*[flags] * 7)):
        undone, excluded, rolling, rolled, done, elsewhere, since = told
        member = Undoable(
            status,
            is_undone=undone,
            is_excluded=excluded,
            is_rolling_back=rolling,
            was_rolled_back=rolled,
            has_done=done,
            is_elsewhere=elsewhere,
            is_done_since=since,
        )
        is_gone = status is REMOVED and (undone or not excluded)
        left_out = is_gone or rolling or elsewhere or since
        for has_steps in flags:
            decided = decide_undo(member, has_steps=has_steps)
            assert isinstance(decided, LeaveOut) is left_out
            if isinstance(decided, Undo):
                assert (decided.nothing_because is None) is (done and has_steps)
                assert decided.was_rolled_back is rolled


@pytest.mark.parametrize("batch", list(BatchStatus))
def test_u2_an_undo_runs_in_a_batch_of_any_status(batch: BatchStatus) -> None:
    for reason in (None, ABSENT, MOVED, NOT_BEGUN, EXCLUDED, "undone by a person: why"):
        assert version_that_undoes(Removal(reason, is_undone=True, undo_version=CHOSEN), batch, FOLLOWED) == CHOSEN
        assert version_that_undoes(Removal(reason, is_undone=True), batch, FOLLOWED) is None


@pytest.mark.parametrize("batch", list(BatchStatus))
def test_o12_other_leavers_are_undone_unless_they_moved_or_their_batch_was_cancelled(batch: BatchStatus) -> None:
    is_cancelled = batch is BatchStatus.CANCELLED
    for reason in (None, ABSENT, "removed by a person"):
        assert version_that_undoes(Removal(reason), batch, FOLLOWED) == (None if is_cancelled else FOLLOWED)
    for reason in (MOVED, NOT_BEGUN, EXCLUDED):
        assert version_that_undoes(Removal(reason), batch, FOLLOWED) is None
