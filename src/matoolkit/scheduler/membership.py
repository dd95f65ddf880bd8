"""A source that was read, compared with the batches, and what follows from it applied (rules T5 to T7).

What changes in a batch is one transaction with its messages. Small batches share one, so that the number of statements
grows with the members and not with the batches.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from matoolkit.domain.changes import BatchChanges, Changes
from matoolkit.domain.immediate import decide_immediate
from matoolkit.domain.membership import decide
from matoolkit.domain.picture import Picture
from matoolkit.domain.remarks import Remarks, Seen
from matoolkit.domain.rows import Candidate, Reading
from matoolkit.domain.states import ENDED_BATCHES
from matoolkit.ports import Publisher
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.joining import Joining, Part
from matoolkit.scheduler.leasing import Confirm
from matoolkit.scheduler.leaving import remove_absent
from matoolkit.scheduler.pictures import last_times, load_picture
from matoolkit.scheduler.reading import AT_ONCE
from matoolkit.scheduler.starts import hold, restart_and_release
from matoolkit.scheduler.tallies import Tally
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow, lock_batches
from matoolkit.store.members import Refresh, note_in_source, note_left_source, refresh_members
from matoolkit.store.runbooks import RunbookRow
from matoolkit.store.transaction import Transaction

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Enrolling:
    """Brings the membership of one runbook's batches to what its source says."""

    store: Store
    publisher: Publisher
    confirm: Confirm
    runbook: RunbookRow
    model: Runbook
    tick: timedelta
    tally: Tally
    at: datetime

    def follow(self, reading: Reading) -> None:
        """Compare the source with the batches, and apply what follows."""
        changes, picture = self._decided(reading)
        self.tally.rows_ignored += changes.ignored
        if changes.reschedules or changes.releases:
            with self.store.transaction() as tx:
                self.confirm(tx)
                pictured = {batch.id: batch for batch in picture.batches}
                if not restart_and_release(tx, self.publisher, changes, pictured, self.tally, self.at):
                    log.info("a batch was changed just now: its members are looked at again in the next tick")
                    return
        for parts in _packed(changes, picture):
            with self.store.transaction() as tx:
                self.confirm(tx)
                self._apply(tx, parts, reading.candidates, changes.remarks)
        # Last, so that whoever was to move before its batch was held has moved.
        if changes.holds:
            with self.store.transaction() as tx:
                self.confirm(tx)
                hold(tx, changes.holds, self.tally, self.at)
        self.tally.remarks = changes.remarks.all()

    def _decided(self, reading: Reading) -> tuple[Changes, Picture]:
        with self.store.reading() as tx:
            picture = load_picture(tx, self.runbook.name, self.model, reading, self.at, self.tick)
            if self.model.data_source.batch_time is None:
                return decide(picture), picture
            before = last_times(tx, self.runbook.name, picture)
        return decide_immediate(picture, before, self.model.data_source.cooldown), picture

    def _apply(
        self, tx: Transaction, parts: Sequence[Part], candidates: Mapping[str, Candidate], remarks: Remarks
    ) -> None:
        parts = _unchanged(tx, parts, remarks)
        joining = Joining(tx, self.publisher, self.runbook, self.model, candidates, self.tally, remarks, self.at)
        joining.let_in(parts)
        removals = [member for part in parts for member in part.changes.removals]
        remove_absent(tx, self.publisher, removals, self.tally, self.at)
        note_left_source(tx, [member for part in parts for member in part.changes.left_source], self.at)
        note_in_source(tx, [member for part in parts for member in part.changes.back_in_source])
        self._refresh(tx, parts, candidates)
        for part in parts:
            self._log(part)

    def _refresh(self, tx: Transaction, parts: Sequence[Part], candidates: Mapping[str, Candidate]) -> None:
        rows: list[Refresh] = []
        for part in parts:
            for refresh in part.changes.refreshes:
                candidate = candidates[refresh.key]
                if candidate.data is not None:
                    rows.append(Refresh(refresh.member_id, candidate.data.decode(), candidate.fingerprint.hex()))
        self.tally.members_refreshed += len(refresh_members(tx, rows))

    def _log(self, part: Part) -> None:
        changes, about = part.changes, {"runbook": self.runbook.name, "batch": part.batch_id}
        said = {
            "%d joined: the source returns them with this start": len(changes.joins),
            "%d returned: the source returns them again": len(changes.returns),
            "%d removed: the source no longer returns them, and T has not passed": len(changes.removals),
            "%d no longer in the source: T has passed, so they stay": len(changes.left_source),
            "%d refreshed: their rows have changed": len(changes.refreshes),
        }
        for what, count in said.items():
            if count:
                log.info(what, count, extra=about)


def _packed(changes: Changes, picture: Picture) -> Iterator[list[Part]]:
    """Put the changes of batches together until there are enough for one transaction."""
    starts = {batch.id: batch.start for batch in picture.batches} | changes.reschedules
    parts = [Part(start, batch_id, changes.batches[batch_id]) for batch_id, start in _known(starts, changes)]
    parts += [Part(start, None, BatchChanges(joins=joins)) for start, joins in sorted(changes.new.items())]
    pack: list[Part] = []
    size = 0
    for part in parts:
        pack.append(part)
        size += len(part.changes)
        if size >= AT_ONCE:
            yield pack
            pack, size = [], 0
    if pack:
        yield pack


def _known(starts: Mapping[int, datetime | None], changes: Changes) -> list[tuple[int, datetime]]:
    known = ((batch_id, starts[batch_id]) for batch_id, some in sorted(changes.batches.items()) if len(some))
    return [(batch_id, start) for batch_id, start in known if start is not None]


def _unchanged(tx: Transaction, parts: Sequence[Part], remarks: Remarks) -> list[Part]:
    """Lock the batches concerned, and leave out those that somebody has changed since they were looked at."""
    leaving = {someone.leaves.batch_id for part in parts for someone in part.changes.coming if someone.leaves}
    ids = leaving | {part.batch_id for part in parts if part.batch_id is not None}
    locked = {batch.id: batch for batch in lock_batches(tx, ids)}
    kept: list[Part] = []
    for part in parts:
        if part.batch_id is None or _takes_changes(locked.get(part.batch_id), part.start):
            kept.append(part)
        else:
            for someone in part.changes.coming:
                remarks.add(Seen.BATCH_CHANGED, someone.key, part.batch_id)
    return kept


def _takes_changes(batch: BatchRow | None, start: datetime) -> bool:
    return (
        batch is not None
        and batch.status not in ENDED_BATCHES
        and not batch.is_held
        and batch.batch_start_time == start
    )
