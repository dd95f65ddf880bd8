"""Including a member that the scheduler keeps outside the batch of its time, or a person does (rules T5 and U3)."""

from dataclasses import dataclass
from datetime import datetime

import orjson

from matoolkit.admin.queries import latest_runbook
from matoolkit.domain.keys import folded
from matoolkit.domain.states import ENDED_BATCHES, MemberStatus
from matoolkit.errors import NotIncluded, UnknownRow
from matoolkit.store import Store, Transaction
from matoolkit.store.audit import NewAuditEntry, record_changes
from matoolkit.store.batches import BatchRow, batches_at, batches_by_id
from matoolkit.store.datatables import current_row
from matoolkit.store.enrolments import Place, places_of_keys
from matoolkit.store.exclusions import end_exclusion
from matoolkit.store.inclusions import Inclusion, include
from matoolkit.store.runbooks import RunbookRow, lock_runbook

_NEW_TIME = "give it a time in the source that is still to come"


@dataclass(frozen=True, slots=True)
class Included:
    """A member that the next tick includes: at which time, and into which batch if there is one.

    Somebody who `was_excluded` is so no longer: the next tick treats its row like any other, if there is one.
    """

    runbook_name: str
    member_key: str
    batch_time: datetime | None
    batch_id: int | None
    was_excluded: bool = False


def include_member(store: Store, name: str, key: str, *, by: str, reason: str | None = None, now: datetime) -> Included:
    """Include a member at the time of its row in the last reading; the next tick does it, if the row stays so.

    For somebody who is excluded this only ends the exclusion (rule U3). If a tick then keeps it outside for another
    reason, it can be included once more.
    """
    with store.transaction() as tx:
        lock_runbook(tx, name)
        runbook = latest_runbook(tx, name)
        spelled, time = current_row(tx, runbook.data_table, key) or (key, None)
        batch = None if time is None else next(iter(batches_at(tx, runbook.name, [time])), None)
        if end_exclusion(tx, runbook.name, folded(key.strip()), now):
            done = Included(runbook.name, spelled, time, batch.id if batch else None, was_excluded=True)
            record_changes(tx, [_entry(done, by, reason)], now)
            return done
        if time is None:
            raise UnknownRow(runbook.name, key)
        _refuse_in_vain(tx, runbook, spelled, batch, now)
        include(tx, Inclusion(runbook.name, spelled, time, now, by, reason))
        done = Included(runbook.name, spelled, time, batch.id if batch else None)
        record_changes(tx, [_entry(done, by, reason)], now)
        return done


def _refuse_in_vain(tx: Transaction, runbook: RunbookRow, key: str, batch: BatchRow | None, now: datetime) -> None:
    """Refuse what no tick would do, even for a person."""
    if batch is not None and batch.status in ENDED_BATCHES:
        raise NotIncluded(key, f"batch {batch.id} of its time has ended", _NEW_TIME)
    if batch is not None and batch.reopened_at is not None:
        raise NotIncluded(key, f"batch {batch.id} of its time was reopened by a retry and takes nobody", _NEW_TIME)
    places = places_of_keys(tx, runbook.name, [folded(key)])
    batches = {one.id: one for one in batches_by_id(tx, {place.batch_id for place in places})}
    for place in places:
        _refuse_because_of(place, batches[place.batch_id], batch, key, now)


def _refuse_because_of(place: Place, its: BatchRow, wanted: BatchRow | None, key: str, now: datetime) -> None:
    is_there = wanted is not None and its.id == wanted.id
    if is_there and place.status is MemberStatus.FAILED:
        raise NotIncluded(key, f"it has failed in batch {its.id}", f"retry it: `matoolkit batch retry {its.id}`")
    if not place.is_under_way:
        return
    if is_there:
        raise NotIncluded(key, f"it is in batch {its.id} already", "nothing has to be done")
    if its.batch_start_time is None:
        raise NotIncluded(key, f"it is in the manual batch {its.id}", "wait for its end, or remove it there")
    if its.batch_start_time <= now and not its.is_unbegun:
        raise NotIncluded(key, f"its batch {its.id} has started, and nobody moves after T", "wait for its end")


def _entry(done: Included, by: str, reason: str | None) -> NewAuditEntry:
    time = done.batch_time.isoformat() if done.batch_time else None
    after = {"batch_time": time, "batch_id": done.batch_id, "was_excluded": done.was_excluded}
    return NewAuditEntry(
        actor=by,
        action="member.include",
        subject_type="member",
        subject_id=done.member_key[:200],
        runbook_name=done.runbook_name,
        batch_id=done.batch_id,
        after_json=orjson.dumps(after).decode(),
        reason=reason,
    )
