"""Phases whose time has come: dispatched, or skipped if no active member goes through them (rule T8)."""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial

from matoolkit.announcing.phases import dispatch_and_announce
from matoolkit.domain.retrying import FirstPhase
from matoolkit.ports import Publisher
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow, lock_batches
from matoolkit.store.enrolments import first_phases_of_active
from matoolkit.store.phases import PhaseRow, due_phases, phases_of_batches, skip_phases
from matoolkit.store.sql.transaction import Transaction
from matoolkit.telemetry import metering

_AT_ONCE = 1_000

log = logging.getLogger(__name__)


def dispatch_due_phases(
    store: Store,
    publisher: Publisher,
    confirm: Confirm,
    at: datetime,
    runbook_name: str | None = None,
    *,
    follows_active: bool = False,
) -> int:
    """Dispatch due phases, in the order of the calendar and of the runbook, and return how many they were.

    Between ticks only batches are looked at that follow the active version: the others may take it first (rule V2).
    """
    dispatched = 0
    while True:
        with store.transaction() as tx:
            confirm(tx)
            found = {phase.batch_id for phase in _due(tx, at, runbook_name, follows_active)}
            if not found:
                return dispatched
            # Due phases are read again under the lock: a person may have held or cancelled a batch since.
            batches = {batch.id: batch for batch in lock_batches(tx, found)}
            due = [phase for phase in _due(tx, at, runbook_name, follows_active) if phase.batch_id in batches]
            dispatched += _dispatch(tx, publisher, due, batches, at)


def _due(tx: Transaction, at: datetime, runbook_name: str | None, follows_active: bool) -> list[PhaseRow]:
    return due_phases(tx, at, _AT_ONCE, runbook_name, follows_active=follows_active)


def _dispatch(
    tx: Transaction, publisher: Publisher, due: Collection[PhaseRow], batches: dict[int, BatchRow], at: datetime
) -> int:
    empty = _empty(tx, due)
    left_out = {phase.id for phase in empty}
    skip_phases(tx, left_out, at)
    for phase in empty:
        log.info("phase skipped: no member is left for it", extra=_about(phase, batches))
    begun = dispatch_and_announce(tx, publisher, [phase for phase in due if phase.id not in left_out], batches, at)
    for phase in begun:
        _note_delay(tx, phase, batches, at)
        log.info("phase dispatched: it was due at %s", phase.due_at, extra=_about(phase, batches))
    return len(begun)


def _note_delay(tx: Transaction, phase: PhaseRow, batches: dict[int, BatchRow], at: datetime) -> None:
    if metering.is_on() and phase.due_at is not None:
        labels = {"runbook": batches[phase.batch_id].runbook_name}
        delay = max((at - phase.due_at).total_seconds(), 0.0)
        tx.on_commit.append(partial(metering.took, metering.PHASE_DELAY, delay, labels))


def _empty(tx: Transaction, due: Collection[PhaseRow]) -> list[PhaseRow]:
    """Return the phases that no active member goes through: all have left, or begin with a later one (rule O14)."""
    firsts = first_phases_of_active(tx, {phase.batch_id for phase in due})
    late = {batch_id for batch_id, first in firsts.items() if None not in first}
    places = _places(phases_of_batches(tx, late)) if late else {}
    return [phase for phase in due if _is_left_out(phase, firsts.get(phase.batch_id, set()), places)]


def _is_left_out(phase: PhaseRow, firsts: Collection[FirstPhase | None], places: Mapping[int, int]) -> bool:
    # A member without a `FirstPhase` goes through all phases, so no phase is left out.
    return None not in firsts and all(
        first is not None and first.leaves_out(phase.runbook_version, places[phase.id]) for first in firsts
    )


def _places(phases: Collection[PhaseRow]) -> dict[int, int]:
    """Return where phases stand among those of their version, by their ids."""
    return {
        phase.id: sum(
            other.order < phase.order
            for other in phases
            if (other.batch_id, other.runbook_version) == (phase.batch_id, phase.runbook_version)
        )
        for phase in phases
    }


def _about(phase: PhaseRow, batches: dict[int, BatchRow]) -> dict[str, object]:
    return {"runbook": batches[phase.batch_id].runbook_name, "batch": phase.batch_id, "phase": phase.phase_name}
