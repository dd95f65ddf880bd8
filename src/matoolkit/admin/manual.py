"""Manual batches: made by a person from rows, and changed by a person (rule O13)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from matoolkit.admin.recording import locked_batch, record
from matoolkit.admin.uploads import Piece, Row, Upload, UploadedRow, data_of, keyed_pieces
from matoolkit.announcing.members import announce_members, remove_and_announce
from matoolkit.domain.keys import folded
from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, MemberStatus
from matoolkit.errors import (
    InvalidMembers,
    NoActiveVersion,
    NotManual,
    UnknownMembers,
    UnknownRunbook,
    WrongBatchStatus,
)
from matoolkit.ports import Publisher
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, NewBatch, insert_batches
from matoolkit.store.enrolments import busy_members, taken_keys
from matoolkit.store.exclusions import excluded_keys
from matoolkit.store.members import (
    MemberAt,
    NewMember,
    Return,
    insert_members,
    note_caught_up,
    return_members,
)
from matoolkit.store.narrow_members import NarrowMember, members_with_keys
from matoolkit.store.phases import NewPhase, insert_phases
from matoolkit.store.runbooks import (
    RunbookRow,
    active_runbook,
    latest_version,
    lock_runbook,
    runbook_names,
    runbooks_by_id,
)

ToldT = TypeVar("ToldT")

_MOST_NAMED = 100
_TAKEN_OUT = "removed by a person"


@dataclass(frozen=True, slots=True)
class ManualChange:
    """How many joined or left a manual batch, and how many were left out: excluded, or others have or run them.

    Of those who were left out the first are named.
    """

    batch: BatchRow
    members: int
    left_out_count: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tally:
    """Counts members that joined and rows that were left out, part by part."""

    joined: int = 0
    left_out_count: int = 0
    left_out: list[str] = field(default_factory=list)

    def note(self, piece: Piece, joining: Collection[str]) -> None:
        out = [key for fold, (key, _) in piece.items() if fold not in joining]
        self.joined += len(joining)
        self.left_out_count += len(out)
        self.left_out += out[: _MOST_NAMED - len(self.left_out)]

    def add(self, other: "_Tally") -> None:
        self.joined += other.joined
        self.left_out_count += other.left_out_count
        self.left_out += other.left_out[: _MOST_NAMED - len(self.left_out)]

    def change(self, batch: BatchRow) -> ManualChange:
        return ManualChange(batch, self.joined, self.left_out_count, tuple(self.left_out))


class ManualUpload:
    """Puts the rows of a file into a manual batch, which is made if there is none, each part in one transaction.

    Other writers have their turn between two parts. If it breaks off, the earlier parts stay; the same upload goes on
    with that batch.
    """

    def __init__(
        self,
        publisher: Publisher,
        upload: Upload,
        *,
        by: str,
        reason: str | None,
        runbook_name: str = "",
        batch_id: int | None = None,
    ) -> None:
        self._publisher = publisher
        self._upload = upload
        self._by = by
        self._reason = reason
        self._runbook_name = runbook_name
        self._batch_id = batch_id
        self._is_resumed = False
        self._tally = _Tally()

    def resume(self, batch_id: int | None) -> None:
        """Go on with the batch that this upload made before it broke off, if any; its members count as joined."""
        self._batch_id, self._is_resumed = batch_id, True

    def parts(self, told: Callable[[ManualChange], ToldT]) -> Iterator[Callable[[Store], ToldT | None]]:
        """Return the work part by part; each part says how far it has come, once there is a batch."""
        for number, rows in enumerate(self._upload.parts(), start=1):
            yield partial(self._take, told, rows, number == len(self._upload))

    def _take(
        self, told: Callable[[ManualChange], ToldT], rows: Sequence[UploadedRow], is_last: bool, store: Store
    ) -> ToldT | None:
        with store.transaction() as tx:
            if self._batch_id is None:
                batch, tally = _created(tx, self._runbook_name, rows, self._by, self._reason)
            else:
                batch, tally = _added(
                    tx, self._publisher, self._batch_id, rows, self._by, self._reason, again=self._is_resumed
                )
            if batch is None and is_last:
                raise _nobody_free()
        self._tally.add(tally)
        if batch is None:
            return None
        self._batch_id = batch.id
        return told(self._tally.change(batch))


def create_manual_batch(
    store: Store, runbook_name: str, rows: Iterable[Row | UploadedRow], *, by: str, reason: str | None = None
) -> ManualChange:
    """Make a batch of rows, as the active version of a runbook wants it; nothing runs before it is advanced."""
    with store.transaction() as tx:
        batch, tally = _created(tx, runbook_name, rows, by, reason)
        if batch is None:
            raise _nobody_free()
        return tally.change(batch)


def _nobody_free() -> InvalidMembers:
    return InvalidMembers(["all of them are excluded or in unfinished batches, or something still runs for them there"])


def _created(
    tx: Transaction, runbook_name: str, rows: Iterable[Row | UploadedRow], by: str, reason: str | None
) -> tuple[BatchRow | None, _Tally]:
    """Make a batch of the rows that are in no other batch, if there are any."""
    lock_runbook(tx, runbook_name)
    version = version_in_use(tx, runbook_name)
    model, at, tally = parse_runbook(version.yaml_content), tx.time(), _Tally()
    excluded = excluded_keys(tx, version.name)
    batch: BatchRow | None = None
    for piece in keyed_pieces(rows, model.data_source.primary_key):
        taken = taken_keys(tx, version.name, piece) | excluded
        joining = {fold: row for fold, row in piece.items() if fold not in taken}
        tally.note(piece, joining)
        if not joining:
            continue
        if batch is None:
            new = NewBatch(version.id, version.name, None, BatchStatus.DETECTED, is_manual=True, created_by=by)
            (batch,) = insert_batches(tx, [new], at)
        insert_members(tx, [_member(batch.id, key, row, at) for key, row in joining.values()], at)
    if batch is not None:
        phases = [
            NewPhase(batch.id, version.version, phase.name, index, phase.offset.minutes, None)
            for index, phase in enumerate(model.phases)
        ]
        insert_phases(tx, phases)
        record(tx, batch, "batch.create", by, reason, None, {"members": tally.joined, "version": version.version})
    return batch, tally


def add_to_manual_batch(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    rows: Iterable[Row | UploadedRow],
    *,
    by: str,
    reason: str | None = None,
) -> ManualChange:
    """Let members join a manual batch, or join it again; they catch up with what it has begun."""
    with store.transaction() as tx:
        batch, tally = _added(tx, publisher, batch_id, rows, by, reason)
        return tally.change(batch)


def _added(
    tx: Transaction,
    publisher: Publisher,
    batch_id: int,
    rows: Iterable[Row | UploadedRow],
    by: str,
    reason: str | None,
    *,
    again: bool = False,
) -> tuple[BatchRow, _Tally]:
    batch, at, tally = _manual_batch(tx, batch_id), tx.time(), _Tally()
    lock_runbook(tx, batch.runbook_name)
    version = runbooks_by_id(tx, [batch.runbook_id])[0]
    for piece in keyed_pieces(rows, parse_runbook(version.yaml_content).data_source.primary_key):
        there = {folded(member.member_key) for member in members_with_keys(tx, batch.id, piece)} if again else set()
        tally.note(piece, there.union(_join(tx, publisher, batch, piece, at)))
    record(tx, batch, "batch.add_members", by, reason, None, {"members": tally.joined})
    return batch, tally


def _join(tx: Transaction, publisher: Publisher, batch: BatchRow, piece: Piece, at: datetime) -> Collection[str]:
    """Let the rows join that can, and return their folded keys."""
    known = {folded(member.member_key): member for member in members_with_keys(tx, batch.id, piece)}
    taken = taken_keys(tx, batch.runbook_name, piece, besides=batch.id) | excluded_keys(tx, batch.runbook_name)
    undone = {member.id for member in known.values() if member.undone_at is not None}
    # They begin without outputs, which the steps that undo may still need.
    undoing = busy_members(tx, undone)
    joining = {
        fold: row
        for fold, row in piece.items()
        if fold not in taken and (fold not in known or _is_out(known[fold], undoing))
    }
    # Before the batch begins there is nothing to catch up with.
    has_begun = batch.status is not BatchStatus.DETECTED
    caught_up_at = None if has_begun else at
    fresh = [_member(batch.id, key, row, caught_up_at) for fold, (key, row) in joining.items() if fold not in known]
    insert_members(tx, fresh, at)
    returns = [Return(known[fold].id, *data_of(row)) for fold, (_, row) in joining.items() if fold in known]
    return_members(tx, [back for back in returns if back.id not in undone], at)
    return_members(tx, [back for back in returns if back.id in undone], at, undone=True)
    added = members_with_keys(tx, batch.id, joining)
    if has_begun:
        announce_members(tx, publisher, added, at)
    else:
        note_caught_up(tx, [MemberAt(member.id, member.epoch) for member in added], at)
    return joining


def _is_out(member: NarrowMember, undoing: Collection[int]) -> bool:
    return member.status is MemberStatus.REMOVED and member.id not in undoing


def remove_from_manual_batch(
    store: Store, publisher: Publisher, batch_id: int, keys: Sequence[str], *, by: str, reason: str | None = None
) -> ManualChange:
    """Remove active members from a manual batch; their removal steps run."""
    with store.transaction() as tx:
        batch, at = _manual_batch(tx, batch_id), tx.time()
        wanted = {folded(key.strip()): key for key in keys}
        active = [member for member in members_with_keys(tx, batch_id, wanted) if member.status is MemberStatus.ACTIVE]
        missing = set(wanted) - {folded(member.member_key) for member in active}
        if missing or not active:
            raise UnknownMembers(batch_id, sorted(wanted[fold] for fold in missing), "active")
        ids = remove_and_announce(tx, publisher, [member.id for member in active], by, _why(reason), at)
        record(tx, batch, "batch.remove_members", by, reason, None, {"members": len(ids)})
        return ManualChange(batch, len(active))


def _why(reason: str | None) -> str:
    # Our own words come first, so that a person's text is never taken for a reason that the system acts on.
    return f"{_TAKEN_OUT}: {reason}" if reason else _TAKEN_OUT


def _manual_batch(tx: Transaction, batch_id: int) -> BatchRow:
    batch = locked_batch(tx, batch_id)
    if not batch.is_manual:
        raise NotManual(batch_id)
    if batch.status not in UNFINISHED_BATCHES:
        raise WrongBatchStatus(batch_id, batch.status, "its members can change only until it has ended")
    return batch


def version_in_use(tx: Transaction, runbook_name: str) -> RunbookRow:
    """Return the version that a new manual batch would follow, or refuse."""
    version = active_runbook(tx, runbook_name)
    if version is not None:
        return version
    if latest_version(tx, runbook_name) is None:
        raise UnknownRunbook(runbook_name, runbook_names(tx))
    raise NoActiveVersion(runbook_name)


def _member(batch_id: int, key: str, row: Row, caught_up_at: datetime | None) -> NewMember:
    return NewMember(batch_id, key, *data_of(row), caught_up_at=caught_up_at)
