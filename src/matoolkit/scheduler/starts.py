"""New starts, holds and releases of batches: what is decided about a batch as a whole (rules T5 and T6)."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import orjson

from matoolkit.announcing.delays import delays_of
from matoolkit.announcing.gatekeeping import wake_batches
from matoolkit.announcing.versions import runbooks_of
from matoolkit.announcing.waking import release_and_wake
from matoolkit.domain.changes import Changes
from matoolkit.domain.gates import GateKind
from matoolkit.domain.holds import Hold
from matoolkit.domain.lateness import limit_of
from matoolkit.domain.snapshot import UnfinishedBatch
from matoolkit.domain.states import ENDED_BATCHES, BatchStatus, PhaseStatus
from matoolkit.ports import Publisher
from matoolkit.runbook.offsets import Offset
from matoolkit.scheduler.leaving import remove_absent
from matoolkit.scheduler.snapshot import standing_hold
from matoolkit.scheduler.tallies import Tally
from matoolkit.store import batches as stored
from matoolkit.store import holds as stored_holds
from matoolkit.store.batches import BatchRow, Reschedule, lock_batches, note_removals_approved
from matoolkit.store.members import follow_new_starts
from matoolkit.store.phases import NewDueTime, phases_of_batches, reschedule_phases
from matoolkit.store.sql.transaction import Transaction

_MOST_TOLD = 20

log = logging.getLogger(__name__)


def restart_and_release(
    tx: Transaction,
    publisher: Publisher,
    changes: Changes,
    seen: Mapping[int, UnfinishedBatch],
    tally: Tally,
    at: datetime,
) -> bool:
    """Give batches their new starts and end holds, all together, because they depend on one another.

    Returns whether it was done: not if one of the batches has changed since it was read.
    """
    touched = changes.reschedules.keys() | changes.releases.keys()
    found = {batch.id: batch for batch in lock_batches(tx, touched)}
    if any(not _is_as_seen(found.get(batch_id), seen[batch_id]) for batch_id in touched):
        return False
    _reschedule(tx, changes.reschedules, found, tally, at)
    # What was signed off for this T counts again (rule S5).
    moved = (found[batch_id] for batch_id in changes.reschedules)
    wake_batches(tx, publisher, [batch.id for batch in moved if batch.status is BatchStatus.INIT_DISPATCHED])
    removals = [member for members in changes.approved_removals.values() for member in members]
    remove_absent(tx, publisher, removals, tally, at)
    note_removals_approved(tx, changes.approved_removals.keys(), at)
    tally.batches_released += len(release_and_wake(tx, publisher, changes.releases, at))
    for batch_id, why in changes.releases.items():
        log.info("hold ended: %s", why, extra={"runbook": tally.runbook_name, "batch": batch_id})
    return True


def hold(
    tx: Transaction, holds: Sequence[Hold], seen: Mapping[int, UnfinishedBatch], tally: Tally, at: datetime
) -> None:
    """Hold batches until a person approves exactly what they are held for.

    A batch that has changed since it was read is left for the next tick: it may be held for its init now.
    """
    same = {batch.id for batch in unchanged_batches(tx, [entry.batch_id for entry in holds], seen)}
    hold_new(tx, [entry for entry in holds if entry.batch_id in same], tally, at)


def unchanged_batches(
    tx: Transaction, batch_ids: Collection[int], seen: Mapping[int, UnfinishedBatch]
) -> list[BatchRow]:
    """Lock batches, and return those that have not changed since they were read."""
    return [batch for batch in lock_batches(tx, batch_ids) if _is_as_seen(batch, seen[batch.id])]


def hold_new(tx: Transaction, holds: Sequence[Hold], tally: Tally, at: datetime) -> None:
    """Hold batches that are locked, or that this transaction has made."""
    wanted = [
        stored_holds.Hold(entry.batch_id, GateKind(entry.kind), entry.reason, entry.key, _shown(entry))
        for entry in holds
    ]
    held = set(stored_holds.hold_batches(tx, wanted, at))
    tally.batches_held += len(held)
    for entry in holds:
        if entry.batch_id in held:
            about = {"runbook": tally.runbook_name, "batch": entry.batch_id}
            log.warning("held until a person approves: %s", entry.reason, extra=about)


def _reschedule(
    tx: Transaction, starts: Mapping[int, datetime], batches: Mapping[int, BatchRow], tally: Tally, at: datetime
) -> None:
    if not starts:
        return
    stored.reschedule_batches(tx, [Reschedule(batch_id, start) for batch_id, start in starts.items()])
    pending = [phase for phase in phases_of_batches(tx, starts) if phase.status is PhaseStatus.PENDING]
    runbooks = runbooks_of(tx, pending, batches)
    due = {phase.id: Offset(phase.offset_minutes).due_at(starts[phase.batch_id]) for phase in pending}
    limits = {phase.id: limit_of(due[phase.id], runbooks[phase.id].max_delay) for phase in pending}
    reschedule_phases(tx, [NewDueTime(phase_id, due_at, limits[phase_id]) for phase_id, due_at in due.items()])
    for delay in delays_of(tx, batches, pending, due, at)[:_MOST_TOLD]:
        about = {"runbook": tally.runbook_name, "batch": delay.phase.batch_id}
        log.warning("rescheduled, and %s", delay.in_words(), extra=about)
    follow_new_starts(tx, starts)
    tally.batches_rescheduled += len(starts)
    for batch_id, start in starts.items():
        about = {"runbook": tally.runbook_name, "batch": batch_id}
        log.info("rescheduled to %s: the source moves all its members there", start, extra=about)


def _is_as_seen(batch: BatchRow | None, seen: UnfinishedBatch) -> bool:
    return (
        batch is not None
        and batch.status not in ENDED_BATCHES
        and batch.batch_start_time == seen.start
        and standing_hold(batch) == seen.hold
        and (batch.reopened_at is not None) == seen.is_reopened
    )


def _shown(entry: Hold) -> str:
    """Write what a hold stands for, for people and for the next tick, which compares it."""
    start = entry.start.isoformat() if entry.start else None
    keys = {"memberKeys": entry.member_keys} if entry.member_keys else {}
    return orjson.dumps({"kind": entry.kind, "memberIds": entry.member_ids, "start": start, **keys}).decode()
