"""Compares a source with the batches and applies the changes (rules T5 to T7).

Changes of a batch and their messages are one transaction.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from matoolkit.domain.changes import Changes, Join, Return
from matoolkit.domain.immediate import decide_immediate
from matoolkit.domain.membership import decide
from matoolkit.domain.remarks import Remarks, Seen
from matoolkit.domain.rows import Reading
from matoolkit.domain.snapshot import Snapshot, UnfinishedBatch
from matoolkit.domain.states import ENDED_BATCHES
from matoolkit.ports import Publisher
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.beginnings import begin, cancel_emptied
from matoolkit.scheduler.joining import Joining, Part
from matoolkit.scheduler.leasing import Confirm
from matoolkit.scheduler.leaving import remove_absent, remove_dropouts, remove_movers
from matoolkit.scheduler.packing import packed
from matoolkit.scheduler.reading import AT_ONCE, in_slices
from matoolkit.scheduler.snapshot import last_times, load_snapshot
from matoolkit.scheduler.starts import hold, restart_and_release, unchanged_batches
from matoolkit.scheduler.tallies import Tally
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow, lock_batches
from matoolkit.store.inclusions import note_let_in
from matoolkit.store.members import Refresh, note_in_source, note_left_source, refresh_members
from matoolkit.store.runbooks import RunbookRow
from matoolkit.store.sql.transaction import Transaction

# A person rarely approves in the moment in which a tick decides, and not three times in a row.
_TRIES = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Enrolling:
    """Brings the membership of one runbook's batches to what its source says."""

    store: Store
    publisher: Publisher
    confirm: Confirm
    runbook: RunbookRow
    model: Runbook
    interval: timedelta
    tally: Tally
    at: datetime

    def follow(self, reading: Reading) -> None:
        """Compare the source with the batches, and apply the changes; again if a batch changed in between."""
        for _ in range(_TRIES):
            changes, snapshot = self._decided(reading)
            if self._restart(changes, snapshot):
                self._apply_all(changes, snapshot)
                return
        log.info("batches are being changed: their members are looked at again in the next tick")

    def _restart(self, changes: Changes, snapshot: Snapshot) -> bool:
        if not (changes.reschedules or changes.releases):
            return True
        with self.store.transaction() as tx:
            self.confirm(tx)
            return restart_and_release(tx, self.publisher, changes, snapshot.by_id, self.tally, self.at)

    def _apply_all(self, changes: Changes, snapshot: Snapshot) -> None:
        self.tally.rows_ignored = changes.ignored
        try:
            for parts in packed(changes, snapshot):
                with self.store.transaction() as tx:
                    self.confirm(tx)
                    self._apply(tx, parts, snapshot, changes.remarks)
        except Exception:
            # Even if some changes fail, a wave that was called off must not go on, so its hold is written in any case.
            self._hold(changes, snapshot)
            raise
        # Last: a held batch takes no changes, and members that move away must leave before that.
        self._hold(changes, snapshot)
        self._end_waiting(changes, snapshot)
        self.tally.remarks = changes.remarks.all()

    def _hold(self, changes: Changes, snapshot: Snapshot) -> None:
        if changes.holds:
            with self.store.transaction() as tx:
                self.confirm(tx)
                hold(tx, changes.holds, _restarted(changes, snapshot), self.tally, self.at)

    def _end_waiting(self, changes: Changes, snapshot: Snapshot) -> None:
        """Let batches begin that waited for a person, or cancel them if they are empty."""
        ids = [*changes.beginnings, *changes.emptied]
        if not ids:
            return
        with self.store.transaction() as tx:
            self.confirm(tx)
            same = unchanged_batches(tx, ids, _restarted(changes, snapshot))
            waiting = [batch for batch in same if batch.id in changes.beginnings]
            begin(tx, self.publisher, self.runbook, self.model, waiting, changes.beginnings, self.tally, self.at)
            emptied = [batch.id for batch in same if batch.id in changes.emptied]
            cancel_emptied(tx, self.publisher, emptied, self.tally, self.at)

    def _decided(self, reading: Reading) -> tuple[Changes, Snapshot]:
        with self.store.reading() as tx:
            snapshot = load_snapshot(tx, self.runbook.name, self.model, reading, self.at, self.interval)
            is_immediate = self.model.data_source.batch_time is not None
            if not is_immediate:
                return decide(snapshot), snapshot
            before = last_times(tx, self.runbook.name, snapshot)
        return decide_immediate(snapshot, before, self.model.data_source.cooldown), snapshot

    def _apply(self, tx: Transaction, parts: Sequence[Part], snapshot: Snapshot, remarks: Remarks) -> None:
        parts = _unchanged(tx, parts, remarks)
        movers = [member.id for part in parts for member in part.changes.movers]
        remove_movers(tx, self.publisher, movers, self.tally, self.at)
        joining = Joining(
            tx,
            self.publisher,
            self.runbook,
            self.model,
            snapshot.reading,
            self.tally,
            remarks,
            self.at,
            has_history=snapshot.has_history,
        )
        joining.let_in(parts)
        coming = {someone.key for part in parts for someone in part.changes.coming}
        note_let_in(tx, self.runbook.name, coming & snapshot.included.keys(), self.at)
        dropouts = [member for part in parts for member in part.changes.dropouts]
        remove_dropouts(tx, self.publisher, dropouts, self.tally, self.at)
        removals = [member for part in parts for member in part.changes.removals]
        remove_absent(tx, self.publisher, removals, self.tally, self.at)
        note_left_source(tx, [member for part in parts for member in part.changes.left_source], self.at)
        note_in_source(tx, [member for part in parts for member in part.changes.back_in_source])
        self._refresh(tx, parts, snapshot.reading)
        for part in parts:
            self._log(part)

    def _refresh(self, tx: Transaction, parts: Sequence[Part], reading: Reading) -> None:
        changed = (
            (refresh.member_id, candidate)
            for part in parts
            for refresh in part.changes.refreshes
            if (candidate := reading.candidates[refresh.key]).kept_at is not None
        )
        rows = (Refresh(id_, reading.data_of(row).decode(), row.fingerprint.hex()) for id_, row in changed)
        for some in in_slices(rows, AT_ONCE, letters=lambda row: len(row.data_json)):
            self.tally.members_refreshed += len(refresh_members(tx, some))

    def _log(self, part: Part) -> None:
        changes, about = part.changes, {"runbook": self.runbook.name, "batch": part.batch_id}
        said = {
            "%d joined: the source returns them with this start": len(changes.joins),
            "%d returned: the source returns them again": len(changes.returns),
            "%d left: they have another time, and the batch of that time is held": len(changes.movers),
            "%d left: the source no longer returns them, and the batch has not begun": len(changes.dropouts),
            "%d removed: the source no longer returns them, and T has not passed": len(changes.removals),
            "%d no longer in the source: T has passed, so they stay": len(changes.left_source),
            "%d refreshed: their rows have changed": len(changes.refreshes),
        }
        for what, count in said.items():
            if count:
                log.info(what, count, extra=about)


def _unchanged(tx: Transaction, parts: Sequence[Part], remarks: Remarks) -> list[Part]:
    """Lock the batches concerned, and leave out those that have changed since they were read."""
    leaving = {someone.leaves.batch_id for part in parts for someone in part.changes.coming if someone.leaves}
    ids = leaving | {part.batch_id for part in parts if part.batch_id is not None}
    locked = {batch.id: batch for batch in lock_batches(tx, ids)}
    shut = ids - {batch.id for batch in locked.values() if _takes_changes(batch)}
    shut |= {
        part.batch_id
        for part in parts
        if part.batch_id in locked and locked[part.batch_id].batch_start_time != part.start
    }
    kept: list[Part] = []
    for part in parts:
        part.is_unbegun = part.batch_id in locked and locked[part.batch_id].is_unbegun
        held_up = [one for one in part.changes.coming if part.batch_id in shut or _left(one) in shut]
        for someone in held_up:
            remarks.add(Seen.BATCH_CHANGED, someone.key, part.batch_id)
        if part.batch_id not in shut:
            part.changes.drop({someone.key for someone in held_up})
            kept.append(part)
    return kept


def _left(someone: Join | Return) -> int | None:
    return someone.leaves.batch_id if someone.leaves else None


def _takes_changes(batch: BatchRow) -> bool:
    return batch.status not in ENDED_BATCHES and (not batch.is_held or batch.is_unbegun)


def _restarted(changes: Changes, snapshot: Snapshot) -> dict[int, UnfinishedBatch]:
    """Return the batches as they are once they have their new starts."""
    by_id = snapshot.by_id
    return by_id | {number: replace(by_id[number], start=start) for number, start in changes.reschedules.items()}
