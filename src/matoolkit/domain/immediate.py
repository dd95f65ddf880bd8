"""Runbooks whose members start at once: who is taken, and when somebody is taken again (rule T7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from matoolkit.domain.beginnings import begin_approved
from matoolkit.domain.changes import Changes, Join, Refresh, Return
from matoolkit.domain.membership import judge_holds
from matoolkit.domain.remarks import Seen
from matoolkit.domain.snapshot import Snapshot, View
from matoolkit.domain.states import MemberStatus

DEFAULT_COOLDOWN = timedelta(hours=24)

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LastTime:
    """The latest membership of somebody: its row then, and when it succeeded, if it did."""

    data_hash: str
    succeeded_at: datetime | None


def start_of_interval(now: datetime, tick: timedelta) -> datetime:
    """Round a time down to the interval of ticks: the T of those who are found in it."""
    return now - (now - _EPOCH) % tick


def decide_immediate(snapshot: Snapshot, before: Mapping[str, LastTime], cooldown: timedelta | None) -> Changes:
    """Take those who are in no batch that has not ended; absence is not removal.

    Somebody who was taken before is taken again when its row has changed, or some time after it succeeded: neither a
    source that lags nor a failure may loop.
    """
    changes, view = Changes(), View(snapshot)
    # A batch may have been held under a version whose members did not start at once: its hold has to end here.
    judge_holds(view, changes)
    begin_approved(view, changes)
    for members in view.active.values():
        for member in members:
            candidate = view.candidates.get(member.member_key_fold)
            is_open = not view.is_closed(member.batch_id)
            if candidate and is_open and candidate.fingerprint.hex() != member.data_hash:
                changes.of(member.batch_id).refreshes.append(Refresh(member.member_key_fold, member.id))
    busy = {member.member_key_fold for member in snapshot.members if member.status is not MemberStatus.REMOVED}
    for key, candidate in view.candidates.items():
        if view.is_excluded(key):
            changes.remarks.add(Seen.EXCLUDED, key)
        elif key in view.in_manual:
            changes.remarks.add(Seen.IN_MANUAL_BATCH, key, view.in_manual[key])
        elif key not in busy and _is_due(candidate.fingerprint.hex(), before.get(key), cooldown, snapshot.now):
            _take(key, view, changes)
    return changes


def _is_due(data_hash: str, before: LastTime | None, cooldown: timedelta | None, now: datetime) -> bool:
    if before is None or before.data_hash != data_hash:
        return True
    return before.succeeded_at is not None and now - before.succeeded_at >= (cooldown or DEFAULT_COOLDOWN)


def _take(key: str, view: View, changes: Changes) -> None:
    start = start_of_interval(view.now, view.snapshot.interval)
    batch = view.batch_at(start)
    if start in view.snapshot.ended_times:
        changes.remarks.add(Seen.INTERVAL_HAS_ENDED, key)
    elif batch is None:
        changes.new.setdefault(start, []).append(Join(key))
    elif view.is_closed(batch.id):
        changes.remarks.add(Seen.BATCH_IS_HELD, key, batch.id)
    elif (former := view.former.get((batch.id, key))) and former.undone_at is not None:
        changes.remarks.add(Seen.UNDONE_IN_INTERVAL, key, batch.id)
    elif former:
        changes.of(batch.id).returns.append(Return(key, former.id))
    else:
        changes.of(batch.id).joins.append(Join(key))
