"""Decides what happens to a batch."""

from collections.abc import Collection

from matoolkit.domain.moves import Ignore, Move
from matoolkit.domain.moves.batch import (
    BE_UNDONE,
    CANCEL,
    COMPLETE,
    FAIL,
    HOLD,
    LOSE_ITS_LAST,
    REOPEN,
    REOPEN_INIT,
)
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus

# A batch that is under way is not reopened for a retry of its members, nor one that is held for that of its init.
MEMBERS_CAN_BE_RETRIED = REOPEN.from_states | {BatchStatus.ACTIVE}
INIT_CAN_BE_RETRIED = REOPEN_INIT.from_states | {BatchStatus.INIT_DISPATCHED}


def decide_failed_init(status: BatchStatus, *, is_rerun: bool) -> Move[BatchStatus] | Ignore:
    """Decide what happens to a batch whose init failed for good, after its rollback (rules O1, V5)."""
    if status is not BatchStatus.INIT_DISPATCHED:
        return Ignore(f"it is {status}")
    # People already depend on a batch that had begun, so a person decides whether it goes on without init.
    return HOLD if is_rerun else FAIL


def decide_end(
    status: BatchStatus, phases: Collection[PhaseStatus], members: Collection[MemberStatus]
) -> Move[BatchStatus] | Ignore:
    """Decide how a batch ends: its phases have ended, no member waits, and no compensation is open (O11)."""
    move = _ending(phases, members)
    return move if status is BatchStatus.ACTIVE else Ignore(f"it is {status}")


def decide_after_undo(status: BatchStatus, members: Collection[MemberStatus]) -> Move[BatchStatus] | Ignore:
    """Decide what becomes of a batch that had ended when members of it are undone; it stays ended (U1 and U2)."""
    if MemberStatus.ACTIVE in members:
        return Ignore("it still has active members")
    move = LOSE_ITS_LAST if MemberStatus.FAILED in members else BE_UNDONE
    return move if status in move.from_states else Ignore(f"it is {status}")


def _ending(phases: Collection[PhaseStatus], members: Collection[MemberStatus]) -> Move[BatchStatus]:
    if all(member is MemberStatus.REMOVED for member in members):
        return CANCEL
    # Whatever was done before, nobody came through (rule U1).
    if MemberStatus.ACTIVE not in members:
        return FAIL
    in_use = [phase for phase in phases if phase is not PhaseStatus.SUPERSEDED]
    # If a new version skipped all phases, the members are as they were.
    is_good = PhaseStatus.COMPLETED in in_use or all(phase is PhaseStatus.SKIPPED for phase in in_use)
    return COMPLETE if is_good else FAIL
