"""Who joins, leaves, moves and returns: what the source says now against who is in which batch (rules T5 and T6).

Pure: the same picture gives the same changes. Every case is a line of the table in docs/explanation/membership.md.
"""

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
    _judge_holds(view, changes)
    open_batches = [batch for batch in view.automated() if not view.is_closed(batch.id)]
    for batch in open_batches:
        _compare(batch, view, changes)
    # Moves come after every batch was looked at: one that was just held takes nobody.
    for batch in open_batches:
        _move(batch, view, changes)
    _take_in(view, changes)
    return changes


def _judge_holds(view: View, changes: Changes) -> None:
    """Look at batches that are held: everybody may be back, a person may have approved, or else they stay so."""
    for batch in view.automated():
        if batch.hold is None or view.is_closed(batch.id) or batch.id in changes.reschedules:
            continue
        gone = _gone(batch, view)
        elsewhere = [member for member in view.active[batch.id] if _is_elsewhere(member, batch, view)]
        hold = _removal_hold(batch, gone, elsewhere, view)
        if not (gone or elsewhere):
            changes.releases[batch.id] = "the source returns everybody again"
        elif batch.hold.is_approved and batch.hold.key == hold.key:
            changes.releases[batch.id] = "the removals were approved"
            changes.approved_removals[batch.id] = [member.id for member in gone]
        else:
            changes.holds.append(hold)
            view.close(batch.id)


def _compare(batch: BatchInFlight, view: View, changes: Changes) -> None:
    """Compare a batch's members with their rows: who is gone, who is back, whose data has changed."""
    # What a person approved is not weighed again.
    gone = [] if batch.id in changes.releases else _gone(batch, view)
    if view.has_started(batch.id):
        changes.of(batch.id).left_source += [member.id for member in gone if member.left_source_at is None]
    elif gone and not _removes(batch, gone, view, changes):
        return
    for member in view.active[batch.id]:
        _look_at(member, view, changes)


def _removes(batch: BatchInFlight, gone: list[Membership], view: View, changes: Changes) -> bool:
    """Let members go whom the source no longer returns, unless there are too many; says whether the batch goes on."""
    staying = sum(1 for member in view.active[batch.id] if not _is_elsewhere(member, batch, view))
    is_returned = len(gone) < staying or view.start_of(batch.id) in view.returned_times
    if not is_returned and view.start_of(batch.id) - view.now <= view.picture.tick:
        for member in gone:
            changes.remarks.add(Seen.LEFT_WINDOW, member.member_key_fold, batch.id)
    elif is_returned and len(gone) <= removal_limit(view.picture.limit, staying):
        changes.of(batch.id).removals += [member.id for member in gone]
    else:
        changes.holds.append(_removal_hold(batch, gone, [], view))
        view.close(batch.id)
        return False
    return True


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
        if not _is_elsewhere(member, batch, view):
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
    """Give somebody a place in the batch of its time, if that takes anybody."""
    start = view.candidates[key].batch_time
    if start is None:
        return
    batch = view.batch_at(start)
    if start in view.picture.ended_times:
        changes.ignored += 1
        changes.remarks.add(Seen.TIME_HAS_ENDED, key, leaves.batch_id if leaves else None)
    elif start in view.claimed_times:
        changes.remarks.add(Seen.TIME_IS_CLAIMED, key)
    elif batch is None:
        changes.new.setdefault(start, []).append(Join(key, leaves))
    elif view.is_closed(batch.id):
        changes.remarks.add(Seen.BATCH_WAS_REOPENED if batch.is_reopened else Seen.BATCH_IS_HELD, key, batch.id)
    else:
        _enter(key, batch, leaves, view, changes)


def _enter(key: str, batch: BatchInFlight, leaves: Membership | None, view: View, changes: Changes) -> None:
    before = view.former.get((batch.id, key))
    if before is None:
        changes.of(batch.id).joins.append(Join(key, leaves))
    elif before.status is MemberStatus.REMOVED:
        changes.of(batch.id).returns.append(Return(key, before.id, leaves))
    else:
        changes.remarks.add(Seen.FAILED_THERE, key, batch.id)


def _gone(batch: BatchInFlight, view: View) -> list[Membership]:
    return [member for member in view.active[batch.id] if view.is_gone(member)]


def _is_elsewhere(member: Membership, batch: BatchInFlight, view: View) -> bool:
    time = view.time_of(member)
    return time is not None and time != view.start_of(batch.id)


def _removal_hold(batch: BatchInFlight, gone: list[Membership], elsewhere: list[Membership], view: View) -> Hold:
    everybody = len(view.active[batch.id])
    ids, moving = (tuple(sorted(member.id for member in members)) for members in (gone, elsewhere))
    is_called_off = len(gone) == everybody and view.start_of(batch.id) not in view.returned_times
    if is_called_off:
        reason = f"the source no longer returns the batch, which has {everybody} members"
    else:
        reason = f"the source no longer returns {len(gone)} of its {everybody} members"
        reason += f" and gives another time to {len(moving)}" if moving else ""
    kind = HoldKind.CALLED_OFF if is_called_off else HoldKind.REMOVALS
    return Hold(batch.id, kind, removal_key(ids, moving), reason, member_ids=ids)
