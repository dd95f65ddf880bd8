"""Who joins, leaves, moves and returns: what the source says now against who is in which batch (rules T5 and T6).

Pure: the same picture gives the same changes. Every case is a line of the table in docs/explanation/membership.md.
"""

from collections.abc import Collection

from matoolkit.domain.changes import Changes, Join, Refresh, Return
from matoolkit.domain.holds import Hold, HoldKind, removal_key, removal_limit
from matoolkit.domain.picture import BatchInFlight, Membership, Picture, View
from matoolkit.domain.remarks import Seen
from matoolkit.domain.rescheduling import reschedule_batches
from matoolkit.domain.states import MemberStatus


def decide(picture: Picture) -> Changes:
    """Compare the source with the batches, and say what changes."""
    changes, view = Changes(), View(picture)
    reschedule_batches(view, changes)
    judge_holds(view, changes)
    open_batches = [batch for batch in view.automated() if not view.is_closed(batch.id)]
    held = [batch for batch in open_batches if not _compare(batch, view, changes)]
    # Moves come after every batch was looked at: one that was just held takes nobody.
    for batch in open_batches:
        _move(batch, view, changes)
    moving = changes.moving
    changes.holds += [_removal_hold(batch, view, moving) for batch in held]
    _take_in(view, changes)
    return changes


def judge_holds(view: View, changes: Changes) -> None:
    """Look at batches that are held: everybody may be back, a person may have approved, or else they stay so."""
    for batch in view.automated():
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


def _compare(batch: BatchInFlight, view: View, changes: Changes) -> bool:
    """Compare a batch's members with their rows; says whether the batch goes on, or has to be held."""
    # What a person approved is not weighed again.
    gone = [] if batch.id in changes.releases else [one for one in view.active[batch.id] if view.is_gone(one)]
    unnoted = [member for member in gone if member.left_source_at is None]
    if view.has_started(batch.id):
        changes.of(batch.id).left_source += [member.id for member in unnoted]
    # Who left after T is not removed because a clock was put back.
    elif unnoted and not _removes(batch, unnoted, view, changes):
        return False
    for member in view.active[batch.id]:
        _look_at(member, view, changes)
    return True


def _removes(batch: BatchInFlight, gone: list[Membership], view: View, changes: Changes) -> bool:
    """Let members go whom the source no longer returns, unless there are too many; says whether the batch goes on."""
    staying = sum(1 for member in view.active[batch.id] if not view.is_elsewhere(member))
    is_returned = len(gone) < staying or view.start_of(batch.id) in view.returned_times
    if not is_returned and view.start_of(batch.id) - view.now <= view.picture.tick:
        for member in gone:
            changes.remarks.add(Seen.LEFT_WINDOW, member.member_key_fold, batch.id)
    elif is_returned and _is_allowed(batch, len(gone), staying, view):
        changes.of(batch.id).removals += [member.id for member in gone]
    else:
        view.close(batch.id)
        return False
    return True


def _is_allowed(batch: BatchInFlight, gone: int, staying: int, view: View) -> bool:
    """Tell whether so many may go without a person, those included who went lately (rule T6)."""
    before = view.removed_lately(batch)
    return before + gone <= removal_limit(view.picture.limit, before + staying)


def _look_at(member: Membership, view: View, changes: Changes) -> None:
    """Note that a member is back in the source, or that its row has changed; a row set aside says nothing."""
    candidate = view.candidates.get(member.member_key_fold)
    if candidate is None or candidate.batch_time != view.start_of(member.batch_id):
        return
    if member.left_source_at is not None:
        changes.of(member.batch_id).back_in_source.append(member.id)
    if candidate.fingerprint.hex() != member.data_hash:
        changes.of(member.batch_id).refreshes.append(Refresh(member.member_key_fold, member.id))


def _move(batch: BatchInFlight, view: View, changes: Changes) -> None:
    """Let members move who have another time now."""
    for member in view.active[batch.id]:
        if not view.is_elsewhere(member):
            continue
        if view.has_started(batch.id):
            changes.remarks.add(Seen.MOVED_AFTER_START, member.member_key_fold, batch.id)
        else:
            _place(member.member_key_fold, member, view, changes)


def _take_in(view: View, changes: Changes) -> None:
    """Find a place for everybody in the source who has none."""
    for key in view.candidates:
        if key in view.places:
            continue
        if key in view.in_manual:
            changes.remarks.add(Seen.IN_MANUAL_BATCH, key, view.in_manual[key])
        else:
            _place(key, None, view, changes)


def _place(key: str, leaves: Membership | None, view: View, changes: Changes) -> None:
    """Give somebody a place in the batch of its time, if that takes anybody; who has to wait for it leaves the old."""
    start = view.candidates[key].batch_time
    if start is None:
        return
    batch = view.batch_at(start)
    if start in view.picture.ended_times:
        changes.ignored += 1
        changes.remarks.add(Seen.TIME_HAS_ENDED, key, leaves.batch_id if leaves else None)
    elif start in view.claimed_times:
        changes.remarks.add(Seen.TIME_IS_CLAIMED, key)
        _leave(leaves, changes)
    elif batch is None:
        changes.new.setdefault(start, []).append(Join(key, leaves))
    elif batch.is_reopened:
        changes.remarks.add(Seen.BATCH_WAS_REOPENED, key, batch.id)
    elif view.is_closed(batch.id):
        changes.remarks.add(Seen.BATCH_IS_HELD, key, batch.id)
        _leave(leaves, changes)
    else:
        _enter(key, batch, leaves, view, changes)


def _leave(leaves: Membership | None, changes: Changes) -> None:
    """Let somebody wait outside: the old wave must not take along who was given another time."""
    if leaves is not None:
        changes.of(leaves.batch_id).movers.append(leaves)


def _enter(key: str, batch: BatchInFlight, leaves: Membership | None, view: View, changes: Changes) -> None:
    before = view.former.get((batch.id, key))
    if before is None:
        changes.of(batch.id).joins.append(Join(key, leaves))
    elif before.status is MemberStatus.REMOVED:
        changes.of(batch.id).returns.append(Return(key, before.id, leaves))
    else:
        changes.remarks.add(Seen.FAILED_THERE, key, batch.id)


def _removal_hold(batch: BatchInFlight, view: View, moving: Collection[int] = ()) -> Hold:
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
