"""Keeping somebody out of all batches of a runbook, whatever its source says (rule U3).

Somebody who is under way leaves its batch: its open steps are cancelled, and what was done stays, unless the person
wants it undone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from matoolkit.admin.queries import latest_runbook
from matoolkit.admin.undoing import MemberUndo, in_words, undo_as_planned
from matoolkit.admin.undoplan import UndoPlan, Wanted, plan_undo
from matoolkit.announcing.members import remove_and_announce
from matoolkit.domain.keys import MAX_KEY_LENGTH, folded, is_usable_key
from matoolkit.domain.retrying import VersionChoice
from matoolkit.domain.states import EXCLUDED, MemberStatus
from matoolkit.errors import ExcludedAlready, MemberChanged, UnusableKey
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.audit import NewAuditEntry, record_changes
from matoolkit.store.batches import BatchRow, lock_batches
from matoolkit.store.datatables import current_row
from matoolkit.store.enrolments import Place, places_of_keys
from matoolkit.store.exclusions import Exclusion, exclude, exclusion_of
from matoolkit.store.inclusions import note_let_in
from matoolkit.store.runbooks import RunbookRow, lock_runbook


@dataclass(frozen=True, slots=True)
class Excluded:
    """Somebody who is kept out: the batches that it leaves, and what is undone for it, if a person wants that.

    It `is_known` if the last reading of the source or any batch has its key.
    """

    runbook_name: str
    member_key: str
    is_known: bool
    leaves: tuple[int, ...]
    undo: MemberUndo | None


@dataclass(frozen=True, slots=True)
class _Plan:
    runbook: RunbookRow
    key: str
    is_known: bool
    earlier: Exclusion | None
    stopped: Sequence[Place]
    batch: BatchRow | None
    undo: UndoPlan | None

    def in_words(self) -> Excluded:
        undo = in_words(self.batch, self.undo) if self.batch and self.undo else None
        leaves = tuple(place.batch_id for place in self.stopped)
        return Excluded(self.runbook.name, self.key, self.is_known, leaves, undo)


def preview_exclusion(
    store: Store, name: str, key: str, *, undo: bool = False, version: VersionChoice | None = None
) -> Excluded:
    """Say what an exclusion would do, and change nothing."""
    with store.transaction() as tx:
        return _planned(tx, name, key, version, undo=undo).in_words()


def exclude_member(
    store: Store,
    publisher: Publisher,
    name: str,
    key: str,
    *,
    by: str,
    reason: str,
    undo: bool = False,
    version: VersionChoice | None = None,
) -> Excluded:
    """Keep somebody out until it is included again; if it is under way, it leaves its batch."""
    with store.transaction() as tx:
        plan, at = _planned(tx, name, key, version, undo=undo), tx.time()
        done = plan.in_words()
        if plan.earlier is None:
            exclude(tx, Exclusion(plan.runbook.name, plan.key, at, by, reason))
        # A person who let it in before, and whom no tick has heard yet, is overruled.
        note_let_in(tx, plan.runbook.name, {folded(plan.key)}, at)
        record_changes(tx, [_entry(done, by, reason)], at)
        if plan.batch is not None and plan.undo is not None:
            undo_as_planned(tx, publisher, plan.batch, plan.undo, by=by, reason=reason)
        remove_and_announce(tx, publisher, [place.id for place in plan.stopped], by, EXCLUDED, at)
        return done


def _planned(tx: Transaction, name: str, key: str, version: VersionChoice | None, *, undo: bool) -> _Plan:
    runbook = latest_runbook(tx, name)
    fold = folded(key.strip())
    if not is_usable_key(key.strip()):
        raise UnusableKey(key, MAX_KEY_LENGTH)
    places, batches = _locked_places(tx, runbook.name, fold)
    row = current_row(tx, runbook.data_table, key.strip())
    earlier = exclusion_of(tx, runbook.name, fold)
    there = (place for place in places if _can_be_undone(place))
    last = max(there, key=lambda place: (place.added_at, place.id), default=None)
    if earlier is not None and not (undo and last):
        raise ExcludedAlready(earlier.member_key, earlier.excluded_by, earlier.reason)
    batch = batches[last.batch_id] if undo and last is not None else None
    plan = None if batch is None else plan_undo(tx, batch, Wanted(member_keys=[key]), version)
    stopped = [place for place in places if place.is_under_way and (batch is None or place.batch_id != batch.id)]
    spelled = row[0] if row else key.strip()
    return _Plan(runbook, spelled, bool(row or places), earlier, stopped, batch, plan)


def _can_be_undone(place: Place) -> bool:
    return place.status is not MemberStatus.REMOVED or place.remove_reason == EXCLUDED


def _locked_places(tx: Transaction, name: str, fold: str) -> tuple[list[Place], dict[int, BatchRow]]:
    """Lock the batches in which somebody is or was, then the runbook, and only then read where it is (rule M5)."""
    before = {place.batch_id for place in places_of_keys(tx, name, [fold])}
    batches = {batch.id: batch for batch in lock_batches(tx, before)}
    lock_runbook(tx, name)
    places = places_of_keys(tx, name, [fold])
    if any(place.batch_id not in batches for place in places):
        raise MemberChanged(fold)
    return places, batches


def _entry(done: Excluded, by: str, reason: str) -> NewAuditEntry:
    after = {"leaves": list(done.leaves), "undoes": done.undo.batch_id if done.undo else None}
    return NewAuditEntry(
        actor=by,
        action="member.exclude",
        subject_type="member",
        subject_id=done.member_key[:200],
        runbook_name=done.runbook_name,
        after_json=orjson.dumps(after).decode(),
        reason=reason,
    )
