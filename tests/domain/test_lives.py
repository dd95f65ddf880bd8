"""What becomes of batches, phases and members, in every state."""

from typing import Any

import pytest

from matoolkit.domain import batch, phase
from matoolkit.domain.member import decide_failure
from matoolkit.domain.moves import Ignore, Move, Value
from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves import member as member_moves
from matoolkit.domain.moves import phase as phase_moves
from matoolkit.domain.moves import step as step_moves
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus

COMPLETED, FAILED, SKIPPED = PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.SKIPPED
ACTIVE, REMOVED, GONE = MemberStatus.ACTIVE, MemberStatus.REMOVED, MemberStatus.FAILED
TABLES: list[tuple[Move[Any], ...]] = [batch_moves.MOVES, member_moves.MOVES, phase_moves.MOVES, step_moves.MOVES]


@pytest.mark.parametrize("table", TABLES, ids=["batch", "member", "phase", "step"])
def test_every_row_of_a_table_has_a_name_of_its_own_says_what_it_means_and_starts_somewhere(
    table: tuple[Move[Any], ...],
) -> None:
    assert len({move.name for move in table}) == len(table)
    assert len({move.meaning for move in table}) == len(table)
    assert all(move.from_states for move in table)
    assert all("status" not in move.writes for move in table), "to_state says it"


@pytest.mark.parametrize("status", list(PhaseStatus))
def test_o11_a_phase_ends_only_while_it_is_dispatched(status: PhaseStatus) -> None:
    decided = [phase.decide_end(status, 0), phase.decide_end(status, 1)]
    if status is PhaseStatus.DISPATCHED:
        assert decided == [phase_moves.FAIL, phase_moves.COMPLETE]
    else:
        assert decided == [Ignore(f"it is {status}")] * 2


@pytest.mark.parametrize("status", list(BatchStatus))
def test_o11_a_batch_ends_only_while_it_is_active(status: BatchStatus) -> None:
    decided = batch.decide_end(status, [COMPLETED], [ACTIVE])
    assert decided == (batch_moves.COMPLETE if status is BatchStatus.ACTIVE else Ignore(f"it is {status}"))


@pytest.mark.parametrize(
    ("phases", "members", "expected"),
    [
        ([COMPLETED, FAILED], [ACTIVE, GONE], "completed"),
        ([COMPLETED, SKIPPED], [REMOVED], "cancelled"),
        ([COMPLETED, FAILED], [GONE], "failed"),
        ([COMPLETED, COMPLETED], [GONE, REMOVED], "failed"),
        ([SKIPPED, SKIPPED], [ACTIVE], "completed"),
        ([SKIPPED, SKIPPED], [GONE], "failed"),
        ([SKIPPED, FAILED], [ACTIVE], "failed"),
        ([FAILED, SKIPPED], [REMOVED], "cancelled"),
        ([FAILED], [REMOVED, GONE], "failed"),
        ([PhaseStatus.SUPERSEDED, COMPLETED], [ACTIVE], "completed"),
        ([PhaseStatus.SUPERSEDED, FAILED], [GONE], "failed"),
        ([SKIPPED], [], "cancelled"),
    ],
)
def test_o11_how_a_batch_ends(phases: list[PhaseStatus], members: list[MemberStatus], expected: str) -> None:
    decided = batch.decide_end(BatchStatus.ACTIVE, phases, members)
    assert isinstance(decided, Move)
    assert decided.to_state == expected


@pytest.mark.parametrize("status", list(BatchStatus))
def test_v5_a_rerun_of_init_that_fails_holds_the_batch_and_a_first_one_fails_it(status: BatchStatus) -> None:
    decided = [batch.decide_failed_init(status, is_rerun=True), batch.decide_failed_init(status, is_rerun=False)]
    if status is BatchStatus.INIT_DISPATCHED:
        assert decided == [batch_moves.HOLD, batch_moves.FAIL]
    else:
        assert decided == [Ignore(f"it is {status}")] * 2


@pytest.mark.parametrize("status", list(MemberStatus))
def test_o8_a_failed_step_fails_a_member_that_is_active_in_the_same_epoch(status: MemberStatus) -> None:
    decided = decide_failure(status, 2, 2)
    assert decided == (member_moves.FAIL if status is ACTIVE else Ignore(f"it is {status}"))
    assert decide_failure(status, 2, 1) == Ignore("it has started all over since")


def test_t5_who_returns_or_begins_again_is_in_a_new_epoch() -> None:
    in_a_new_epoch = {move for move in member_moves.MOVES if move.writes.get("epoch") is Value.ONE_MORE}
    returns = {member_moves.RETURN, member_moves.RETURN_UNDONE}
    assert in_a_new_epoch == returns | {member_moves.RESTART, member_moves.RESTART_UNDONE}


def test_u2_who_begins_after_an_undo_has_no_outputs() -> None:
    without = {move for move in member_moves.MOVES if "worker_data_json" in move.writes}
    assert without == {member_moves.RETURN_UNDONE, member_moves.RESTART_UNDONE}


def test_u2_a_mark_is_set_by_an_undo_and_ends_with_the_epoch() -> None:
    marked = {move: move.writes["undone_at"] for move in member_moves.MOVES if "undone_at" in move.writes}
    assert {move for move, value in marked.items() if value is Value.NOW} == {
        member_moves.UNDO,
        member_moves.UNDO_EXCLUDED,
    }
    assert {move for move, value in marked.items() if value is None} == {
        move for move in member_moves.MOVES if move.writes.get("epoch") is Value.ONE_MORE
    }


@pytest.mark.parametrize("status", list(BatchStatus))
def test_u2_a_batch_that_had_ended_reads_as_what_is_left_of_it(status: BatchStatus) -> None:
    ended = {BatchStatus.COMPLETED: batch_moves.LOSE_ITS_LAST}
    undone = {BatchStatus.COMPLETED: batch_moves.BE_UNDONE, BatchStatus.FAILED: batch_moves.BE_UNDONE}
    as_it_is = Ignore(f"it is {status}")
    assert batch.decide_after_undo(status, [ACTIVE, REMOVED, GONE]) == Ignore("it still has active members")
    assert batch.decide_after_undo(status, [REMOVED, GONE]) == ended.get(status, as_it_is)
    assert batch.decide_after_undo(status, [REMOVED]) == undone.get(status, as_it_is)


def test_o14_members_and_init_are_retried_only_in_these_states() -> None:
    assert {"active", "completed", "failed"} == batch.MEMBERS_CAN_BE_RETRIED
    assert {"init_dispatched", "failed"} == batch.INIT_CAN_BE_RETRIED
