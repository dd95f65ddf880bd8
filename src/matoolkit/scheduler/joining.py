"""Members that join a batch, move into it or return to it, and batches that begin with them (rule T5)."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from matoolkit.announcing.inits import announce_inits
from matoolkit.announcing.members import announce_members
from matoolkit.domain.changes import BatchChanges, Join, Return
from matoolkit.domain.holds import Hold
from matoolkit.domain.lateness import limit_of
from matoolkit.domain.remarks import Remarks, Seen
from matoolkit.domain.rows import Reading
from matoolkit.domain.states import WORK_STANDS, BatchStatus, MemberStatus
from matoolkit.ports import Publisher
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.leaving import remove_movers
from matoolkit.scheduler.reading import AT_ONCE, in_slices
from matoolkit.scheduler.starts import hold_new
from matoolkit.scheduler.tallies import Tally
from matoolkit.store import members as stored
from matoolkit.store.batches import BatchRow, NewBatch, has_manual_batches, insert_batches
from matoolkit.store.enrolments import Place, places_of_keys
from matoolkit.store.exclusions import excluded_keys
from matoolkit.store.members import (
    MemberLabel,
    NewMember,
    Outputs,
    insert_members,
    keep_outputs,
    member_labels,
    return_members,
)
from matoolkit.store.phases import NewPhase, insert_phases
from matoolkit.store.runbooks import RunbookRow, lock_runbook
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Part:
    """The changes of one batch, which may not exist yet, and may have to wait for a person before it begins."""

    start: datetime
    batch_id: int | None
    changes: BatchChanges = field(default_factory=BatchChanges)
    hold: Hold | None = None
    is_unbegun: bool = False


@dataclass(frozen=True, slots=True)
class Joining:
    """Lets people into batches, in one transaction."""

    tx: Transaction
    publisher: Publisher
    runbook: RunbookRow
    model: Runbook
    reading: Reading
    tally: Tally
    remarks: Remarks
    at: datetime
    has_history: bool = True

    def let_in(self, parts: Sequence[Part]) -> None:
        """Let members join or return if they can, and create the batches that they join."""
        coming = [someone for part in parts for someone in part.changes.coming]
        ready = self._let_movers_leave(coming)
        for part in parts:
            part.changes.drop({someone.key for someone in part.changes.coming if someone.key not in ready})
        new = self._create([part for part in parts if part.batch_id is None and part.changes.joins])
        unbegun = {part.batch_id for part in parts if part.batch_id and part.is_unbegun}
        self._join(parts, new, new | unbegun, ready)
        self._return([back for part in parts for back in part.changes.returns], ready)

    def _let_movers_leave(self, coming: Sequence[Join | Return]) -> dict[str, str | None]:
        """Let movers leave, and return the members that can come now, with their outputs from another batch.

        A member whose old job or rollback still runs comes later: old and new work must not overlap (rule T5).
        """
        if not coming:
            return {}
        # Uploads and retries take the same lock before they let people in. So a member that is in no other batch now is
        # in none until we commit.
        lock_runbook(self.tx, self.runbook.name)
        # Somebody may have been excluded since the snapshot was taken. That takes the same lock (rule U3).
        excluded = excluded_keys(self.tx, self.runbook.name)
        candidates = self.reading.candidates
        # A row has no data here if its member was in a batch while the source was read, and left since.
        with_data = [
            someone for someone in coming if candidates[someone.key].kept_at is not None and someone.key not in excluded
        ]
        leaving = {someone.leaves.id for someone in with_data if someone.leaves}
        left = remove_movers(self.tx, self.publisher, leaving, self.tally, self.at) if leaving else set()
        self._log_moves(
            someone.leaves.batch_id for someone in with_data if someone.leaves and someone.leaves.id in left
        )
        places = self._places(someone.key for someone in with_data)
        ready: dict[str, str | None] = {}
        for someone in coming:
            there = places.get(someone.key, [])
            own = someone.member_id if isinstance(someone, Return) else None
            elsewhere = [place for place in there if place.id != own]
            has_data = candidates[someone.key].kept_at is not None and someone.key not in excluded
            has_left = someone.leaves is None or someone.leaves.id in left
            # Somebody who was undone begins without outputs, which the steps that undo may still need.
            begins_afresh = isinstance(someone, Return) and someone.is_undone
            if not (has_data and has_left) or any(place.is_under_way for place in elsewhere):
                self.remarks.add(Seen.BATCH_CHANGED, someone.key)
            elif any(place.is_busy for place in (there if begins_afresh else elsewhere)):
                self.remarks.add(Seen.WAITS_FOR_ITS_JOBS, someone.key)
            else:
                ready[someone.key] = _outputs(there, own)
        return ready

    def _log_moves(self, left: Iterable[int]) -> None:
        for batch_id, count in Counter(left).items():
            about = {"runbook": self.runbook.name, "batch": batch_id}
            log.info("%d moved away: the source gives them another time", count, extra=about)

    def _places(self, keys: Iterable[str]) -> dict[str, list[Place]]:
        found: dict[str, list[Place]] = {}
        # A runbook without batches has nothing to look up. Since that was read, only a person can have made a batch.
        looked_up = self.has_history or has_manual_batches(self.tx, self.runbook.name)
        for some in in_slices(keys if looked_up else (), AT_ONCE):
            for place in places_of_keys(self.tx, self.runbook.name, some):
                found.setdefault(place.member_key_fold, []).append(place)
        return found

    def _create(self, parts: Sequence[Part]) -> set[int]:
        """Create batches with their phases; members that are there from the beginning are not announced."""
        made = insert_batches(self.tx, [self._new_batch(part) for part in parts], self.at)
        by_start = {batch.batch_start_time: batch for batch in made}
        for part in parts:
            part.batch_id = by_start[part.start].id
        insert_phases(self.tx, [phase for batch in made for phase in self._phases(batch)])
        requested = [batch for batch in made if batch.status is BatchStatus.INIT_DISPATCHED]
        announce_inits(self.tx, self.publisher, self.runbook.version, requested)
        self.tally.batches_created += len(made)
        holds = [replace(part.hold, batch_id=by_start[part.start].id) for part in parts if part.hold]
        hold_new(self.tx, holds, self.tally, self.at)
        return {batch.id for batch in made}

    def _new_batch(self, part: Part) -> NewBatch:
        new = NewBatch(self.runbook.id, self.runbook.name, part.start, BatchStatus.ACTIVE)
        if part.hold is not None:
            return replace(new, status=BatchStatus.DETECTED)
        if not self.model.init:
            return new
        return replace(new, status=BatchStatus.INIT_DISPATCHED, init_dispatched_at=self.at, init_count=1)

    def _phases(self, batch: BatchRow) -> list[NewPhase]:
        start = batch.batch_start_time
        due = [phase.offset.due_at(start) if start else None for phase in self.model.phases]
        # In an immediate runbook T is now, and what comes before it is not late because of that.
        counted_from = start if self.model.data_source.batch_time == "immediate" else None
        return [
            NewPhase(
                batch.id,
                self.runbook.version,
                phase.name,
                index,
                phase.offset.minutes,
                due[index],
                late_after=limit_of(due[index], self.model.max_delay, counted_from),
            )
            for index, phase in enumerate(self.model.phases)
        ]

    def _join(
        self, parts: Sequence[Part], new: Collection[int], yet_to_begin: Collection[int], ready: dict[str, str | None]
    ) -> None:
        """Let members join; in batches that are yet to begin there is nothing that they would have to catch up."""
        joining = (
            self._new_member(part.batch_id, join.key, ready[join.key] or "{}", yet_to_begin)
            for part in parts
            if part.batch_id is not None
            for join in part.changes.joins
        )
        for rows in in_slices(joining, AT_ONCE, letters=lambda row: len(row.data_json)):
            made = insert_members(self.tx, rows, self.at, founded=new)
            spelled = {row.member_key_fold: self.reading.candidates[row.member_key_fold].key for row in made}
            late = [
                MemberLabel(row.id, row.batch_id, spelled[row.member_key_fold], epoch=1)
                for row in made
                if row.batch_id not in yet_to_begin
            ]
            announce_members(self.tx, self.publisher, late, self.at)
            self.tally.members_added += len(made)

    def _new_member(self, batch_id: int, key: str, outputs: str, yet_to_begin: Collection[int]) -> NewMember:
        return NewMember(
            batch_id,
            self.reading.candidates[key].key,
            *self._row(key),
            outputs,
            caught_up_at=self.at if batch_id in yet_to_begin else None,
            source_time=self.reading.candidates[key].batch_time,
        )

    def _return(self, returns: Sequence[Return], ready: dict[str, str | None]) -> None:
        # A member that was in another batch since brings its outputs from there.
        brought = {back.member_id: ready[back.key] for back in returns}
        returning = (
            stored.Return(back.member_id, *self._row(back.key), self.reading.candidates[back.key].batch_time)
            for back in returns
        )
        undone = {back.member_id for back in returns if back.is_undone}
        for rows in in_slices(returning, AT_ONCE, letters=lambda row: len(row.data_json)):
            returned = set(return_members(self.tx, [row for row in rows if row.id not in undone], self.at))
            afresh = [row for row in rows if row.id in undone]
            returned.update(return_members(self.tx, afresh, self.at, undone=True))
            labels = member_labels(self.tx, returned)
            pairs = ((member, brought[member.id]) for member in labels)
            keep_outputs(self.tx, [Outputs(one.id, one.epoch, data) for one, data in pairs if data is not None])
            announce_members(self.tx, self.publisher, labels, self.at)
            self.tally.members_returned += len(returned)

    def _row(self, key: str) -> tuple[str, str]:
        candidate = self.reading.candidates[key]
        return self.reading.data_of(candidate).decode(), candidate.fingerprint.hex()


def _outputs(places: Sequence[Place], own: int | None) -> str | None:
    """Return the outputs that a member brings from its last batch, if it left that with its work as it was."""
    last = max(places, key=lambda place: (place.changed_at, place.id), default=None)
    if last is None or last.id == own or last.status is not MemberStatus.REMOVED:
        return None
    return last.worker_data_json if last.remove_reason in WORK_STANDS else None
