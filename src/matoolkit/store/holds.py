"""Holds: gates that wait until a person approves exactly what they stand for (rules T6 and G10)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Update, func, select, update

from matoolkit.domain.doors import Door
from matoolkit.domain.gates import GateKind
from matoolkit.domain.moves.batch import HOLD
from matoolkit.domain.states import UNFINISHED_BATCHES
from matoolkit.store.gates import is_standing
from matoolkit.store.gatetimes import OPENED, OpenedGate, count_waits
from matoolkit.store.moves import make_alike
from matoolkit.store.noting import note_batches
from matoolkit.store.schema import batches, gates
from matoolkit.store.sql.prepared import Drafting, Ready, prepared
from matoolkit.store.sql.statements import among, change_each, insert_each, is_any, rows_by_id
from matoolkit.store.sql.transaction import Transaction

_STANDING = is_standing(gates)
_NOT_APPROVED: Mapping[str, Any] = {"approved_by": None, "approved_at": None}


@dataclass(frozen=True, slots=True)
class Hold:
    """What a batch waits for a person to approve, and who holds it."""

    batch_id: int
    kind: GateKind
    reason: str
    hold_key: str
    shown_json: str
    shut_by: str = "scheduler"


@dataclass(frozen=True, slots=True)
class _Standing:
    id: int
    batch_id: int
    hold_key: str


@dataclass(frozen=True, slots=True)
class _Restated:
    id: int
    kind: GateKind
    reason: str
    hold_key: str
    shown_json: str
    shut_by: str


def hold_batches(tx: Transaction, holds: Sequence[Hold], at: datetime) -> list[int]:
    """Hold unfinished batches that are locked, or let a hold stand for something else; return which changed.

    An earlier approval does not count for something else. A hold for the very same thing stays as it is, with its
    approval.
    """
    if not holds:
        return []
    standing = {one.batch_id: one for one in tx.rows(_Standing, _standing(tx, [hold.batch_id for hold in holds]))}
    begun = make_alike(tx, batches, HOLD, [hold.batch_id for hold in holds if hold.batch_id not in standing])
    new = [hold for hold in holds if hold.batch_id in begun]
    if new:
        tx.execute(insert_each(tx, gates, new, {"reach": Door.START, "shut_from": at}))
    others = {standing[hold.batch_id].id: hold for hold in holds if hold.batch_id in standing}
    restated = [
        _Restated(number, hold.kind, hold.reason, hold.hold_key, hold.shown_json, hold.shut_by)
        for number, hold in others.items()
    ]
    changed = change_each(tx, gates, restated, _NOT_APPROVED, *_STANDING, _IS_OF_UNFINISHED, differing=("hold_key",))
    again = [others[number].batch_id for number in changed]
    note_batches(tx, again)
    return sorted([*begun, *again])


_IS_OF_UNFINISHED = gates.c.batch_id.in_(select(batches.c.id).where(is_any(batches.c.status, UNFINISHED_BATCHES)))


@prepared
def _standing(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    chosen = (gates.c.id, gates.c.batch_id, gates.c.hold_key)
    return select(*chosen).where(among(draft, gates.c.batch_id, batch_ids), *_STANDING)


def release_batches(tx: Transaction, ids: Collection[int], at: datetime, by: str | None = None) -> list[int]:
    """End the holds of batches, and return whose; who approved one has opened it, or who else did, or the scheduler."""
    if not ids:
        return []
    opened = rows_by_id(tx, OpenedGate, _released(tx, ids, at, by or "scheduler"))
    count_waits(tx, opened, at)
    found = sorted(gate.batch_id for gate in opened if gate.batch_id is not None)
    note_batches(tx, found)
    return found


@prepared
def _released(draft: Drafting, ids: Collection[int], at: datetime, by: str) -> Update:
    opened = update(gates).where(among(draft, gates.c.batch_id, ids), *_STANDING)
    return opened.values(opened_at=at, opened_by=func.coalesce(gates.c.approved_by, by)).returning(*OPENED)


def approve_hold(tx: Transaction, batch_id: int, hold_key: str, by: str, at: datetime) -> list[int]:
    """Approve exactly what was shown, once; if the hold now stands for something else, nothing is approved."""
    return _changed(tx, _approved(tx, batch_id, hold_key, by, at))


def _changed(tx: Transaction, statement: Ready) -> list[int]:
    found = sorted(tx.values(statement))
    note_batches(tx, found)
    return found


@prepared
def _approved(_draft: Drafting, batch_id: int, hold_key: str, by: str, at: datetime) -> Update:
    shown = update(gates).where(gates.c.batch_id == batch_id, *_STANDING, gates.c.hold_key == hold_key)
    approved = shown.where(gates.c.approved_at.is_(None)).values(approved_by=by, approved_at=at)
    return approved.returning(gates.c.batch_id)
