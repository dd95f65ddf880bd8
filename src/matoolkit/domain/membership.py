"""Who joins, leaves, moves and returns: what the source says now against who is in which batch (rules T5 and T6).

Pure: the same snapshot gives the same changes. Every case is a line of the table in docs/explanation/membership.md.
"""

from collections.abc import Collection
from datetime import datetime

from matoolkit.domain.beginnings import judge_beginnings
from matoolkit.domain.changes import Changes, Join, Refresh, Return
from matoolkit.domain.holds import Hold, HoldKind, removal_key, removal_limit
from matoolkit.domain.remarks import Seen
from matoolkit.domain.rescheduling import reschedule_batches
from matoolkit.domain.snapshot import KnownMember, Snapshot, UnfinishedBatch, View

# Reasons that pass: a member with such a new time leaves its batch and waits outside.
_WAITING = frozenset({Seen.TIME_IS_CLAIMED, Seen.BATCH_IS_HELD})


def decide(snapshot: Snapshot) -> Changes:
    """Compare the source with the batches, and say what changes."""
    changes, view = Changes(), View(snapshot)
    reschedule_batches(view, changes)
    judge_holds(view, changes)
    open_batches = [batch for batch in view.begun() if not view.is_closed(batch.id)]
    held = [batch for batch in open_batches if not _compare(batch, view, changes)]
    # Movers come last, after every batch was looked at: a batch that was just held takes nobody.
    for batch in open_batches:
        _place_movers(batch, view, changes)
    for batch in view.unbegun():
        _let_go(batch, view, changes)
    moving = changes.moving
    changes.holds += [_removal_hold(batch, view, moving) for batch in held]
    _take_in(view, changes)
    judge_beginnings(view, changes)
    return changes


def judge_holds(view: View, changes: Changes) -> None:
    """Look at batches that are held: everybody may be back, a person may have approved, or else they stay so."""
    for batch in view.begun():
        if batch.hold is None or view.is_closed(batch.id) or batch.id in changes.reschedules:
            continue
        hold = _removal_hold(batch, view)
        if all(view.is_in_place(member) for member in view.active[batch.id]):
            changes.releases[batch.id] = "the source returns everybody again"
        elif batch.hold.is_approved and batch.hold.key == hold.key:
            changes.releases[batch.id] = "the removals were approved"
            changes.approved_removals[batch.id] = list(hold.member_ids)
        else:
            changes.holds.append(hold)
            view.close(batch.id)


def _compare(batch: UnfinishedBatch, view: View, changes: Changes) -> bool:
    """Compare a batch's members with their rows; says whether the batch goes on, or has to be held."""
    # A set that a person approved is not checked against the limit again.
    gone = [] if batch.id in changes.releases else [one for one in view.active[batch.id] if view.is_gone(one)]
    unnoted = [member for member in gone if member.left_source_at is None]
    if view.has_started(batch.id):
        changes.of(batch.id).left_source += [member.id for member in unnoted]
    # A member whose absence was noted after T is not removed when a clock is put back.
    elif unnoted and not _removes(batch, unnoted, view, changes):
        return False
    for member in view.active[batch.id]:
        _look_at(member, view, changes)
    return True


def _removes(batch: UnfinishedBatch, gone: list[KnownMember], view: View, changes: Changes) -> bool:
    """Remove members that the source no longer returns, unless there are too many; return whether the batch goes on."""
    staying = sum(1 for member in view.active[batch.id] if not view.is_elsewhere(member))
    is_returned = len(gone) < staying or view.start_of(batch.id) in view.returned_times
    if not is_returned and view.start_of(batch.id) - view.now <= view.snapshot.interval:
        for member in gone:
            changes.remarks.add(Seen.LEFT_WINDOW, member.member_key_fold, batch.id)
    elif is_returned and _is_allowed(batch, len(gone), staying, view):
        changes.of(batch.id).removals += [member.id for member in gone]
    else:
        view.close(batch.id)
        return False
    return True


def _is_allowed(batch: UnfinishedBatch, gone: int, staying: int, view: View) -> bool:
    """Tell whether this many may leave without a person, counting those of the last day (rule T6)."""
    before = view.removed_lately(batch)
    return before + gone <= removal_limit(view.snapshot.limit, before + staying)


def _look_at(member: KnownMember, view: View, changes: Changes) -> None:
    """Note that a member is back in the source, or that its row has changed; a row set aside says nothing."""
    candidate = view.candidates.get(member.member_key_fold)
    if candidate is None or candidate.batch_time != view.start_of(member.batch_id):
        return
    if member.left_source_at is not None:
        changes.of(member.batch_id).back_in_source.append(member.id)
    if candidate.fingerprint.hex() != member.data_hash:
        changes.of(member.batch_id).refreshes.append(Refresh(member.member_key_fold, member.id))


def _place_movers(batch: UnfinishedBatch, view: View, changes: Changes) -> None:
    """Place members who have another time now."""
    for member in view.active[batch.id]:
        if not view.is_elsewhere(member):
            continue
        if view.has_started(batch.id):
            changes.remarks.add(Seen.MOVED_AFTER_START, member.member_key_fold, batch.id)
        else:
            _place(member.member_key_fold, member, view, changes)


def _let_go(batch: UnfinishedBatch, view: View, changes: Changes) -> None:
    """Let members leave a batch that has not begun, wherever the source has them now; nothing is undone for them."""
    for member in view.active[batch.id]:
        if view.is_gone(member):
            changes.of(batch.id).dropouts.append(member.id)
        elif view.is_elsewhere(member):
            _place(member.member_key_fold, member, view, changes)
        else:
            _look_at(member, view, changes)


def _take_in(view: View, changes: Changes) -> None:
    """Find a place for everybody in the source who has none."""
    for key in view.candidates:
        if key in view.places:
            continue
        if view.is_excluded(key):
            changes.remarks.add(Seen.EXCLUDED, key)
        elif key in view.in_manual:
            changes.remarks.add(Seen.IN_MANUAL_BATCH, key, view.in_manual[key])
        else:
            _place(key, None, view, changes)


def _place(key: str, leaves: KnownMember | None, view: View, changes: Changes) -> None:
    """Place a member in the batch of its time, if that takes it; a member that has to wait leaves its old batch."""
    start = view.candidates[key].batch_time
    if start is None:
        return
    batch = view.batch_at(start)
    seen = _why_not(key, start, batch, view)
    if seen is None:
        _enter(key, start, batch, leaves, view, changes)
        return
    old = leaves.batch_id if leaves else None
    changes.remarks.add(seen, key, batch.id if batch else old)
    changes.ignored += seen is Seen.TIME_HAS_ENDED
    # The old wave must not cut over a member that was given another time, unless that time never takes it. A batch that
    # has not begun keeps only members with its time.
    if leaves and (seen in _WAITING or view.is_unbegun(leaves.batch_id)):
        changes.of(leaves.batch_id).movers.append(leaves)


def _why_not(key: str, start: datetime, batch: UnfinishedBatch | None, view: View) -> Seen | None:
    """Say why the batch of a time does not take somebody, if it does not."""
    if start in view.snapshot.ended_times:
        return Seen.TIME_HAS_ENDED
    if start in view.claimed_times:
        return Seen.TIME_IS_CLAIMED
    if batch is not None and batch.is_reopened:
        return Seen.BATCH_WAS_REOPENED
    if batch is not None and view.is_closed(batch.id):
        return Seen.BATCH_IS_HELD
    if batch is not None and view.has_failed_in(batch.id, key):
        return Seen.FAILED_THERE
    return None if view.is_included(key) else _why_not_by_itself(key, start, batch, view)


def _why_not_by_itself(key: str, start: datetime, batch: UnfinishedBatch | None, view: View) -> Seen | None:
    """Say why a time takes somebody only if a person includes it (T5, *taken before* and *into the past*; U2)."""
    if view.is_undone(key):
        return Seen.UNDONE
    if view.had(key, start):
        return Seen.TAKEN_BEFORE
    if batch is None or batch.is_unbegun:
        return None
    if key in view.snapshot.before and view.snapshot.before[key].is_done:
        return Seen.DONE_BEFORE
    is_late = view.is_late(start) and not view.snapshot.takes_late_joiners
    return Seen.START_HAS_PASSED if is_late else None


def _enter(
    key: str, start: datetime, batch: UnfinishedBatch | None, leaves: KnownMember | None, view: View, changes: Changes
) -> None:
    if batch is None:
        changes.new.setdefault(start, []).append(Join(key, leaves))
    elif former := view.former.get((batch.id, key)):
        changes.of(batch.id).returns.append(Return(key, former.id, leaves, is_undone=former.undone_at is not None))
    else:
        changes.of(batch.id).joins.append(Join(key, leaves))


def _removal_hold(batch: UnfinishedBatch, view: View, moving: Collection[int] = ()) -> Hold:
    """Return what a batch is held for, once those who move have moved."""
    members = [member for member in view.active[batch.id] if member.id not in moving]
    gone = sorted(member.id for member in members if view.is_gone(member))
    elsewhere = [member.id for member in members if view.is_elsewhere(member)]
    is_called_off = len(gone) == len(members) and view.start_of(batch.id) not in view.returned_times
    kind = HoldKind.CALLED_OFF if is_called_off else HoldKind.REMOVALS
    reason = _why_held(len(gone), len(elsewhere), len(members), is_called_off=is_called_off)
    if (before := view.removed_lately(batch)) and not is_called_off:
        reason += f"; {before} left in the last day"
    return Hold(batch.id, kind, removal_key(gone, elsewhere), reason, member_ids=tuple(gone))


def _why_held(gone: int, elsewhere: int, members: int, *, is_called_off: bool) -> str:
    if is_called_off:
        return f"the source no longer returns the batch, which has {members} members"
    if not gone:
        return f"the source gives another time to {elsewhere} of its {members} members"
    reason = f"the source no longer returns {gone} of its {members} members"
    return f"{reason} and gives another time to {elsewhere}" if elsewhere else reason
