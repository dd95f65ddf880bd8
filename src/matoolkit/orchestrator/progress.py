"""Members go on: `domain/progress.py` decides what each does next, and it is sent in bulk (rules O3, O5, O9)."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from matoolkit.announcing.places import holders_of
from matoolkit.announcing.situations import situation_of, unexpanded_before
from matoolkit.domain.progress import Compensate, Do, Refuse, next_of
from matoolkit.errors import NotApproved
from matoolkit.ids import Kind
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.dispatching import fail_unsent, send_first
from matoolkit.store.narrow_executions import (
    NextStep,
    RollbackState,
    next_steps_of_members,
    unfinished_rollbacks_of_members,
)
from matoolkit.store.narrow_members import members_in_full
from matoolkit.store.steps import members_in_phases

StateT = TypeVar("StateT", NextStep, RollbackState)


def continue_members(agenda: Agenda) -> None:
    """Send the next job of each touched member, if it can be sent now."""
    # Emptied first: a step that cannot be sent fails, and its member is touched again for the next round.
    touched, agenda.members_to_continue = agenda.members_to_continue, set()
    steps = {step.id: step for step in next_steps_of_members(agenda.tx, touched)}
    rollbacks = {rollback.id: rollback for rollback in unfinished_rollbacks_of_members(agenda.tx, touched)}
    steps_of, rollbacks_of = _by_member(steps.values()), _by_member(rollbacks.values())
    members = {member.id: member for member in members_in_full(agenda.tx, steps_of.keys() | rollbacks_of.keys())}
    phases = agenda.doors({step.phase_execution_id for step in steps.values()})
    holders = holders_of(agenda.tx, phases, steps.values())
    to_do: list[NextStep] = []
    to_undo: list[RollbackState] = []
    refused: dict[NextStep, NotApproved] = {}
    for member in members.values():
        mine, undoing = steps_of.get(member.id, ()), rollbacks_of.get(member.id, ())
        places = {step.phase_execution_id for step in mine if holders.has_place(step)}
        batch = agenda.batches[member.batch_id]
        match next_of(situation_of(batch, member, agenda.gates, mine, undoing, phases, places)):
            case Do(number):
                to_do.append(steps[number])
            case Compensate(number):
                to_undo.append(rollbacks[number])
            case Refuse(number, by, reason):
                refused[steps[number]] = NotApproved(member.member_key, by, reason)
            case _:
                pass
    send_first(agenda, Kind.ROLLBACK, to_undo, members)
    send_first(agenda, Kind.STEP, _in_turn(agenda, to_do), members, holders)
    fail_unsent(agenda, Kind.STEP, list(refused), {step.id: error for step, error in refused.items()})


def _in_turn(agenda: Agenda, steps: Sequence[NextStep]) -> Sequence[NextStep]:
    """Leave out first steps of members who have no rows yet in an earlier phase that is due (rule O3).

    Messages may come in another order than they were sent. Such a member is woken when its rows are created.
    """
    first = [step for step in steps if step.step_index == 0]
    later = [agenda.phases[number] for number in {one.phase_execution_id for one in first}]
    earlier = {phase.id: unexpanded_before(agenda.phases_of(phase.batch_id), phase) for phase in later}
    phases = {phase for found in earlier.values() for phase in found}
    if not phases:
        return steps
    there = members_in_phases(agenda.tx, phases, {step.batch_member_id for step in first})
    early = {
        step.id
        for step in first
        if any((phase, step.batch_member_id) not in there for phase in earlier[step.phase_execution_id])
    }
    return [step for step in steps if step.id not in early]


def _by_member(states: Iterable[StateT]) -> dict[int, list[StateT]]:
    found: dict[int, list[StateT]] = {}
    for state in states:
        if state.batch_member_id is not None:
            found.setdefault(state.batch_member_id, []).append(state)
    return found
