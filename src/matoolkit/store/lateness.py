"""Phases and inits that are too late to begin by themselves, and the gates that a person opens for them (K5, S7).

Such a gate stands for a phase and the time at which it was due, or for an init and the T of its batch. If that is
another time since, nobody needs to open it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Select, Update, select, update

from matoolkit.domain.doors import Door
from matoolkit.domain.gates import Gate, GateKind
from matoolkit.domain.states import BatchStatus, PhaseStatus
from matoolkit.records import record
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.schema import batches, gates, phase_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, change, columns_of, insert_each, is_any, rows_by_id
from matoolkit.store.sql.transaction import Transaction

_IS_PENDING = is_any(phase_executions.c.status, {PhaseStatus.PENDING})
_IS_OF_PHASE = (is_any(gates.c.kind, {GateKind.LATE}), gates.c.phase_execution_id.is_not(None))
_ITS_PHASE = gates.c.phase_execution_id == phase_executions.c.id
_IS_OF_INIT = (
    is_any(gates.c.kind, {GateKind.LATE}),
    gates.c.phase_execution_id.is_(None),
    gates.c.hold_key.is_(None),
)
_ALIKE = {"kind": GateKind.LATE, "reach": Door.START, "shut_by": "scheduler"}
# These open gates too, but only because there is nothing left to decide.
_NOBODY = ("calendar", "system")
_OPENED_BY_PEOPLE = (gates.c.opened_at.is_not(None), ~is_any(gates.c.opened_by, _NOBODY))


@dataclass(frozen=True, slots=True)
class NewLateGate:
    """A gate for a phase that is too late, or for an init; `shown_json` has when it was due, or the T of its batch."""

    batch_id: int
    phase_execution_id: int | None
    shut_from: datetime
    swept_at: datetime
    reason: str
    shown_json: str


@record
class LateGate:
    """A gate for a phase that was too late, what it stands for, and how it is with the phase now."""

    id: int
    phase_execution_id: int
    shown_json: str
    status: PhaseStatus
    due_at: datetime | None

    @property
    def is_moved(self) -> bool:
        """Whether the phase is due at another time than the one it stands for."""
        was_due = orjson.loads(self.shown_json)["dueAt"]
        return self.due_at != (None if was_due is None else datetime.fromisoformat(was_due))


def shut_late_gates(tx: Transaction, new: Sequence[NewLateGate]) -> list[Gate]:
    """Shut gates for phases of locked batches, and return them; no job has left that could be taken back."""
    if not new:
        return []
    return tx.rows(Gate, insert_each(tx, gates, new, _ALIKE, returning=columns_of(Gate, gates)))


def late_gates(tx: Transaction) -> list[LateGate]:
    """Return the gates of phases that are too late which nobody has opened."""
    return tx.rows(LateGate, _late(tx))


@prepared
def _late(_draft: Drafting) -> Select[Any]:
    chosen = (gates.c.id, gates.c.phase_execution_id, gates.c.shown_json)
    query = select(*chosen, phase_executions.c.status, phase_executions.c.due_at)
    return query.join(phase_executions, _ITS_PHASE).where(gates.c.opened_at.is_(None), *_IS_OF_PHASE)


def late_gates_opened_by_people(tx: Transaction, phase_ids: Collection[int]) -> list[LateGate]:
    """Return the gates of phases that people opened: these phases may begin however late, if they are due as then."""
    return tx.rows(LateGate, _opened(tx, phase_ids)) if phase_ids else []


@prepared
def _opened(draft: Drafting, phase_ids: Collection[int]) -> Select[Any]:
    chosen = (gates.c.id, gates.c.phase_execution_id, gates.c.shown_json)
    query = select(*chosen, phase_executions.c.status, phase_executions.c.due_at)
    wanted = among(draft, gates.c.phase_execution_id, phase_ids)
    return query.join(phase_executions, _ITS_PHASE).where(wanted, *_OPENED_BY_PEOPLE, *_IS_OF_PHASE)


def lift_limits(tx: Transaction, phase_ids: Collection[int]) -> list[int]:
    """Let phases begin however late: a person says so; if they are due at another time, the limit counts again."""
    return change(tx, phase_executions, phase_ids, {"late_after": None}, _IS_PENDING) if phase_ids else []


def count_anew(tx: Transaction, batch_ids: Collection[int], at: datetime, limit: datetime) -> None:
    """Give the phases of batches that were due already another time until which they may begin."""
    if batch_ids:
        tx.execute(_anew(tx, batch_ids, at, limit))


@prepared
def _anew(draft: Drafting, batch_ids: Collection[int], at: datetime, limit: datetime) -> Update:
    was_due = (_IS_PENDING, phase_executions.c.due_at <= at)
    return (
        update(phase_executions)
        .where(among(draft, phase_executions.c.batch_id, batch_ids), *was_due)
        .values(late_after=limit)
    )


@dataclass(frozen=True, slots=True)
class NewLateInit:
    """An init that was not approved in time, the T that this is about, and what people are told."""

    batch_id: int
    start: datetime | None
    reason: str


def shut_late_inits(tx: Transaction, late: Sequence[NewLateInit], at: datetime) -> None:
    """Shut the gates of inits that were not approved in time; no job has left that could be taken back."""
    new = [NewLateGate(one.batch_id, None, at, at, one.reason, _shown(one.start)) for one in late]
    if new:
        tx.execute(insert_each(tx, gates, new, _ALIKE))


@record
class LateInit:
    """A shut gate of an init that was not approved in time, the T that it stands for, and its batch as it is now."""

    id: int
    batch_id: int
    shown_json: str
    batch_start_time: datetime | None
    status: BatchStatus

    @property
    def is_over(self) -> bool:
        """Whether the batch has another T since, or waits for no init."""
        is_moved = self.shown_json != _shown(self.batch_start_time)
        return is_moved or self.status is not BatchStatus.INIT_DISPATCHED


def late_inits(tx: Transaction) -> list[LateInit]:
    """Return the shut gates of inits that were not approved in time."""
    query = select(gates.c.id, gates.c.batch_id, gates.c.shown_json, batches.c.batch_start_time, batches.c.status)
    its_batch = query.join(batches, batches.c.id == gates.c.batch_id)
    return rows_by_id(tx, LateInit, its_batch.where(*_IS_OF_INIT, gates.c.opened_at.is_(None)))


def _shown(start: datetime | None) -> str:
    return orjson.dumps({"start": start}).decode()


def inits_let_in_late(tx: Transaction, batches: Collection[NarrowBatch]) -> set[int]:
    """Return the batches whose init a person let begin although it was late, with the T that they have now."""
    if not batches:
        return set()
    starts = {batch.id: _shown(batch.batch_start_time) for batch in batches}
    opened = tx.rows(lambda *row: row, _let_in_late(tx, starts))
    return {batch_id for batch_id, shown in opened if starts.get(batch_id) == shown}


@prepared
def _let_in_late(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    opened = (among(draft, gates.c.batch_id, batch_ids), *_IS_OF_INIT, *_OPENED_BY_PEOPLE)
    return select(gates.c.batch_id, gates.c.shown_json).where(*opened)
