"""Phases that are too late to begin by themselves, and the gates that a person opens for them (rule K5).

Such a gate stands for a phase and the time at which it was due. If it is due at another time, nobody needs to open it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Select, Update, select, update

from matoolkit.domain.doors import Door
from matoolkit.domain.gates import Gate, GateKind
from matoolkit.domain.states import PhaseStatus
from matoolkit.records import record
from matoolkit.store.schema import gates, phase_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, change, columns_of, insert_each, is_any
from matoolkit.store.sql.transaction import Transaction

_IS_PENDING = is_any(phase_executions.c.status, {PhaseStatus.PENDING})
_IS_OF_PHASE = (is_any(gates.c.kind, {GateKind.LATE}), gates.c.phase_execution_id.is_not(None))
_ITS_PHASE = gates.c.phase_execution_id == phase_executions.c.id
_SHUT_BY = "scheduler"
# These open gates too, but only because there is nothing left to decide.
_NOBODY = ("calendar", "system")
OPENED_BY_PEOPLE = (gates.c.opened_at.is_not(None), ~is_any(gates.c.opened_by, _NOBODY))


@dataclass(frozen=True, slots=True)
class NewLateGate:
    """A gate for a phase that is too late; `shown_json` has when it was due."""

    batch_id: int
    phase_execution_id: int
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
    alike = {"kind": GateKind.LATE, "reach": Door.START, "shut_by": _SHUT_BY}
    return tx.rows(Gate, insert_each(tx, gates, new, alike, returning=columns_of(Gate, gates)))


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
    return query.join(phase_executions, _ITS_PHASE).where(wanted, *OPENED_BY_PEOPLE, *_IS_OF_PHASE)


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
