"""Writes decisions about executed work in bulk, and notes what each move touches.

Consequences are noted only for rows that the guarded statement returned (rule M3): another process may have been
faster.
"""

from collections.abc import Mapping, Sequence

from matoolkit.announcing.messages import retry_check
from matoolkit.domain.moves.step import Fail, GiveUp, NoteLate, RetryLater, StepMove, Succeed
from matoolkit.ids import Kind
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.counting import count_outcomes
from matoolkit.orchestrator.definitions import steps_of_phase
from matoolkit.store.moves import move_steps
from matoolkit.store.narrow_executions import InitState, NextStep, RollbackState, State, StepState


def apply_moves(agenda: Agenda, kind: Kind, states: Mapping[int, State], moves: Sequence[StepMove]) -> set[int]:
    """Write moves of different rows, note what they touch, and return the rows that moved."""
    moved = set(move_steps(agenda.tx, kind, moves, agenda.at))
    count_outcomes(agenda, kind, states, moves, moved)
    for move in moves:
        if move.id in moved:
            _touch(agenda, kind, states[move.id], move)
    return moved


def _touch(agenda: Agenda, kind: Kind, state: State, move: StepMove) -> None:
    match move:
        case Succeed():
            touch_success(agenda, state)
        case Fail():
            touch_failure(agenda, state)
        case RetryLater(retry_after=retry_after):
            agenda.messages.append(retry_check(kind, state.id, state.attempt, not_before=retry_after))
        case NoteLate() | GiveUp():
            touch_freed(agenda, state)
        case _:
            pass


def touch_success(agenda: Agenda, state: State) -> None:
    """Note the consequences of a success."""
    # An earlier success leaves its member a later step that is open, so its phase cannot end.
    if isinstance(state, StepState) and state.step_index == len(steps_of_phase(agenda, state.phase_execution_id)) - 1:
        agenda.phases_to_end.add(state.phase_execution_id)
    touch_freed(agenda, state)


def touch_failure(agenda: Agenda, state: State | NextStep) -> None:
    """Note the consequences of a failure for good; after a failed rollback step the next one still runs."""
    match state:
        case StepState() | NextStep():
            agenda.failed_steps.append(state)
        case InitState():
            agenda.failed_inits.append(state)
        case RollbackState():
            touch_freed(agenda, state)


def touch_freed(agenda: Agenda, state: State) -> None:
    """Note that a member or an init has no job out any more."""
    match state:
        case StepState(batch_member_id=member):
            agenda.members_to_continue.add(member)
        case InitState(batch_id=batch):
            agenda.inits_to_continue.add(batch)
        case RollbackState(batch_member_id=None, batch_id=batch):
            agenda.inits_to_continue.add(batch)
            agenda.batches_to_end.add(batch)
        case RollbackState(batch_member_id=int(member), batch_id=batch):
            agenda.members_to_continue.add(member)
            agenda.batches_to_end.add(batch)
