"""Phases that are due: a step row for each member and step, slice by slice, and first steps sent (rules O2, O3, M4).

A slice is one commit. What is left goes on in a message of its own, which says in its id how far this one came. A phase
that has all its rows already is gone through in the same way: members that waited, for a hold to end or for init, are
woken by it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matoolkit.domain.messages import PhaseDue
from matoolkit.domain.states import UNFINISHED_BATCHES, PhaseStatus
from matoolkit.ids import continued, cursor_of
from matoolkit.orchestrator.agenda import Pile
from matoolkit.orchestrator.definitions import work_of
from matoolkit.ports import Outgoing
from matoolkit.store.executions import Work
from matoolkit.store.narrow_members import caught_up_members
from matoolkit.store.phases import PhaseRow, note_expanded
from matoolkit.store.steps import PhasePlace, insert_phase_steps, members_yet_to_begin

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Due:
    """The news that a phase is due, and the id of the message that brought it."""

    message_id: str
    message: PhaseDue


def expand_phases(pile: Pile, dues: Sequence[Due]) -> None:
    """Give the next slice of members of each phase their steps, and let them begin."""
    wanted = [due for due in dues if _is_wanted(pile, due)]
    size = max(1, pile.limits.slice_size // max(1, len(wanted)))
    expanded: list[int] = []
    for due in wanted:
        phase = pile.phases[due.message.phase_execution_id]
        members = caught_up_members(pile.tx, phase.batch_id, after=cursor_of(due.message_id), limit=size)
        pile.members_to_move.update(members)
        if phase.expanded_at is None:
            place = PhasePlace(phase.id, phase.runbook_version, pile.place_of(phase))
            insert_phase_steps(pile.tx, place, works_of_phase(pile, phase), members, pile.at)
        if len(members) == size:
            pile.messages.append(Outgoing(continued(due.message_id, members[-1]), due.message))
        else:
            expanded.append(phase.id)
    for number in note_expanded(pile.tx, expanded, pile.at):
        pile.phases[number] = replace(pile.phases[number], expanded_at=pile.at)
        _wake_who_waited(pile, pile.phases[number])
    pile.phases_to_end.update(expanded)


def _wake_who_waited(pile: Pile, phase: PhaseRow) -> None:
    """Let those go on with other phases who waited to see whether this one has steps for them, and it has none."""
    others = [
        other.id
        for other in pile.phases_of(phase.batch_id)
        if other.status is PhaseStatus.DISPATCHED and other.id != phase.id
    ]
    pile.members_to_move.update(members_yet_to_begin(pile.tx, others, without=phase.id))


def works_of_phase(pile: Pile, phase: PhaseRow) -> list[Work]:
    """Return what the rows of a phase are made from."""
    runbook = pile.version(phase.batch_id, phase.runbook_version).runbook
    steps = runbook.phases[phase.phase_index].steps
    return [Work(**work_of(pile, runbook, step, index)) for index, step in enumerate(steps)]


def _is_wanted(pile: Pile, due: Due) -> bool:
    phase = pile.phases.get(due.message.phase_execution_id)
    if phase is None:
        reason = "there is no such phase"
    elif phase.status is not PhaseStatus.DISPATCHED:
        reason = f"the phase is {phase.status}"
    elif pile.batches[phase.batch_id].status not in UNFINISHED_BATCHES:
        reason = f"the batch is {pile.batches[phase.batch_id].status}"
    else:
        return True
    log.info(
        "a phase-due is ignored: %s", reason, extra={"batch": due.message.batch_id, "phase": due.message.phase_name}
    )
    return False
