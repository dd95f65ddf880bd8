"""Pilots who have ended a phase, and phases in which too many have failed (rules C2 to C4)."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace

from matoolkit.announcing.cohorts import pilots_in
from matoolkit.announcing.gatekeeping import wake_batches
from matoolkit.domain.cohorts import Tally, too_many
from matoolkit.domain.doors import Door
from matoolkit.domain.gates import GateKind, Gates
from matoolkit.orchestrator.agenda import Agenda, Limited
from matoolkit.store.cohorts import (
    PilotTally,
    budget_gates_of,
    failures_in,
    note_pilots_done,
    pilot_tallies,
)
from matoolkit.store.gatekeeping import NewGate, shut_gate
from matoolkit.store.gates import gates_in_force
from matoolkit.store.phases import PhaseRow
from matoolkit.store.windows import note_woken

log = logging.getLogger(__name__)

_BY = "system"


def watch_budgets(agenda: Agenda) -> None:
    """Shut the gates of phases in which too many have failed, before anybody goes on."""
    failed, agenda.failed_in = agenda.failed_in, set()
    if not failed:
        return
    phases = [one for one in agenda.limited_phases() if one.phase.id in failed]
    tallies = pilot_tallies(agenda.tx, [one.phase.id for one in phases if one.rollout.pilot_first])
    _shut_exceeded(agenda, phases, tallies)


def look_after_pilots(agenda: Agenda) -> None:
    """Note which phases the pilots have ended, and which they have begun again; let the others begin, or nobody."""
    wanted = [one for one in agenda.limited_phases() if one.rollout.pilot_first and one.phase.member_count is not None]
    tallies = pilot_tallies(agenda.tx, [one.phase.id for one in wanted])
    # A batch without pilots has nobody to wait for.
    phases = [one for one in wanted if one.phase.id in tallies]
    if not phases:
        return
    over = {one.phase.id for one in phases if one.phase.pilot_done_at is None and _is_over(one.phase, tallies)}
    begun = {one.phase.id for one in phases if one.phase.pilot_done_at is not None and tallies[one.phase.id].open}
    note_pilots_done(agenda.tx, over, agenda.at)
    note_pilots_done(agenda.tx, begun, None)
    for one in phases:
        number, tally = one.phase.id, tallies[one.phase.id]
        if number in over | begun:
            done_at = agenda.at if number in over else None
            agenda.phases[number] = replace(one.phase, pilot_done_at=done_at)
        known = pilots_in(agenda.phases[number], tally)
        agenda.known_doors[number] = replace(agenda.doors([number])[number], pilots=known)
    _shut_exceeded(agenda, phases, tallies)
    _wake_others(agenda, [one for one in phases if one.phase.id in over])


def _wake_others(agenda: Agenda, over: Collection[Limited]) -> None:
    """Wake everybody who waited only for the pilots; after a soak the scheduler does it."""
    for one in over:
        log.info("the pilots have ended it", extra={"batch": one.phase.batch_id, "phase": one.phase.phase_name})
    shut = _shut_budgets(agenda)
    free = [one.phase for one in over if one.phase.id not in shut and one.rollout.soak is None]
    note_woken(agenda.tx, [phase.id for phase in free], agenda.at)
    if free:
        wake_batches(agenda.tx, agenda.publisher, {phase.batch_id for phase in free})


def _shut_exceeded(agenda: Agenda, phases: Collection[Limited], tallies: Mapping[int, PilotTally]) -> None:
    shut = _shut_budgets(agenda)
    watched = [one for one in phases if one.has_budget and one.phase.id not in shut]
    numbers = [one.phase.id for one in watched]
    failures = failures_in(agenda.tx, numbers)
    # The latest that a person opened says how many may have failed; one that opened by itself says nothing.
    gates = budget_gates_of(agenda.tx, numbers)
    opened = {gate.phase_execution_id: gate.allowed for gate in gates if gate.allowed is not None}
    exceeded = False
    for phase, rollout in watched:
        tally = _tally(phase, failures.get(phase.id, 0), tallies)
        if reason := too_many(phase.phase_name, rollout, phase.member_count or 0, tally, opened.get(phase.id)):
            _shut(agenda, phase, Door.SEND if rollout.on_exceeded == "stop" else Door.START, reason)
            exceeded = True
    if exceeded:
        agenda.gates = Gates(gates_in_force(agenda.tx, agenda.at))


def _shut(agenda: Agenda, phase: PhaseRow, reach: Door, reason: str) -> None:
    new = NewGate(
        kind=GateKind.BUDGET,
        reach=reach,
        worker_id=None,
        runbook_name=None,
        batch_id=phase.batch_id,
        phase_execution_id=phase.id,
        member_key=None,
        member_key_fold=None,
        shut_from=agenda.at,
        shut_until=None,
        shut_by=_BY,
        reason=reason,
    )
    number = shut_gate(agenda.tx, new)
    about = {"batch": phase.batch_id, "phase": phase.phase_name}
    log.warning("gate %s is shut: %s", number, reason, extra=about)


def _tally(phase: PhaseRow, failed: int, tallies: Mapping[int, PilotTally]) -> Tally:
    pilots = tallies.get(phase.id)
    if pilots is None:
        return Tally(failed)
    return Tally(failed, pilots.pilots, pilots.failed, pilots.through, _is_over(phase, tallies))


def _is_over(phase: PhaseRow, tallies: Mapping[int, PilotTally]) -> bool:
    return not pilots_in(phase, tallies[phase.id]).open


def _shut_budgets(agenda: Agenda) -> set[int | None]:
    return {gate.phase_execution_id for gate in agenda.gates.in_force if gate.kind is GateKind.BUDGET}
