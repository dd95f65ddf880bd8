"""Batches that wait for a person before they begin (rule T5, *late* and *repeat*).

Such a batch was first seen after its T, or would migrate people again who are done or have failed elsewhere. Nothing
has happened yet, so members join, move and leave freely, and nothing has to be undone for those who leave.
"""

from collections.abc import Sequence
from datetime import datetime

from matoolkit.domain.changes import BatchChanges, Changes
from matoolkit.domain.holds import Hold, HoldKind, late_key, repeat_key
from matoolkit.domain.snapshot import UnfinishedBatch, View

_NO_CHANGES = BatchChanges()
_NO_BATCH_YET = 0


def judge_beginnings(view: View, changes: Changes) -> None:
    """Decide which new batches are held, and what happens to those that wait. All members are placed before this."""
    for start, joins in changes.new.items():
        hold = _hold(_NO_BATCH_YET, [join.key for join in joins], view, start)
        if hold is not None:
            changes.new_holds[start] = hold
    moving = changes.moving
    for batch in view.unbegun():
        _judge(batch, _people(batch, view, changes, moving), view, changes)


def begin_approved(view: View, changes: Changes) -> None:
    """Let approved batches begin under a version whose members have no times (rule T7)."""
    for batch in view.unbegun():
        if batch.hold is not None and batch.hold.is_approved:
            changes.beginnings[batch.id] = "it was approved"


def _people(batch: UnfinishedBatch, view: View, changes: Changes, moving: set[int]) -> list[str]:
    part = changes.batches.get(batch.id, _NO_CHANGES)
    leaving = moving.union(part.dropouts)
    staying = [member.member_key_fold for member in view.active[batch.id] if member.id not in leaving]
    return [*staying, *(someone.key for someone in part.coming)]


def _judge(batch: UnfinishedBatch, people: Sequence[str], view: View, changes: Changes) -> None:
    start = view.start_of(batch.id)
    if not people:
        # A batch whose T is ahead keeps its time for people who still come.
        if view.is_late(start):
            changes.emptied.append(batch.id)
        return
    hold = _hold(batch.id, people, view, start)
    if hold is None:
        changes.beginnings[batch.id] = "T is ahead, and nobody in it is done or has failed elsewhere"
    elif batch.hold is not None and batch.hold.is_approved and batch.hold.key == hold.key:
        changes.beginnings[batch.id] = "it was approved"
    else:
        changes.holds.append(hold)


def _hold(batch_id: int, people: Sequence[str], view: View, start: datetime) -> Hold | None:
    """Return what a batch with these people waits for, if it has to wait."""
    chosen = {key for key in people if key in view.candidates and view.is_included(key)}
    before = view.snapshot.before
    again = [key for key in people if key in before and not before[key].was_undone and key not in chosen]
    passed = f"{start:%Y-%m-%d %H:%M} UTC had passed when the batch was first seen"
    is_late = view.is_late(start) and len(chosen) < len(people)
    if again:
        reason = f"{len(again)} of its {len(people)} members are done or have failed in other batches"
        keys = tuple(sorted(again))
        return Hold(
            batch_id,
            HoldKind.REPEAT,
            repeat_key(keys),
            f"{reason}, and {passed}" if is_late else reason,
            start=start,
            member_keys=keys,
        )
    return Hold(batch_id, HoldKind.LATE, late_key(start), passed, start=start) if is_late else None
