"""Phases and batches end when their parts have (rules O11 and O16)."""

import logging
from collections.abc import Callable, Collection
from datetime import datetime

from matoolkit.domain import batch as batches
from matoolkit.domain import phase as phases
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.orchestrator.agenda import Pile
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


def end_phases(pile: Pile) -> None:
    """End the touched phases all of whose steps have ended."""
    touched, pile.phases_to_end = pile.phases_to_end, set()
    if not touched:
        return
    over = {phase.id: phase for phase in phases_without_open_steps(pile.tx, touched)}
    if not over:
        return
    through = {outcome.phase_execution_id: outcome.members_through for outcome in phase_outcomes(pile.tx, over)}
    decided = {number: phases.decide(over[number].status, phases.StepsEnded(through.get(number, 0))) for number in over}
    well = [number for number, decision in decided.items() if decision.status is PhaseStatus.COMPLETED]
    ended = complete_phases(pile.tx, well, pile.at)
    ended += fail_phases(pile.tx, [number for number in over if number not in well], pile.at)
    for number in ended:
        about = {"batch": over[number].batch_id, "phase": over[number].phase_name}
        log.info("the phase is %s", decided[number].status, extra=about)
        pile.batches_to_end.add(over[number].batch_id)


def end_batches(pile: Pile) -> None:
    """End the touched batches all of whose phases have ended, in which nobody waits and nothing is undone."""
    touched, pile.batches_to_end = pile.batches_to_end, set()
    over = batches_without_open_phases(pile.tx, touched) if touched else []
    if not over:
        return
    ended = phases_of_batches(pile.tx, over)
    members: dict[int, list[MemberStatus]] = {}
    for count in member_counts(pile.tx, over):
        members.setdefault(count.batch_id, []).append(count.status)
    outcomes: dict[BatchStatus, list[int]] = {}
    for number in over:
        statuses = [phase.status for phase in ended if phase.batch_id == number]
        event = batches.PhasesEnded(statuses, members.get(number, []))
        outcomes.setdefault(batches.decide(BatchStatus.ACTIVE, event).status, []).append(number)
    for outcome, ids in outcomes.items():
        for number in _END_BATCHES[outcome](pile.tx, ids, pile.at):
            log.info("the batch is %s", outcome, extra={"batch": number})
