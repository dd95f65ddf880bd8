"""Pilots and failures of phases, counted from rows (rules C1 to C4)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, literal_column, or_, select, true

from matoolkit.domain.gates import GateKind
from matoolkit.domain.states import (
    EXCLUDED,
    FAILED_STEPS,
    OPEN_STEPS,
    UNFINISHED_BATCHES,
    MemberStatus,
    PhaseStatus,
    StepStatus,
)
from matoolkit.records import record
from matoolkit.store.phases import PhaseRow
from matoolkit.store.schema import batch_members, batches, gates, phase_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, change, changing_each, is_any, select_records
from matoolkit.store.sql.transaction import Transaction

_IS_PILOT = batch_members.c.is_pilot == true()
_UNOPENED = gates.c.opened_at.is_(None)
_PRESENT = and_(
    batch_members.c.id == step_executions.c.batch_member_id, batch_members.c.epoch == step_executions.c.epoch
)


@record
class MemberData:
    """A member's row, as it is when its batch begins."""

    id: int
    data_json: str


@dataclass(frozen=True, slots=True)
class MembersOfPhase:
    """How many members were active when a phase began."""

    id: int
    member_count: int


@record
class PilotTally:
    """How many pilots the batch of a phase has, and how far they are in the phase."""

    phase_execution_id: int
    pilots: int
    open: int
    failed: int
    through: int


@record
class BudgetGate:
    """A gate of a phase in which too many failed, and how many may have failed since a person opened it."""

    phase_execution_id: int
    id: int
    opened_at: datetime | None
    allowed: int | None


def first_active_members(tx: Transaction, batch_id: int, limit: int) -> list[int]:
    """Return the active members with the lowest ids, in order."""
    return tx.values(_first_active(tx, batch_id, limit=limit))


@prepared
def _first_active(_draft: Drafting, batch_id: int, *, limit: int) -> Select[Any]:
    mine = (batch_members.c.batch_id == batch_id, is_any(batch_members.c.status, {MemberStatus.ACTIVE}))
    return select(batch_members.c.id).where(*mine).order_by(batch_members.c.id).limit(limit)


def data_of_active_members(tx: Transaction, batch_id: int, *, after: int = 0, limit: int = 1000) -> list[MemberData]:
    """Return a slice of the rows of active members, by id."""
    return tx.rows(MemberData, _data_of_active(tx, batch_id, after, limit=limit))


@prepared
def _data_of_active(_draft: Drafting, batch_id: int, after: int, *, limit: int) -> Select[Any]:
    mine = (batch_members.c.batch_id == batch_id, is_any(batch_members.c.status, {MemberStatus.ACTIVE}))
    query = select_records(MemberData, batch_members).where(*mine, batch_members.c.id > after)
    return query.order_by(batch_members.c.id).limit(limit)


def make_pilots(tx: Transaction, member_ids: Collection[int]) -> None:
    """Let members go first (rule C1)."""
    change(tx, batch_members, member_ids, {"is_pilot": True})


def note_members_of_phases(tx: Transaction, counts: Sequence[MembersOfPhase]) -> None:
    """Note how many members were active when phases began (rule C3)."""
    if counts:
        tx.values(changing_each(tx, phase_executions, counts, {}, returning=(phase_executions.c.id,)))


def failures_in(tx: Transaction, phase_ids: Collection[int]) -> dict[int, int]:
    """Count the members who have failed in phases, in their present epochs; phases without any are left out (C3)."""
    return dict(tx.rows(lambda *row: row, _failures(tx, phase_ids))) if phase_ids else {}


@prepared
def _failures(draft: Drafting, phase_ids: Collection[int]) -> Select[Any]:
    phase = step_executions.c.phase_execution_id
    failed = select(phase, func.count(step_executions.c.batch_member_id.distinct())).join(batch_members, _PRESENT)
    mine = (among(draft, phase, phase_ids), is_any(step_executions.c.status, FAILED_STEPS))
    return failed.where(*mine).group_by(phase)


def pilot_tallies(tx: Transaction, phase_ids: Collection[int]) -> dict[int, PilotTally]:
    """Count the pilots of phases; a batch without pilots is left out (rule C2)."""
    if not phase_ids:
        return {}
    return {tally.phase_execution_id: tally for tally in tx.rows(PilotTally, _tallies(tx, phase_ids))}


@prepared
def _tallies(draft: Drafting, phase_ids: Collection[int]) -> Select[Any]:
    status, phase = step_executions.c.status, phase_executions.c.id
    its_steps = and_(_PRESENT, step_executions.c.phase_execution_id == phase)
    joined = phase_executions.join(batch_members, batch_members.c.batch_id == phase_executions.c.batch_id)
    of_pilot = (
        select(
            phase.label("phase_execution_id"),
            batch_members.c.id.label("pilot"),
            func.max(_one_if(_IS_TAKEN_BACK)).label("taken_back"),
            func.max(_one_if(_CATCHES_UP)).label("catches_up"),
            func.count(step_executions.c.id).label("steps"),
            func.sum(_one_if(is_any(status, OPEN_STEPS))).label("open"),
            func.sum(_one_if(is_any(status, FAILED_STEPS))).label("failed"),
            func.sum(_one_if(is_any(status, {StepStatus.SUCCEEDED}))).label("done"),
        )
        .select_from(joined.outerjoin(step_executions, its_steps))
        .where(among(draft, phase, phase_ids), _IS_PILOT)
        .group_by(phase, batch_members.c.id)
        .subquery()
    )
    one = of_pilot.c
    began, taken_back = one.steps > _ZERO, one.taken_back > _ZERO
    return select(
        one.phase_execution_id,
        func.count().label("pilots"),
        func.sum(_one_if(or_(one.open > _ZERO, one.catches_up > _ZERO))).label("open"),
        func.sum(_one_if(or_(one.failed > _ZERO, and_(began, taken_back)))).label("failed"),
        func.sum(_one_if(and_(began, ~taken_back, one.done == one.steps))).label("through"),
    ).group_by(one.phase_execution_id)


# Whose work a person had undone, or who was excluded, has not shown that it works.
_IS_TAKEN_BACK = and_(
    is_any(batch_members.c.status, {MemberStatus.REMOVED}),
    or_(batch_members.c.undone_at.is_not(None), batch_members.c.remove_reason == literal_column(f"'{EXCLUDED}'")),
)
# Who has yet to be given the steps of phases that have begun.
_CATCHES_UP = and_(is_any(batch_members.c.status, {MemberStatus.ACTIVE}), batch_members.c.caught_up_at.is_(None))
_ZERO: ColumnElement[int] = literal_column("0")


def note_pilots_done(tx: Transaction, phase_ids: Collection[int], at: datetime | None) -> None:
    """Note when the last pilot had ended phases, or that one has begun them again."""
    change(tx, phase_executions, phase_ids, {"pilot_done_at": at})


def phases_after_pilots(tx: Transaction) -> list[PhaseRow]:
    """Return the phases under way whose pilots have ended them, by id."""
    return tx.rows(PhaseRow, _after_pilots(tx))


@prepared
def _after_pilots(_draft: Drafting) -> Select[Any]:
    query = select_records(PhaseRow, phase_executions).join(batches, batches.c.id == phase_executions.c.batch_id)
    return query.where(
        is_any(phase_executions.c.status, {PhaseStatus.DISPATCHED}),
        phase_executions.c.pilot_done_at.is_not(None),
        is_any(batches.c.status, UNFINISHED_BATCHES),
    ).order_by(phase_executions.c.id)


def budget_gates_of(tx: Transaction, phase_ids: Collection[int]) -> list[BudgetGate]:
    """Return the gates of phases in which too many failed, opened ones included, by id."""
    return tx.rows(BudgetGate, _budget_gates(tx, phase_ids)) if phase_ids else []


@prepared
def _budget_gates(draft: Drafting, phase_ids: Collection[int]) -> Select[Any]:
    mine = (among(draft, gates.c.phase_execution_id, phase_ids), is_any(gates.c.kind, {GateKind.BUDGET}))
    return select_records(BudgetGate, gates).where(*mine).order_by(gates.c.id)


def allow_failures(tx: Transaction, gate_id: int, allowed: int) -> None:
    """Note how many may have failed in a phase before its gate, which is being opened, is shut again (rule C4)."""
    change(tx, gates, [gate_id], {"allowed": allowed}, _UNOPENED)


def _one_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, literal_column("1")), else_=literal_column("0"))
