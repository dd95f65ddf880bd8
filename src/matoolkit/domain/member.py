"""Decides what happens to a member."""

from matoolkit.domain.moves import Ignore, Move
from matoolkit.domain.moves.member import FAIL
from matoolkit.domain.states import MemberStatus


def decide_failure(status: MemberStatus, epoch: int, failed_epoch: int) -> Move[MemberStatus] | Ignore:
    """Decide what happens to a member when a step of one of its epochs has failed for good."""
    if failed_epoch != epoch:
        return Ignore("it has started all over since")
    return FAIL if status in FAIL.from_states else Ignore(f"it is {status}")
