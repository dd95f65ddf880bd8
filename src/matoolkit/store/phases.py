"""Phases of batches: finding what is due, and making their moves."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, exists, func, or_, select, true

from matoolkit.domain.moves import Move
from matoolkit.domain.moves.phase import CANCEL, DISPATCH, EXPAND, REOPEN, RESCHEDULE, SKIP, SUPERSEDE
from matoolkit.domain.phaseorder import PhaseOrder, phase_order
from matoolkit.domain.states import (
    OPEN_PHASES,
    OPEN_STEPS,
    BatchStatus,
    MemberStatus,
    PhaseStatus,
)
from matoolkit.store.batches import IS_UNDOING
from matoolkit.store.gates import keeps_phases_of_batch
from matoolkit.store.memberfacts import IS_TO_SEE_OFF
from matoolkit.store.moves import make_alike, make_each
from matoolkit.store.noting import note_batches
from matoolkit.store.schema import (
    batch_members,
    batches,
    phase_executions,
    runbook_ticks,
    runbooks,
    step_executions,
)
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import (
    among,
    columns_of,
    insert_each,
    is_any,
    records_among,
    select_records,
)
from matoolkit.store.sql.transaction import Transaction

_PENDING = is_any(phase_executions.c.status, {PhaseStatus.PENDING})
_DISPATCHED = is_any(phase_executions.c.status, {PhaseStatus.DISPATCHED})
_OPEN = is_any(phase_executions.c.status, OPEN_PHASES)


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A phase of a batch as it is stored."""

    id: int
    batch_id: int
    runbook_version: int
    phase_name: str
    phase_index: int
    offset_minutes: int
    due_at: datetime | None
    status: PhaseStatus
    dispatched_at: datetime | None
    dispatch_count: int
    expanded_at: datetime | None
    completed_at: datetime | None
    member_count: int | None
    pilot_done_at: datetime | None
    woken_at: datetime | None
    late_after: datetime | None

    @property
    def order(self) -> PhaseOrder:
        """Where it stands in the order in which members go through the phases of their batch (rule O3)."""
        return phase_order(self.runbook_version, self.offset_minutes, self.phase_index)


@dataclass(frozen=True, slots=True)
class NewPhase:
    """A phase to be created."""

    batch_id: int
    runbook_version: int
    phase_name: str
    phase_index: int
    offset_minutes: int
    due_at: datetime | None
    status: PhaseStatus = PhaseStatus.PENDING
    completed_at: datetime | None = None
    late_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewDueTime:
    """When a phase is due after its batch was rescheduled, and until when it may begin."""

    id: int
    due_at: datetime
    late_after: datetime | None


def insert_phases(tx: Transaction, new: Sequence[NewPhase]) -> list[PhaseRow]:
    """Create phases that the batch does not have yet, and return those that were created."""
    if not new:
        return []
    key = ("batch_id", "runbook_version", "phase_index")
    returning = columns_of(PhaseRow, phase_executions)
    made = tx.rows(PhaseRow, insert_each(tx, phase_executions, new, {"dispatch_count": 0}, key, returning))
    note_batches(tx, {phase.batch_id for phase in made})
    return sorted(made, key=lambda phase: phase.id)


def phases_by_id(tx: Transaction, ids: Collection[int]) -> list[PhaseRow]:
    """Return phases, by id."""
    return records_among(tx, PhaseRow, phase_executions, phase_executions.c.id, ids)


def phases_over(tx: Transaction, ids: Collection[int]) -> set[int]:
    """Return those of these phases that have ended, with all later ones of their versions."""
    asked = phases_by_id(tx, ids)
    of_batches = phases_of_batches(tx, {phase.batch_id for phase in asked})
    unfinished = [phase for phase in of_batches if phase.status in OPEN_PHASES]
    return {
        phase.id
        for phase in asked
        if not any(
            (other.batch_id, other.runbook_version) == (phase.batch_id, phase.runbook_version)
            and other.order >= phase.order
            for other in unfinished
        )
    }


def phases_of_batches(tx: Transaction, batch_ids: Collection[int]) -> list[PhaseRow]:
    """Return all phases of batches, superseded ones included, by id."""
    return records_among(tx, PhaseRow, phase_executions, phase_executions.c.batch_id, batch_ids)


def next_dues(tx: Transaction, batch_ids: Collection[int]) -> dict[int, datetime]:
    """Return when the first of the phases is due that have not begun, by batch."""
    return dict(tx.rows(lambda *row: row, _next_dues(tx, batch_ids))) if batch_ids else {}


@prepared
def _next_dues(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    batch, due_at = phase_executions.c.batch_id, phase_executions.c.due_at
    mine = (among(draft, batch, batch_ids), _PENDING, due_at.is_not(None))
    return select(batch, func.min(due_at)).where(*mine).group_by(batch)


def due_phases(
    tx: Transaction,
    at: datetime,
    limit: int = 1000,
    runbook_name: str | None = None,
    *,
    after: PhaseRow | None = None,
    was_kept: bool = False,
) -> list[PhaseRow]:
    """Return pending phases whose time has come, of active batches that no gate keeps as a whole (T8, G5).

    With `was_kept` only those that the last tick saw and something kept, of batches that follow the active version.
    """
    wanted = Named() if runbook_name is None else Named(runbook_name=runbook_name)
    place = Named() if after is None else Named({name: getattr(after, name) for name in _PLACE})
    return tx.rows(PhaseRow, _due(tx, at, wanted, place, limit=limit, was_kept=was_kept))


# Phases that are due at the same moment begin in the order of their runbook.
_PLACE = ("due_at", "batch_id", "phase_index", "id")


@prepared
def _due(_draft: Drafting, at: datetime, wanted: Named, after: Named, *, limit: int, was_kept: bool) -> Select[Any]:
    query = (
        select_records(PhaseRow, phase_executions)
        .join(batches, batches.c.id == phase_executions.c.batch_id)
        .where(
            _PENDING,
            phase_executions.c.due_at <= at,
            is_any(batches.c.status, {BatchStatus.ACTIVE}),
            ~keeps_phases_of_batch(at),
            *(batches.c[name] == value for name, value in wanted.items()),
        )
    )
    if was_kept:
        query = query.join(runbooks, runbooks.c.id == batches.c.runbook_id).where(runbooks.c.is_active == true())
        query = query.join(runbook_ticks, runbook_ticks.c.runbook_key == runbooks.c.name_key)
        query = query.where(runbook_ticks.c.started_at >= phase_executions.c.due_at)
    order = [phase_executions.c[name] for name in _PLACE]
    if after:
        query = query.where(_is_after(order, [after[name] for name in _PLACE]))
    return query.order_by(*order).limit(limit)


def _is_after(columns: Sequence[Column[Any]], values: Sequence[Any]) -> ColumnElement[bool]:
    """Return whether a row comes after another one in the order of some columns."""
    first, value = columns[0], values[0]
    comes_later: ColumnElement[bool] = first > value
    if len(columns) == 1:
        return comes_later
    return or_(comes_later, and_(first == value, _is_after(columns[1:], values[1:])))


def phases_without_open_steps(tx: Transaction, ids: Collection[int] | None = None, limit: int = 1000) -> list[PhaseRow]:
    """Return dispatched phases all of whose steps have ended: of these, or of all for the sweep (O11, O16)."""
    wanted = Named() if ids is None else Named(id=ids)
    return tx.rows(PhaseRow, _without_open_steps(tx, wanted, limit=limit))


@prepared
def _without_open_steps(draft: Drafting, wanted: Named, *, limit: int) -> Select[Any]:
    open_step = exists().where(
        step_executions.c.phase_execution_id == phase_executions.c.id,
        is_any(step_executions.c.status, OPEN_STEPS),
    )
    query = select_records(PhaseRow, phase_executions).where(
        _DISPATCHED,
        phase_executions.c.expanded_at.is_not(None),
        ~open_step,
        *(among(draft, phase_executions.c[name], values) for name, values in wanted.items()),
    )
    return query.order_by(phase_executions.c.id).limit(limit)


def batches_without_open_phases(tx: Transaction, ids: Collection[int] | None = None, limit: int = 1000) -> list[int]:
    """Return active batches all of whose phases have ended: of these, or of all for the sweep (O11, O16).

    A batch whose members wait to be caught up or seen off, or are being compensated, has not ended (O9 and O11).
    """
    return tx.values(_without_open_phases(tx, Named() if ids is None else Named(id=ids), limit=limit))


@prepared
def _without_open_phases(draft: Drafting, wanted: Named, *, limit: int) -> Select[Any]:
    open_phase = exists().where(phase_executions.c.batch_id == batches.c.id, _OPEN)
    waiting = exists().where(
        batch_members.c.batch_id == batches.c.id,
        is_any(batch_members.c.status, {MemberStatus.ACTIVE}),
        batch_members.c.caught_up_at.is_(None),
    )
    leaving = exists().where(batch_members.c.batch_id == batches.c.id, *IS_TO_SEE_OFF)
    is_active = is_any(batches.c.status, {BatchStatus.ACTIVE})
    chosen = (among(draft, batches.c[name], values) for name, values in wanted.items())
    query = select(batches.c.id).where(is_active, ~open_phase, ~waiting, ~leaving, ~IS_UNDOING, *chosen)
    return query.order_by(batches.c.id).limit(limit)


def move_phases(tx: Transaction, move: Move[PhaseStatus], ids: Collection[int], at: datetime) -> list[int]:
    """Make the move that was decided for phases."""
    return make_alike(tx, phase_executions, move, ids, at)


def dispatch_phases(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Let pending phases begin."""
    return move_phases(tx, DISPATCH, ids, at)


def note_expanded(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Note that all members of dispatched phases have their steps."""
    return move_phases(tx, EXPAND, ids, at)


def skip_phases(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Skip pending phases that have no active member."""
    return move_phases(tx, SKIP, ids, at)


def supersede_phases(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Supersede open phases of an old version."""
    return move_phases(tx, SUPERSEDE, ids, at)


def cancel_phases(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """End open phases together with their batch."""
    return move_phases(tx, CANCEL, ids, at)


def reopen_phases(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Take up ended phases again whose steps run again; it counts as handled that they are due."""
    return move_phases(tx, REOPEN, ids, at)


def reschedule_phases(tx: Transaction, times: Sequence[NewDueTime]) -> list[int]:
    """Give pending phases other due times."""
    return make_each(tx, phase_executions, RESCHEDULE, times)
