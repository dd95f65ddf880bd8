"""What becomes of a batch."""

from collections.abc import Collection

from matoolkit.domain.moves import Ignore, Move
from matoolkit.domain.moves.batch import CANCEL, COMPLETE, FAIL, HOLD, REOPEN, REOPEN_INIT
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus

# A batch that is under way is not reopened for a retry of its members, nor one that is held for that of its init.
MEMBERS_CAN_BE_RETRIED = REOPEN.from_states | {BatchStatus.ACTIVE}
INIT_CAN_BE_RETRIED = REOPEN_INIT.from_states | {BatchStatus.INIT_DISPATCHED}


def decide_failed_init(status: BatchStatus, *, is_rerun: bool) -> Move[BatchStatus] | Ignore:
    """Say what becomes of a batch whose init has failed for good, after what was to be undone is (rules O1, V5)."""
    if status is not BatchStatus.INIT_DISPATCHED:
        return Ignore(f"it is {status}")
    # People already depend on a batch that was under way; whether it goes on without init, a person says.
    return HOLD if is_rerun else FAIL


def decide_end(
    status: BatchStatus, phases: Collection[PhaseStatus], members: Collection[MemberStatus]
) -> Move[BatchStatus] | Ignore:
    """Say how a batch ends all of whose phases have ended, where nobody waits and nothing is being undone (O11)."""
    move = _ending(phases, members)
    return move if status is BatchStatus.ACTIVE else Ignore(f"it is {status}")


def _ending(phases: Collection[PhaseStatus], members: Collection[MemberStatus]) -> Move[BatchStatus]:
    in_use = [phase for phase in phases if phase is not PhaseStatus.SUPERSEDED]
    if PhaseStatus.COMPLETED in in_use:
        return COMPLETE
    if all(member is MemberStatus.REMOVED for member in members):
        return CANCEL
    # Phases that a new version passed by left their members as they were; the others were passed by for want of any.
    if all(phase is PhaseStatus.SKIPPED for phase in in_use) and MemberStatus.ACTIVE in members:
        return COMPLETE
    return FAIL
