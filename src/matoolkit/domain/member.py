"""What becomes of a member when something happens to it."""

from matoolkit.domain.moves import Ignore, Move
from matoolkit.domain.moves.member import FAIL
from matoolkit.domain.states import MemberStatus


def decide_failure(status: MemberStatus, epoch: int, failed_epoch: int) -> Move[MemberStatus] | Ignore:
    """Say what becomes of a member one of whose steps has failed for good, in one of its epochs."""
    if failed_epoch != epoch:
        return Ignore("it has started all over since")
    return FAIL if status in FAIL.from_states else Ignore(f"it is {status}")
