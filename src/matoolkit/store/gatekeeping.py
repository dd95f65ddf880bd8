"""Shutting, opening and finding gates that people shut, and what has to be done for each (rules G4 and G8)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Update, case, exists, or_, select, update

from matoolkit.domain.doors import Door
from matoolkit.domain.gates import Gate, GateKind
from matoolkit.domain.states import UNFINISHED_BATCHES
from matoolkit.store.batches import IS_UNDOING, NarrowBatch
from matoolkit.store.gates import has_begun
from matoolkit.store.gatetimes import OPENED, OpenedGate, count_waits
from matoolkit.store.schema import batch_members, batches, gates
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import among, insert_each, is_any, rows_by_id, select_records
from matoolkit.store.sql.transaction import Transaction

# Holds have ways of their own to end (rule T6).
_OF_PEOPLE = gates.c.hold_key.is_(None)
_UNOPENED = gates.c.opened_at.is_(None)


@dataclass(frozen=True, slots=True)
class NewGate:
    """A gate that somebody shuts; what it does not name it covers whatever it is."""

    kind: GateKind
    reach: Door
    worker_id: str | None
    runbook_name: str | None
    batch_id: int | None
    phase_execution_id: int | None
    member_key: str | None
    member_key_fold: str | None
    shut_from: datetime
    shut_until: datetime | None
    shut_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class GateRow(NewGate):
    """A gate as it is stored."""

    id: int
    hold_key: str | None
    allowed: int | None
    swept_at: datetime | None
    opened_at: datetime | None
    opened_by: str | None
    opened_reason: str | None


def shut_gate(tx: Transaction, new: NewGate) -> int:
    """Shut a gate, and return its number."""
    number: int = tx.values(insert_each(tx, gates, [new], {}, returning=(gates.c.id,)))[0]
    return number


def gates_by_id(tx: Transaction, ids: Collection[int]) -> list[GateRow]:
    """Return gates, by id."""
    return rows_by_id(tx, GateRow, _by_id(tx, ids)) if ids else []


@prepared
def _by_id(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    return select_records(GateRow, gates).where(among(draft, gates.c.id, ids))


def gates_page(
    tx: Transaction,
    *,
    is_unopened: bool,
    batch_id: int | None = None,
    kind: GateKind | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[GateRow]:
    """Return one page of gates, newest first: those that have not been opened, or all."""
    wanted: list[ColumnElement[bool]] = [_UNOPENED] if is_unopened else []
    if batch_id is not None:
        wanted.append(gates.c.batch_id == batch_id)
    if kind is not None:
        wanted.append(gates.c.kind == kind)
    if before is not None:
        wanted.append(gates.c.id < before)
    return tx.rows(GateRow, select_records(GateRow, gates).where(*wanted).order_by(gates.c.id.desc()).limit(limit))


def unopened_gates(tx: Transaction) -> list[GateRow]:
    """Return the gates that people shut and that have not been opened, by id."""
    return rows_by_id(tx, GateRow, _unopened(tx))


@prepared
def _unopened(_draft: Drafting) -> Select[Any]:
    return select_records(GateRow, gates).where(_UNOPENED, _OF_PEOPLE)


def open_gates(tx: Transaction, ids: Collection[int], at: datetime, by: str, reason: str | None) -> list[int]:
    """Open gates that people shut, and return which were shut; whom they kept is to be woken then."""
    opened = rows_by_id(tx, OpenedGate, _opened(tx, ids, at, by, reason)) if ids else []
    count_waits(tx, opened, at)
    return [gate.id for gate in opened]


@prepared
def _opened(draft: Drafting, ids: Collection[int], at: datetime, by: str, reason: str | None) -> Update:
    opened = update(gates).where(among(draft, gates.c.id, ids), _UNOPENED, _OF_PEOPLE)
    # One that was to shut later has kept nothing that would have to be woken.
    swept_at = case((~has_begun(gates, at), at), else_=None)
    written = {"opened_at": at, "opened_by": by, "opened_reason": reason, "swept_at": swept_at}
    return opened.values(written).returning(*OPENED)


def gates_to_sweep(tx: Transaction, at: datetime) -> list[GateRow]:
    """Return gates of people whose jobs are yet to be taken back, or whose work is yet to be woken, by id."""
    return rows_by_id(tx, GateRow, _to_sweep(tx, at))


@prepared
def _to_sweep(_draft: Drafting, at: datetime) -> Select[Any]:
    return select_records(GateRow, gates).where(_OF_PEOPLE, gates.c.swept_at.is_(None), has_begun(gates, at))


def note_swept(tx: Transaction, gate_id: int, at: datetime, *, is_opened: bool) -> None:
    """Note that what follows from the latest change of a gate was done, if it is still the latest."""
    tx.execute(_swept(tx, gate_id, at, is_opened=is_opened))


@prepared
def _swept(_draft: Drafting, gate_id: int, at: datetime, *, is_opened: bool) -> Update:
    state = gates.c.opened_at.is_not(None) if is_opened else _UNOPENED
    return update(gates).where(gates.c.id == gate_id, state).values(swept_at=at)


def gates_since(tx: Transaction, since: datetime, at: datetime) -> list[Gate]:
    """Return the gates at the send door that were shut at some moment since a time, by id (rule G7)."""
    return rows_by_id(tx, Gate, _since(tx, since, at))


@prepared
def _since(_draft: Drafting, since: datetime, at: datetime) -> Select[Any]:
    was_shut = (
        or_(_UNOPENED, gates.c.opened_at > since),
        or_(gates.c.shut_until.is_(None), gates.c.shut_until > since),
    )
    at_send_door = is_any(gates.c.reach, {Door.SEND})
    return select_records(Gate, gates).where(at_send_door, gates.c.shut_from < at, *was_shut)


def batches_behind(tx: Transaction, gate: GateRow) -> list[NarrowBatch]:
    """Return the batches in which a gate may keep something: unfinished ones, and those that undo; by id."""
    named = {"runbook_name": gate.runbook_name, "id": gate.batch_id}
    of_batch = Named({name: value for name, value in named.items() if value is not None})
    of_member = Named() if gate.member_key_fold is None else Named(member_key_fold=gate.member_key_fold)
    return rows_by_id(tx, NarrowBatch, _behind(tx, of_batch, of_member))


@prepared
def _behind(_draft: Drafting, of_batch: Named, of_member: Named) -> Select[Any]:
    query = select_records(NarrowBatch, batches).where(
        or_(is_any(batches.c.status, UNFINISHED_BATCHES), IS_UNDOING),
        *(batches.c[name] == value for name, value in of_batch.items()),
    )
    if of_member:
        its = (batch_members.c[name] == value for name, value in of_member.items())
        query = query.where(exists().where(batch_members.c.batch_id == batches.c.id, *its))
    return query


def batches_without_work(tx: Transaction, ids: Sequence[int]) -> list[int]:
    """Return those of these batches that have ended and undo nothing: a gate keeps nothing there any more."""
    return tx.values(_without_work(tx, ids)) if ids else []


@prepared
def _without_work(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    is_over = ~is_any(batches.c.status, UNFINISHED_BATCHES)
    return select(batches.c.id).where(among(draft, batches.c.id, ids), is_over, ~IS_UNDOING).order_by(batches.c.id)
