"""Loads the snapshot that membership is decided by (`domain/snapshot.py`), in a fixed number of queries (T5 to T7)."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from matoolkit.domain.holds import StandingHold
from matoolkit.domain.immediate import LastTime, start_of_interval
from matoolkit.domain.rows import Reading
from matoolkit.domain.snapshot import Before, KnownMember, Snapshot, UnfinishedBatch
from matoolkit.domain.states import ENDED_BATCHES, EXCLUDED, BatchStatus, MemberStatus, PhaseStatus
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.reading import AT_ONCE, in_slices
from matoolkit.store.batches import BatchRow, batches_at, has_batches, unfinished_batches
from matoolkit.store.enrolments import Enrolment, known_members, latest_enrolments, places_before
from matoolkit.store.exclusions import excluded_keys
from matoolkit.store.inclusions import waiting_inclusions
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.sql.transaction import Transaction

_NOWHERE = Before(frozenset(), is_done=False, was_undone=True)


def load_snapshot(
    tx: Transaction, name: str, runbook: Runbook, reading: Reading, now: datetime, interval: timedelta
) -> Snapshot:
    """Load everything that decides about the membership of a runbook's batches."""
    unfinished = unfinished_batches(tx, name)
    phases: dict[int, list[PhaseRow]] = {batch.id: [] for batch in unfinished}
    for phase in phases_of_batches(tx, phases):
        phases[phase.batch_id].append(phase)
    times = {candidate.batch_time for candidate in reading.candidates.values()}
    times.add(start_of_interval(now, interval))
    at_these_times = batches_at(tx, name, [time for time in times if time is not None])
    members = known_members(tx, [batch.id for batch in unfinished])
    unbegun = {batch.id for batch in unfinished if batch.is_unbegun}
    ended_times = {batch.batch_start_time for batch in at_these_times if batch.status in ENDED_BATCHES}
    has_history = has_batches(tx, name)
    newcomers = _newcomers(reading, members, unbegun, ended_times) if has_history else []
    return Snapshot(
        now=now,
        interval=interval,
        reading=reading,
        batches=[_unfinished(batch, phases[batch.id]) for batch in unfinished],
        members=members,
        ended_times={time for time in ended_times if time is not None},
        limit=runbook.safeguards.max_removals if runbook.safeguards else None,
        before=_before(tx, name, newcomers),
        included=waiting_inclusions(tx, name),
        excluded=excluded_keys(tx, name),
        takes_late_joiners=runbook.takes_late_joiners,
        has_history=has_history,
    )


def _newcomers(
    reading: Reading, members: Sequence[KnownMember], unbegun: Collection[int], ended: Collection[datetime | None]
) -> list[str]:
    """Return the keys that may join a batch, and the members of batches that have not begun."""
    active = [member for member in members if member.status is MemberStatus.ACTIVE]
    under_way = {member.member_key_fold for member in active if member.batch_id not in unbegun}
    # Members whose rows are set aside count too: they are still in their batch.
    waiting = {member.member_key_fold for member in active if member.batch_id in unbegun}
    rows = reading.candidates.items()
    coming = {key for key, row in rows if row.batch_time is not None and row.batch_time not in ended}
    return sorted(waiting | (coming - under_way))


def _before(tx: Transaction, name: str, keys: Sequence[str]) -> dict[str, Before]:
    """Load where newcomers are done, have failed or were undone, and at which times (rules T5 and U2)."""
    found: dict[str, Before] = {}
    for some in in_slices(keys, AT_ONCE):
        for place in places_before(tx, name, some):
            known = found.get(place.member_key_fold, _NOWHERE)
            times = known.times if place.source_time is None else known.times | {place.source_time}
            is_done = known.is_done or place.status is MemberStatus.ACTIVE
            was_undone = known.was_undone and place.undone_at is not None
            found[place.member_key_fold] = Before(times, is_done, was_undone)
    return found


def last_times(tx: Transaction, name: str, snapshot: Snapshot) -> dict[str, LastTime]:
    """Load the last membership of people who are in no unfinished batch (rule T7)."""
    present = {member.member_key_fold for member in snapshot.members if member.status is not MemberStatus.REMOVED}
    found: dict[str, LastTime] = {}
    for keys in in_slices(snapshot.reading.candidates.keys() - present, AT_ONCE):
        # Somebody who was excluded and is included again goes on.
        places = [place for place in latest_enrolments(tx, name, keys) if place.remove_reason != EXCLUDED]
        found |= {place.member_key_fold: _last_time(place) for place in places}
    return found


def _last_time(place: Enrolment) -> LastTime:
    succeeded = place.status is MemberStatus.ACTIVE and place.batch_status is BatchStatus.COMPLETED
    return LastTime(place.data_hash, place.batch_completed_at if succeeded else None)


def _unfinished(batch: BatchRow, phases: Sequence[PhaseRow]) -> UnfinishedBatch:
    pending = (phase.due_at for phase in phases if phase.status is PhaseStatus.PENDING)
    return UnfinishedBatch(
        id=batch.id,
        start=None if batch.is_manual else batch.batch_start_time,
        is_reopened=batch.reopened_at is not None,
        hold=standing_hold(batch),
        pending_due=tuple(due for due in pending if due is not None),
        has_cut_over=any(phase.offset_minutes <= 0 and phase.dispatched_at is not None for phase in phases),
        removals_approved_at=batch.removals_approved_at,
    )


def standing_hold(batch: BatchRow) -> StandingHold | None:
    """Return what a batch is held for, if it is."""
    if batch.hold_kind is None or batch.hold_key is None:
        return None
    return StandingHold(batch.hold_kind, batch.hold_key, is_approved=batch.approved_hold_key == batch.hold_key)
