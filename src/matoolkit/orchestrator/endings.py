"""Phases and batches end when their parts have (rules O11 and O16)."""

import logging

from matoolkit.domain.batch import decide_end as decide_batch_end
from matoolkit.domain.moves import Ignore, Move
from matoolkit.domain.phase import decide_end as decide_phase_end
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.store.batches import move_batches
from matoolkit.store.counts import member_counts, phase_outcomes
from matoolkit.store.phases import (
    batches_without_open_phases,
    move_phases,
    phases_of_batches,
    phases_without_open_steps,
)

log = logging.getLogger(__name__)


def end_phases(agenda: Agenda) -> None:
    """End the touched phases whose steps have all ended."""
    touched, agenda.phases_to_end = agenda.phases_to_end, set()
    if not touched:
        return
    # Asked under the lock of the batch: the second of two last results then sees the first (rule O11).
    over = {phase.id: phase for phase in phases_without_open_steps(agenda.tx, touched)}
    if not over:
        return
    through = {outcome.phase_execution_id: outcome.members_through for outcome in phase_outcomes(agenda.tx, over)}
    decided: dict[Move[PhaseStatus], list[int]] = {}
    for number, phase in over.items():
        move = decide_phase_end(phase.status, through.get(number, 0))
        if not isinstance(move, Ignore):
            decided.setdefault(move, []).append(number)
    for move, ids in decided.items():
        for number in move_phases(agenda.tx, move, ids, agenda.at):
            about = {"batch": over[number].batch_id, "phase": over[number].phase_name}
            log.info("the phase is %s", move.to_state, extra=about)
            agenda.batches_to_end.add(over[number].batch_id)


def end_batches(agenda: Agenda) -> None:
    """End the touched batches whose phases have all ended, if no member waits and no compensation is open."""
    touched, agenda.batches_to_end = agenda.batches_to_end, set()
    over = batches_without_open_phases(agenda.tx, touched) if touched else []
    if not over:
        return
    ended = phases_of_batches(agenda.tx, over)
    members: dict[int, list[MemberStatus]] = {}
    for count in member_counts(agenda.tx, over):
        members.setdefault(count.batch_id, []).append(count.status)
    decided: dict[Move[BatchStatus], list[int]] = {}
    for number in over:
        statuses = [phase.status for phase in ended if phase.batch_id == number]
        move = decide_batch_end(agenda.batches[number].status, statuses, members.get(number, []))
        if not isinstance(move, Ignore):
            decided.setdefault(move, []).append(number)
    for move, ids in decided.items():
        for number in move_batches(agenda.tx, move, ids, agenda.at):
            log.info("the batch is %s", move.to_state, extra={"batch": number})
