"""Batches whose members all have one other time now: the batch itself gets it (rule T5).

All are decided together, so that a whole calendar can slip by a week: a time counts as free when the batch that holds
it leaves it. A surprising reschedule is held instead.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from matoolkit.domain.changes import Changes
from matoolkit.domain.holds import Hold, HoldKind, reschedule_key
from matoolkit.domain.snapshot import UnfinishedBatch, View


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Whether a batch gets its new start; `why_not` is for people, and empty when it does."""

    why_not: str | None


_APPLIED = _Verdict(None)


_Wishes: TypeAlias = dict[int, tuple[UnfinishedBatch, datetime]]
# None: the batch keeps its start, and its members move one by one.
_Verdicts: TypeAlias = dict[int, _Verdict | None]


def reschedule_batches(view: View, changes: Changes) -> None:
    """Give batches their new starts, or hold them; the others' members move one by one."""
    wishes = _wishes(view)
    verdicts: _Verdicts = {}
    for batch_id in wishes:
        _judge(batch_id, wishes, verdicts, view)
    for batch_id, (batch, start) in wishes.items():
        verdict = verdicts[batch_id]
        if verdict is None:
            continue
        if verdict.why_not is None:
            changes.reschedules[batch_id] = start
            if batch.hold and not batch.is_unbegun:
                changes.releases[batch_id] = "its new start was approved"
        else:
            key = reschedule_key(start)
            changes.holds.append(Hold(batch_id, HoldKind.RESCHEDULE, key, _reason(start, verdict.why_not), start=start))
            view.claimed_times.add(start)
            view.close(batch_id)
    view.reschedule(changes.reschedules)


def _wishes(view: View) -> _Wishes:
    """Find the batches whose members all have one other time; of two with the same time the older one gets it."""
    found: dict[datetime, UnfinishedBatch] = {}
    # A batch that has begun has more to lose than one that waits.
    for batch in [*view.begun(), *view.unbegun()]:
        times = {view.time_of(member) for member in view.active[batch.id]}
        start = next(iter(times)) if len(times) == 1 else None
        if start is None or start == batch.start or start in view.snapshot.ended_times:
            continue
        if batch.is_unbegun and not _may_wait_there(batch, start, view):
            continue
        # After T nobody moves. But only a person ends a hold, so an approved reschedule is applied even then.
        if batch.hold or not view.has_started(batch.id):
            found.setdefault(start, batch)
    return {batch.id: (batch, start) for start, batch in found.items()}


def _may_wait_there(batch: UnfinishedBatch, start: datetime, view: View) -> bool:
    """Tell whether a batch that has not begun can have a new start: one that is free and that takes all its members."""
    keys = [member.member_key_fold for member in view.active[batch.id]]
    return view.batch_at(start) is None and not any(view.had(key, start) for key in keys)


def _judge(first: int, wishes: _Wishes, verdicts: _Verdicts, view: View) -> None:
    """Follow a batch to the one that holds its new time, and so on to the end, and judge them from there."""
    path: list[int] = []
    following: int | None = first
    while following in wishes and following not in verdicts and following not in path:
        path.append(following)
        holder = view.batch_at(wishes[following][1])
        following = holder.id if holder else None
    if following in path:
        _judge_circle(path[path.index(following) :], wishes, verdicts)
    for batch_id in reversed(path):
        if batch_id not in verdicts:
            verdicts[batch_id] = _verdict(batch_id, wishes, verdicts, view)


def _judge_circle(circle: list[int], wishes: _Wishes, verdicts: _Verdicts) -> None:
    all_approved = all(_is_approved(*wishes[batch_id]) for batch_id in circle)
    others = ", ".join(map(str, sorted(circle)))
    why_not = None if all_approved else f"the batches {others} would trade their times with one another"
    verdicts.update(dict.fromkeys(circle, _Verdict(why_not)))


def _verdict(batch_id: int, wishes: _Wishes, verdicts: _Verdicts, view: View) -> _Verdict | None:
    batch, start = wishes[batch_id]
    holder = view.batch_at(start)
    if holder is not None:
        blocking = verdicts.get(holder.id)
        if blocking is None:
            return None
        if blocking.why_not is not None:
            return _Verdict(f"batch {holder.id} has that time until its own new start is decided")
    if batch.is_unbegun or _is_approved(batch, start):
        return _APPLIED
    return _Verdict(_objection(batch, start, view))


def _objection(batch: UnfinishedBatch, start: datetime, view: View) -> str | None:
    if batch.has_cut_over:
        return "a phase at or after T was dispatched already"
    earlier_by = view.start_of(batch.id) - start
    # Spans are compared, not times: a source may write 9999-12-31 for "not yet", and nothing lies beyond that.
    overdue = [due for due in batch.pending_due if view.now < due and due - view.now <= earlier_by]
    if overdue:
        return f"it would make {len(overdue)} of its pending phases overdue"
    if view.is_late(start):
        return "that time has passed"
    return "it was held, and a person has not approved this start" if batch.hold else None


def _is_approved(batch: UnfinishedBatch, start: datetime) -> bool:
    return batch.hold is not None and batch.hold.is_approved and batch.hold.key == reschedule_key(start)


def _reason(start: datetime, why_not: str) -> str:
    return f"the source moves everybody to {start:%Y-%m-%d %H:%M} UTC, but {why_not}"
