"""Phases and batches end when their parts have (rules O11 and O16)."""

import logging
from collections.abc import Callable, Collection
from datetime import datetime

from matoolkit.domain import batch as batches
from matoolkit.domain import phase as phases
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.store.batches import cancel_batches, complete_batches, fail_batches
from matoolkit.store.counts import member_counts, phase_outcomes
from matoolkit.store.phases import (
    batches_without_open_phases,
    complete_phases,
    fail_phases,
    phases_of_batches,
    phases_without_open_steps,
)
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)

_END_BATCHES: dict[BatchStatus, Callable[[Transaction, Collection[int], datetime], list[int]]] = {
    BatchStatus.COMPLETED: complete_batches,
    BatchStatus.CANCELLED: cancel_batches,
    BatchStatus.FAILED: fail_batches,
}


def end_phases(agenda: Agenda) -> None:
    """End the touched phases all of whose steps have ended."""
    touched, agenda.phases_to_end = agenda.phases_to_end, set()
    if not touched:
        return
    over = {phase.id: phase for phase in phases_without_open_steps(agenda.tx, touched)}
    if not over:
        return
    through = {outcome.phase_execution_id: outcome.members_through for outcome in phase_outcomes(agenda.tx, over)}
    decided = {number: phases.decide(over[number].status, phases.StepsEnded(through.get(number, 0))) for number in over}
    well = [number for number, decision in decided.items() if decision.status is PhaseStatus.COMPLETED]
    ended = complete_phases(agenda.tx, well, agenda.at)
    ended += fail_phases(agenda.tx, [number for number in over if number not in well], agenda.at)
    for number in ended:
        about = {"batch": over[number].batch_id, "phase": over[number].phase_name}
        log.info("the phase is %s", decided[number].status, extra=about)
        agenda.batches_to_end.add(over[number].batch_id)


def end_batches(agenda: Agenda) -> None:
    """End the touched batches all of whose phases have ended, in which nobody waits and nothing is undone."""
    touched, agenda.batches_to_end = agenda.batches_to_end, set()
    over = batches_without_open_phases(agenda.tx, touched) if touched else []
    if not over:
        return
    ended = phases_of_batches(agenda.tx, over)
    members: dict[int, list[MemberStatus]] = {}
    for count in member_counts(agenda.tx, over):
        members.setdefault(count.batch_id, []).append(count.status)
    outcomes: dict[BatchStatus, list[int]] = {}
    for number in over:
        statuses = [phase.status for phase in ended if phase.batch_id == number]
        event = batches.PhasesEnded(statuses, members.get(number, []))
        outcomes.setdefault(batches.decide(BatchStatus.ACTIVE, event).status, []).append(number)
    for outcome, ids in outcomes.items():
        for number in _END_BATCHES[outcome](agenda.tx, ids, agenda.at):
            log.info("the batch is %s", outcome, extra={"batch": number})
