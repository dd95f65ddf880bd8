"""Phases that are due: a step row for each member and step, slice by slice, and first steps sent (rules O2, O3, M4).

A slice is one commit. The same commit publishes a message for the rest; its id says where the slice ended. So a crash
loses neither the slice nor the rest. A phase that already has all its rows is processed in the same way: this wakes
members that waited for init or for the end of a hold.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from matoolkit.domain.messages import PhaseDue
from matoolkit.domain.states import UNFINISHED_BATCHES, PhaseStatus
from matoolkit.ids import continued, cursor_of
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import fields_from_step
from matoolkit.ports import Outgoing
from matoolkit.store.executions import NewExecution
from matoolkit.store.narrow_members import caught_up_members
from matoolkit.store.phases import PhaseRow, note_expanded
from matoolkit.store.steps import PhasePlace, insert_phase_steps, members_yet_to_begin

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Due:
    """The message that a phase is due, and its id."""

    message_id: str
    message: PhaseDue


def expand_phases(agenda: Agenda, dues: Sequence[Due]) -> None:
    """Give the next slice of members of each phase their steps, and let them begin."""
    wanted = [due for due in dues if _is_wanted(agenda, due)]
    # All due phases of a pile share one slice, so that the transaction stays small however many are due.
    size = max(1, agenda.limits.slice_size // max(1, len(wanted)))
    expanded: list[int] = []
    for due in wanted:
        phase = agenda.phases[due.message.phase_execution_id]
        members = caught_up_members(agenda.tx, phase.batch_id, after=cursor_of(due.message_id), limit=size)
        agenda.members_to_continue.update(members)
        # A phase that was expanded before has its rows: then the message only wakes members that waited.
        if phase.expanded_at is None:
            place = PhasePlace(phase.id, phase.runbook_version, agenda.place_of(phase))
            steps = [NewExecution(**fields) for fields in fields_from_phase(agenda, phase)]
            insert_phase_steps(agenda.tx, place, steps, members, agenda.at)
        # A full slice: there may be more members. The message for the rest leaves with this commit.
        if len(members) == size:
            agenda.messages.append(Outgoing(continued(due.message_id, members[-1]), due.message))
        else:
            expanded.append(phase.id)
    for number in note_expanded(agenda.tx, expanded, agenda.at):
        agenda.phases[number] = replace(agenda.phases[number], expanded_at=agenda.at)
        _wake_who_waited(agenda, agenda.phases[number])
    agenda.phases_to_end.update(expanded)


def _wake_who_waited(agenda: Agenda, phase: PhaseRow) -> None:
    """Let members go on that waited for the rows of this phase and got none."""
    others = [
        other.id
        for other in agenda.phases_of(phase.batch_id)
        if other.status is PhaseStatus.DISPATCHED and other.id != phase.id
    ]
    agenda.members_to_continue.update(members_yet_to_begin(agenda.tx, others, without=phase.id))


def fields_from_phase(agenda: Agenda, phase: PhaseRow) -> list[dict[str, Any]]:
    """Return, for each step of a phase, the fields that its executions take from the runbook."""
    runbook = agenda.version(phase.batch_id, phase.runbook_version).runbook
    steps = runbook.phases[phase.phase_index].steps
    return [fields_from_step(agenda, runbook, step, index) for index, step in enumerate(steps)]


def _is_wanted(agenda: Agenda, due: Due) -> bool:
    phase = agenda.phases.get(due.message.phase_execution_id)
    if phase is None:
        reason = "there is no such phase"
    elif phase.status is not PhaseStatus.DISPATCHED:
        reason = f"the phase is {phase.status}"
    elif agenda.batches[phase.batch_id].status not in UNFINISHED_BATCHES:
        reason = f"the batch is {agenda.batches[phase.batch_id].status}"
    else:
        return True
    log.info(
        "a phase-due is ignored: %s", reason, extra={"batch": due.message.batch_id, "phase": due.message.phase_name}
    )
    return False
