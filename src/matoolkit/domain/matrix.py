"""What a cell of the matrix of a batch says: one member, one step, one byte.

The low four bits are the state, the high four the attempts, where 15 means 15 or more. The numbers of the states are
known to the page, which draws them, and to the statement that makes the bytes.
"""

from enum import IntEnum

from matoolkit.domain.states import ENDED_PHASES, MemberStatus, PhaseStatus, StepStatus
from matoolkit.records import record

MOST_ATTEMPTS = 15
SHIFT = 4
_STATE_BITS = 2**SHIFT - 1


class CellState(IntEnum):
    """The state of a step of a member, or why the member has no such step."""

    NOT_BEGUN = 0
    PENDING = 1
    DISPATCHED = 2
    POLLING = 3
    SUCCEEDED = 4
    FAILED = 5
    POLL_TIMEOUT = 6
    CANCELLED = 7
    UNDONE = 8
    DONE_BEFORE = 9
    NOT_CONCERNED = 10


STATE_OF_STEP = {status: CellState[status.name] for status in StepStatus}


class Standing(IntEnum):
    """What a member can still expect of phases in which it has no steps."""

    TAKES_PART = 0
    CATCHES_UP = 1
    GONE = 2


def standing_of(status: MemberStatus, *, is_caught_up: bool) -> Standing:
    """Say where a member stands."""
    if status is not MemberStatus.ACTIVE:
        return Standing.GONE
    return Standing.TAKES_PART if is_caught_up else Standing.CATCHES_UP


def without_step(phase: PhaseStatus, standing: Standing) -> CellState:
    """Say what the cells of a member are that has no steps in a phase."""
    if standing is Standing.GONE or (phase in ENDED_PHASES and standing is Standing.TAKES_PART):
        return CellState.NOT_CONCERNED
    return CellState.NOT_BEGUN


def state_in(cell: int) -> CellState:
    """Return the state that a byte says."""
    return CellState(cell & _STATE_BITS)


@record
class Beginning:
    """The phase of a version with which a member begins, because it had completed those before (rule O14)."""

    version: int
    place: int
