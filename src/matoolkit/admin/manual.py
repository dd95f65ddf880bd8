"""Manual batches: made by a person from rows, and changed by a person (rule O13)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import Any

import orjson

from matoolkit.admin.recording import locked_batch, record
from matoolkit.domain.keys import folded, is_usable_key
from matoolkit.domain.messages import MemberAdded, MemberRemoved
from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, MemberStatus
from matoolkit.errors import (
    InvalidMembers,
    NoActiveVersion,
    NotManual,
    UnknownMembers,
    UnknownRunbook,
    WrongBatchStatus,
)
from matoolkit.ids import member_added_id, member_removed_id
from matoolkit.ports import Outgoing, Publisher
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, NewBatch, insert_batches
from matoolkit.store.members import (
    MemberAt,
    NewMember,
    Return,
    insert_members,
    note_add_dispatched,
    note_caught_up,
    note_remove_dispatched,
    remove_members,
    return_members,
)
from matoolkit.store.membership import busy_keys
from matoolkit.store.memberstates import keys_under_way, members_with_keys
from matoolkit.store.phases import NewPhase, insert_phases
from matoolkit.store.runbooks import active_runbook, latest_version, runbook_names, runbooks_by_id
from matoolkit.store.steps import cancel_steps_of_members
from matoolkit.store.withdrawal import withdraw_unsent

_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class ManualChange:
    """Who joined or left a manual batch, and who was left out: another batch has them, or still runs something."""

    batch: BatchRow
    members: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def create_manual_batch(
    store: Store, runbook_name: str, rows: Sequence[Mapping[str, Any]], *, by: str, reason: str | None = None
) -> ManualChange:
    """Make a batch of rows, as the active version of a runbook wants it; nothing runs before it is advanced."""
    with store.transaction() as tx:
        version = active_runbook(tx, runbook_name)
        if version is None:
            if latest_version(tx, runbook_name) is None:
                raise UnknownRunbook(runbook_name, runbook_names(tx))
            raise NoActiveVersion(runbook_name)
        model, at = parse_runbook(version.yaml_content), tx.time()
        keyed = _keyed(rows, model)
        taken = keys_under_way(tx, version.name, keyed) | busy_keys(tx, version.name, keyed)
        new = NewBatch(version.id, version.name, None, BatchStatus.DETECTED, is_manual=True, created_by=by)
        (batch,) = insert_batches(tx, [new], at)
        joining = {fold: row for fold, row in keyed.items() if fold not in taken}
        if not joining:
            raise InvalidMembers(["all of them are in batches under way, or something still runs for them there"])
        _insert(tx, (_member(batch.id, key, row, at) for key, row in joining.values()), at)
        phases = [
            NewPhase(batch.id, version.version, phase.name, index, phase.offset.minutes, None)
            for index, phase in enumerate(model.phases)
        ]
        insert_phases(tx, phases)
        record(tx, batch, "batch.create", by, reason, None, {"members": len(joining), "version": version.version})
        return ManualChange(batch, *_told(keyed, joining))


def add_to_manual_batch(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    rows: Sequence[Mapping[str, Any]],
    *,
    by: str,
    reason: str | None = None,
) -> ManualChange:
    """Let members join a manual batch, or join it again; they catch up with what it has begun."""
    with store.transaction() as tx:
        batch, at = _manual_batch(tx, batch_id), tx.time()
        keyed = _keyed(rows, parse_runbook(runbooks_by_id(tx, [batch.runbook_id])[0].yaml_content))
        known = {folded(member.member_key): member for member in members_with_keys(tx, batch_id, keyed)}
        taken = keys_under_way(tx, batch.runbook_name, keyed)
        taken |= busy_keys(tx, batch.runbook_name, keyed, besides=batch_id)
        joining = {
            fold: row
            for fold, row in keyed.items()
            if fold not in taken and (fold not in known or known[fold].status is MemberStatus.REMOVED)
        }
        # Before the batch begins there is nothing to catch up with.
        has_begun = batch.status is not BatchStatus.DETECTED
        caught_up_at = None if has_begun else at
        fresh = (_member(batch_id, key, row, caught_up_at) for fold, (key, row) in joining.items() if fold not in known)
        back = [Return(known[fold].id, *_data(row)) for fold, (_, row) in joining.items() if fold in known]
        _insert(tx, fresh, at)
        return_members(tx, back, at)
        added = members_with_keys(tx, batch_id, joining)
        if not has_begun:
            note_caught_up(tx, [MemberAt(member.id, member.epoch) for member in added], at)
        note_add_dispatched(tx, [member.id for member in added], at)
        publisher.publish(
            tx,
            [
                Outgoing(member_added_id(member.id, member.epoch), MemberAdded(batch_id, member.member_key, member.id))
                for member in added
                if has_begun
            ],
        )
        record(tx, batch, "batch.add_members", by, reason, None, {"members": len(joining)})
        return ManualChange(batch, *_told(keyed, joining))


def remove_from_manual_batch(
    store: Store, publisher: Publisher, batch_id: int, keys: Sequence[str], *, by: str, reason: str | None = None
) -> ManualChange:
    """Take active members out of a manual batch; what is to run for leavers runs."""
    with store.transaction() as tx:
        batch, at = _manual_batch(tx, batch_id), tx.time()
        wanted = {folded(key.strip()): key for key in keys}
        active = [member for member in members_with_keys(tx, batch_id, wanted) if member.status is MemberStatus.ACTIVE]
        missing = set(wanted) - {folded(member.member_key) for member in active}
        if missing or not active:
            raise UnknownMembers(batch_id, sorted(wanted[fold] for fold in missing), "active")
        ids = remove_members(tx, [member.id for member in active], by, reason or "removed by a person", at)
        withdraw_unsent(tx, publisher, cancel_steps_of_members(tx, ids, at))
        note_remove_dispatched(tx, ids, at)
        publisher.publish(
            tx,
            [
                Outgoing(
                    member_removed_id(member.id, member.epoch), MemberRemoved(batch_id, member.member_key, member.id)
                )
                for member in active
            ],
        )
        record(tx, batch, "batch.remove_members", by, reason, None, {"members": len(ids)})
        return ManualChange(batch, tuple(member.member_key for member in active))


def _manual_batch(tx: Transaction, batch_id: int) -> BatchRow:
    batch = locked_batch(tx, batch_id)
    if not batch.is_manual:
        raise NotManual(batch_id)
    if batch.status not in UNFINISHED_BATCHES:
        raise WrongBatchStatus(batch_id, batch.status, "its members can change only until it has ended")
    return batch


def _keyed(rows: Sequence[Mapping[str, Any]], model: Runbook) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Know rows by their folded keys; all that is wrong with them is said at once."""
    column = model.data_source.primary_key
    problems: list[str] = []
    keyed: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for number, row in enumerate(rows, start=1):
        cell = next((value for name, value in row.items() if name.casefold() == column.casefold()), None)
        key = "" if cell is None else str(cell).strip()
        if not is_usable_key(key):
            problems.append(f"row {number}: '{column}' holds no usable key")
        elif folded(key) in keyed:
            problems.append(f"row {number}: '{key}' stands in an earlier row too")
        else:
            keyed[folded(key)] = (key, row)
    if problems or not keyed:
        raise InvalidMembers(problems or ["there are no rows"])
    return keyed


def _insert(tx: Transaction, members: Iterator[NewMember], at: datetime) -> None:
    # In slices, so that a large file is not in memory a second time as statements.
    while some := list(islice(members, _AT_ONCE)):
        insert_members(tx, some, at)


def _member(batch_id: int, key: str, row: Mapping[str, Any], caught_up_at: Any) -> NewMember:
    return NewMember(batch_id, key, *_data(row), caught_up_at=caught_up_at)


def _data(row: Mapping[str, Any]) -> tuple[str, str]:
    data = orjson.dumps(dict(row), option=orjson.OPT_SORT_KEYS)
    return data.decode(), blake2b(data, digest_size=16).hexdigest()


def _told(keyed: Mapping[str, tuple[str, Any]], joining: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    joined = tuple(key for fold, (key, _) in keyed.items() if fold in joining)
    return joined, tuple(key for fold, (key, _) in keyed.items() if fold not in joining)
