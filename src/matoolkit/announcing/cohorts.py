"""Pilots, budgets and places of phases: chosen and counted when phases begin, and shown to gates (rules C1 to C5)."""

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import orjson

from matoolkit.domain.cohorts import Pilots, Places, number_of_pilots, pilots_by_column
from matoolkit.domain.doors import PhaseDoor
from matoolkit.domain.states import PhaseStatus
from matoolkit.runbook.model import Pilot, Runbook
from matoolkit.store.cohorts import (
    MembersOfPhase,
    PilotTally,
    data_of_active_members,
    first_active_members,
    make_pilots,
    note_members_of_phases,
    pilot_tallies,
)
from matoolkit.store.counts import active_counts
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.places import places_taken
from matoolkit.store.sql.transaction import Transaction
from matoolkit.words import counted

_AT_ONCE = 1_000

log = logging.getLogger(__name__)


def with_cohorts(tx: Transaction, doors: Mapping[int, PhaseDoor], phases: Collection[PhaseRow]) -> dict[int, PhaseDoor]:
    """Return phases as gates see them with what their rollouts rest on; asked for only where they have one.

    A phase that never began for all, and was opened for a person's retry of some, has no pilots and no budget.
    """
    under_way = [phase for phase in phases if phase.status is PhaseStatus.DISPATCHED]
    first = [phase for phase in under_way if _goes_first(doors[phase.id]) and phase.member_count is not None]
    tallies = pilot_tallies(tx, [phase.id for phase in first])
    found = dict(doors)
    for phase in first:
        found[phase.id] = replace(found[phase.id], pilots=pilots_in(phase, tallies.get(phase.id)))
    limited = {phase.id: limit for phase in under_way if (limit := _most_at_once(doors[phase.id])) is not None}
    taken = places_taken(tx, limited)
    for number, limit in limited.items():
        found[number] = replace(found[number], places=Places(limit, max(0, limit - taken.get(number, 0))))
    return found


def pilots_in(phase: PhaseRow, tally: PilotTally | None) -> Pilots:
    """Say how far pilots are in a phase; none has ended it while members have yet to get their steps."""
    if tally is None:
        return Pilots(0, 0, phase.pilot_done_at)
    return Pilots(tally.pilots, tally.pilots if phase.expanded_at is None else tally.open, phase.pilot_done_at)


def _goes_first(door: PhaseDoor) -> bool:
    """Tell whether the pilots go first in a phase."""
    return door.rules.rollout is not None and door.rules.rollout.pilot_first


def _most_at_once(door: PhaseDoor) -> int | None:
    """Return how many members may be in a phase at once, if the runbook limits that."""
    return None if door.rules.rollout is None else door.rules.rollout.at_once


def begin_cohorts(tx: Transaction, begun: Collection[PhaseRow], runbooks: Mapping[int, Runbook]) -> None:
    """Choose the pilots of batches whose first phase begins, and note how many members phases begin with.

    `runbooks` are those of the phases, by the phases' ids.
    """
    with_rollout = [phase for phase in begun if runbooks[phase.id].phases[phase.phase_index].rollout is not None]
    if with_rollout:
        active = active_counts(tx, {phase.batch_id for phase in with_rollout})
        note_members_of_phases(tx, [MembersOfPhase(phase.id, active.get(phase.batch_id, 0)) for phase in with_rollout])
    rules = {phase.batch_id: pilot for phase in begun if (pilot := runbooks[phase.id].pilot) is not None}
    for batch_id in _beginning(tx, rules, {phase.id for phase in begun}):
        pilots = list(_pilots(tx, batch_id, rules[batch_id]))
        make_pilots(tx, pilots)
        log.info("the batch begins with %s", counted(len(pilots), "pilot"), extra={"batch": batch_id})


def _beginning(tx: Transaction, batch_ids: Collection[int], begun: Collection[int]) -> list[int]:
    """Return the batches that begin with these phases: no other one began before."""
    if not batch_ids:
        return []
    others = [phase for phase in phases_of_batches(tx, batch_ids) if phase.id not in begun]
    under_way = {phase.batch_id for phase in others if phase.dispatched_at is not None}
    return sorted(set(batch_ids) - under_way)


def _pilots(tx: Transaction, batch_id: int, pilot: Pilot) -> Iterator[int]:
    if pilot.column is None:
        active = active_counts(tx, [batch_id]).get(batch_id, 0)
        yield from first_active_members(tx, batch_id, limit=number_of_pilots(pilot, active))
        return
    after = 0
    while members := data_of_active_members(tx, batch_id, after=after, limit=_AT_ONCE):
        yield from pilots_by_column(pilot.column, ((one.id, orjson.loads(one.data_json)) for one in members))
        after = members[-1].id
