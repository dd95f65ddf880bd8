"""Decisions about executed work, written in bulk, and what each move touches.

What follows from a move is noted only for rows that the guarded statement returned (rule M3).
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from matoolkit.domain import step as rules
from matoolkit.domain.messages import RetryCheck
from matoolkit.ids import Kind, retry_check_id
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import steps_of_phase
from matoolkit.ports import Outgoing
from matoolkit.records import record
from matoolkit.store import moves
from matoolkit.store.narrow_executions import InitState, NextStep, RollbackState, StepState

State: TypeAlias = StepState | InitState | RollbackState


@record
class Movement:
    """A move of one row, and what its answer brought."""

    state: State
    move: rules.Move
    result_json: str | None = None
    missing_outputs_json: str | None = None
    is_lost: bool = False

    @property
    def job_id(self) -> str:
        """The job that the move is about."""
        return self.state.job_id or ""


Writer: TypeAlias = Callable[[Agenda, Kind, Sequence[Movement]], list[int]]


def apply_moves(agenda: Agenda, kind: Kind, movements: Sequence[Movement]) -> set[int]:
    """Write moves of different rows, note what they touch, and return the rows that moved."""
    grouped: dict[Writer, list[Movement]] = {}
    for movement in movements:
        grouped.setdefault(_WRITERS[type(movement.move), movement.is_lost], []).append(movement)
    moved: set[int] = set()
    for write, group in grouped.items():
        moved.update(write(agenda, kind, group))
    for movement in movements:
        if movement.state.id in moved:
            _touch(agenda, kind, movement)
    return moved


def _touch(agenda: Agenda, kind: Kind, movement: Movement) -> None:
    match movement.move:
        case rules.Succeed():
            touch_success(agenda, movement.state)
        case rules.Fail() | rules.TimeOut():
            touch_failure(agenda, movement.state)
        case rules.RetryLater(retry_after=retry_after):
            number, attempt = movement.state.id, movement.state.attempt
            check = RetryCheck(number, kind)
            agenda.messages.append(Outgoing(retry_check_id(kind, number, attempt), check, not_before=retry_after))
        case rules.NoteLate():
            touch_freed(agenda, movement.state)
        case _:
            pass


def touch_success(agenda: Agenda, state: State) -> None:
    """Note what the success of work may set in motion."""
    if isinstance(state, StepState) and state.step_index == len(steps_of_phase(agenda, state.phase_execution_id)) - 1:
        agenda.phases_to_end.add(state.phase_execution_id)
    touch_freed(agenda, state)


def touch_failure(agenda: Agenda, state: State | NextStep) -> None:
    """Note what the failure of work for good may set in motion; one of a rollback is recorded, and the next runs."""
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
            agenda.members_to_move.add(member)
        case InitState(batch_id=batch):
            agenda.inits_to_move.add(batch)
        case RollbackState(batch_member_id=None, batch_id=batch):
            agenda.inits_to_move.add(batch)
            agenda.batches_to_end.add(batch)
        case RollbackState(batch_member_id=int(member), batch_id=batch):
            agenda.members_to_move.add(member)
            agenda.batches_to_end.add(batch)


def _succeed(agenda: Agenda, kind: Kind, group: Sequence[Movement]) -> list[int]:
    successes = [
        moves.Success(entry.state.id, entry.job_id, entry.result_json, entry.missing_outputs_json) for entry in group
    ]
    return moves.succeed(agenda.tx, kind, successes, agenda.at)


def _poll(agenda: Agenda, kind: Kind, group: Sequence[Movement]) -> list[int]:
    polls = [
        moves.Incomplete(entry.state.id, entry.job_id, entry.result_json, entry.move.poll_due_at)
        for entry in group
        if isinstance(entry.move, rules.PollLater)
    ]
    return moves.poll_later(agenda.tx, kind, polls, agenda.at)


def _time_out(agenda: Agenda, kind: Kind, group: Sequence[Movement]) -> list[int]:
    return moves.time_out_polls(agenda.tx, kind, _failures(group), agenda.at)


def _fail(agenda: Agenda, kind: Kind, group: Sequence[Movement]) -> list[int]:
    return moves.fail(agenda.tx, kind, _failures(group), agenda.at)


def _fail_lost(agenda: Agenda, kind: Kind, group: Sequence[Movement]) -> list[int]:
    return moves.fail_lost(agenda.tx, kind, _failures(group), agenda.at)


def _retry(agenda: Agenda, kind: Kind, group: Sequence[Movement]) -> list[int]:
    return moves.retry_later(agenda.tx, kind, _retries(group), agenda.at)


def _retry_lost(agenda: Agenda, kind: Kind, group: Sequence[Movement]) -> list[int]:
    return moves.retry_lost(agenda.tx, kind, _retries(group), agenda.at)


def _note_late(agenda: Agenda, kind: Kind, group: Sequence[Movement]) -> list[int]:
    late = [moves.LateResult(entry.state.id, entry.job_id, entry.result_json) for entry in group]
    return moves.note_late_results(agenda.tx, kind, late, agenda.at)


# By the move, and whether it is made because the job was lost.
_WRITERS: dict[tuple[type[rules.Move], bool], Writer] = {
    (rules.Succeed, False): _succeed,
    (rules.PollLater, False): _poll,
    (rules.TimeOut, False): _time_out,
    (rules.Fail, False): _fail,
    (rules.Fail, True): _fail_lost,
    (rules.RetryLater, False): _retry,
    (rules.RetryLater, True): _retry_lost,
    (rules.NoteLate, False): _note_late,
}


def _failures(group: Sequence[Movement]) -> list[moves.Failure]:
    return [
        moves.Failure(
            entry.state.id, entry.job_id, entry.move.problem.type, entry.move.problem.message, entry.result_json
        )
        for entry in group
        if isinstance(entry.move, rules.Fail | rules.TimeOut)
    ]


def _retries(group: Sequence[Movement]) -> list[moves.Retry]:
    return [
        moves.Retry(
            entry.state.id,
            entry.job_id,
            entry.move.problem.type,
            entry.move.problem.message,
            entry.move.retry_after,
            entry.move.retry_count,
            entry.move.throttled_since,
        )
        for entry in group
        if isinstance(entry.move, rules.RetryLater)
    ]
