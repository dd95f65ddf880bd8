"""Phases whose time has come: dispatched, or skipped if no active member goes through them (rule T8)."""

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial

from matoolkit.announcing.doors import load_doors
from matoolkit.announcing.phases import dispatch_and_announce
from matoolkit.announcing.versions import phases_to_read
from matoolkit.domain.gates import Gates, kept_phases
from matoolkit.domain.retrying import FirstPhase
from matoolkit.ports import Publisher
from matoolkit.scheduler.lateness import not_approved_in_time, past_their_limit, shut_late
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow, lock_batches
from matoolkit.store.enrolments import first_phases_of_active
from matoolkit.store.gates import gates_in_force
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
) -> int:
    """Dispatch due phases, in the order of the calendar and of the runbook, and return how many they were."""
    return _dispatch_page_by_page(store, publisher, confirm, at, partial(due_phases, runbook_name=runbook_name))


def dispatch_kept_phases(store: Store, publisher: Publisher, confirm: Confirm, at: datetime) -> int:
    """Dispatch phases that the last tick found due and that no gate keeps any more (rule G8).

    Phases that became due since wait for the next tick: it reads the source first. So do batches that may take another
    version first (rule V2).
    """
    look = partial(due_phases, was_kept=True)
    with store.reading() as tx:
        if not look(tx, at, 1):
            return 0
    return _dispatch_page_by_page(store, publisher, confirm, at, look)


def _dispatch_page_by_page(
    store: Store, publisher: Publisher, confirm: Confirm, at: datetime, look: Callable[..., list[PhaseRow]]
) -> int:
    dispatched, last, waiting = 0, None, set[int]()
    while True:
        with store.transaction() as tx:
            confirm(tx)
            found = look(tx, at, _AT_ONCE, after=last)
            if not found:
                return dispatched
            # Due phases are read again under the lock: a person may have held or cancelled a batch since.
            batches = {batch.id: batch for batch in lock_batches(tx, {phase.batch_id for phase in found})}
            due = [phase for phase in look(tx, at, _AT_ONCE, after=last) if phase.batch_id in batches]
            dispatched += _dispatch(tx, publisher, due, batches, waiting)
        last = found[-1]


def _dispatch(
    tx: Transaction,
    publisher: Publisher,
    due: Collection[PhaseRow],
    batches: dict[int, BatchRow],
    waiting: set[int],
) -> int:
    """Let phases begin that no gate keeps; `waiting` grows by batches in which one is kept.

    Gates are asked at the database's time, as for members: a clock ahead of it would begin a phase before its window.
    """
    at = tx.time()
    empty = _empty(tx, due)
    left_out = {phase.id for phase in empty}
    skip_phases(tx, left_out, at)
    for phase in empty:
        log.info("phase skipped: no member is left for it", extra=_about(phase, batches))
    there = phases_to_read(tx, [phase for phase in due if phase.id not in left_out], batches)
    wanting = [phase for phase in there if phase.batch_id not in waiting]
    doors = load_doors(tx, there, batches, at)
    late = [*past_their_limit(there, at), *not_approved_in_time(there, doors)]
    gates = Gates(shut_late(tx, late, batches, gates_in_force(tx, at)) if there else ())
    kept = kept_phases(gates, [doors[phase.id] for phase in wanting])
    waiting.update(phase.batch_id for phase in wanting if phase.id in kept)
    begun = dispatch_and_announce(tx, publisher, [phase for phase in wanting if phase.id not in kept], batches, at)
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
