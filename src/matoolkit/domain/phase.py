"""Decides what happens to a phase of a batch."""

from matoolkit.domain.moves import Ignore, Move
from matoolkit.domain.moves.phase import COMPLETE, FAIL, REOPEN
from matoolkit.domain.states import PhaseStatus

_BEGUN = REOPEN.from_states | {PhaseStatus.DISPATCHED}


def decide_end(status: PhaseStatus, members_through: int) -> Move[PhaseStatus] | Ignore:
    """Decide how a phase ends whose steps have all ended, by how many members went through it (rule O11)."""
    move = COMPLETE if members_through else FAIL
    return move if status in move.from_states else Ignore(f"it is {status}")


def is_caught_up_with(status: PhaseStatus) -> bool:
    """Tell whether somebody who joins late has to go through a phase, skipped ones included (rule O10)."""
    return status in _BEGUN
