"""Every combination of facts has a state, and the rules say which (rule U1)."""

from collections.abc import Iterator
from itertools import product

import pytest

from matoolkit.domain.memberstate import MemberFacts, state_of
from matoolkit.domain.states import BatchStatus, MemberState, MemberStatus

YES_OR_NO = (False, True)
ALL_FACTS = [
    MemberFacts(*facts)
    for facts in product(MemberStatus, BatchStatus, YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO)
]


def grid(**wanted: object) -> Iterator[MemberFacts]:
    """All combinations in which these facts are so."""
    return (facts for facts in ALL_FACTS if all(getattr(facts, name) == fact for name, fact in wanted.items()))


def states(**wanted: object) -> set[MemberState]:
    return {state_of(facts) for facts in grid(**wanted)}


def test_u1_every_combination_has_one_state_and_every_state_is_somewhere() -> None:
    assert {state_of(facts) for facts in ALL_FACTS} == set(MemberState)


def test_u1_whoever_is_being_undone_is_shown_so_whatever_else_is_true() -> None:
    assert states(is_being_undone=True) == {MemberState.UNDOING}


def test_u1_a_member_that_was_removed_left_or_was_undone() -> None:
    removed = {"status": MemberStatus.REMOVED, "is_being_undone": False}
    assert states(**removed, is_undone=True) == {MemberState.UNDONE}
    assert states(**removed, is_undone=False) == {MemberState.LEFT}


def test_u1_a_failed_member_is_failed_in_every_batch() -> None:
    assert states(status=MemberStatus.FAILED, is_being_undone=False) == {MemberState.FAILED}


def test_u1_who_is_active_in_a_cancelled_batch_was_stopped() -> None:
    active = {"status": MemberStatus.ACTIVE, "is_being_undone": False}
    assert states(**active, batch_status=BatchStatus.CANCELLED) == {MemberState.STOPPED}


@pytest.mark.parametrize("status", [status for status in BatchStatus if status is not BatchStatus.CANCELLED])
def test_u1_who_is_active_with_an_open_step_is_under_way(status: BatchStatus) -> None:
    active = {"status": MemberStatus.ACTIVE, "is_being_undone": False, "batch_status": status}
    assert states(**active, has_open_step=True) == {MemberState.UNDER_WAY}


def test_u1_due_work_that_has_no_steps_yet_is_under_way_in_an_active_batch() -> None:
    active = {"status": MemberStatus.ACTIVE, "is_being_undone": False, "batch_status": BatchStatus.ACTIVE}
    assert states(**active, is_caught_up=False) == {MemberState.UNDER_WAY}
    assert states(**active, is_phase_beginning=True) == {MemberState.UNDER_WAY}


@pytest.mark.parametrize("status", [BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED])
def test_u1_who_has_nothing_open_waits_for_its_batch_to_begin(status: BatchStatus) -> None:
    active = {"status": MemberStatus.ACTIVE, "is_being_undone": False, "has_open_step": False}
    assert states(**active, batch_status=status) == {MemberState.WAITING}


@pytest.mark.parametrize("status", [BatchStatus.ACTIVE, BatchStatus.COMPLETED, BatchStatus.FAILED])
def test_u1_who_has_nothing_open_waits_for_a_phase_to_come_or_is_done(status: BatchStatus) -> None:
    quiet = {"has_open_step": False, "is_caught_up": True, "is_phase_beginning": False, "is_being_undone": False}
    active = {"status": MemberStatus.ACTIVE, "batch_status": status, **quiet}
    assert states(**active, is_phase_ahead=True) == {MemberState.WAITING}
    assert states(**active, is_phase_ahead=False) == {MemberState.DONE}
