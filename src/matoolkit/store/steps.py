"""Steps of members: creating and finding them, for any number of members in one query."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import Column, ColumnElement, Insert, Update, and_, exists, or_, select, type_coerce, update

from matoolkit.domain.moves.step import CANCEL
from matoolkit.domain.retrying import PastStep
from matoolkit.domain.states import StepStatus
from matoolkit.records import record
from matoolkit.store.executions import NewExecution, StepRow, steps_by_id, unstarted
from matoolkit.store.moves import forms_of, values_of
from matoolkit.store.noting import note_cancelled_steps, note_new_steps
from matoolkit.store.phases import phases_by_id, phases_of_batches
from matoolkit.store.schema import batch_members, step_executions
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import (
    among,
    columns_of,
    insert_each,
    is_any,
    records_among,
    rows_by_id,
    select_records,
)
from matoolkit.store.sql.transaction import Transaction

_KEY = ("batch_member_id", "epoch", "phase_execution_id", "step_index")
_OF_AN_OLDER_EPOCH = (
    step_executions.c.epoch
    < select(batch_members.c.epoch).where(batch_members.c.id == step_executions.c.batch_member_id).scalar_subquery()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStep(NewExecution):
    """A step to be created for a member in its present epoch."""

    batch_id: int
    phase_execution_id: int
    batch_member_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class PhasePlace:
    """A phase, and where it stands in the order in which the phases of its version run."""

    id: int
    version: int
    place: int


@dataclass(frozen=True, slots=True)
class InsertedStep:
    """Which step of which member got which id."""

    id: int
    phase_execution_id: int
    batch_member_id: int
    epoch: int
    step_index: int
    batch_id: int


@record
class CurrentStep(PastStep):
    """A step that a member has in its present epoch, and whose it is."""

    batch_member_id: int


@record
class DoneStep:
    """A step that a member has done, in some epoch."""

    phase_execution_id: int
    batch_member_id: int
    epoch: int
    step_index: int


@dataclass(frozen=True, slots=True)
class CancelledStep:
    """A step that was cancelled; `lost_at` is set if its job is still out."""

    id: int
    batch_member_id: int
    phase_execution_id: int
    step_index: int
    batch_id: int
    job_id: str | None
    lost_at: datetime | None


def insert_steps(tx: Transaction, new: Sequence[NewStep], at: datetime) -> list[InsertedStep]:
    """Create steps that members do not have yet, and return those that were created (rule O2)."""
    if not new:
        return []
    returning = columns_of(InsertedStep, step_executions)
    made = tx.rows(InsertedStep, insert_each(tx, step_executions, new, unstarted(at), _KEY, returning))
    places = Counter((step.phase_execution_id, step.step_index) for step in made)
    note_new_steps(tx, {step.batch_id for step in made}, places)
    return made


def insert_phase_steps(
    tx: Transaction, phase: PhasePlace, steps: Sequence[NewExecution], member_ids: Collection[int], at: datetime
) -> None:
    """Create the steps of a phase for members in their present epochs, a statement for each step of the runbook.

    Members who begin with a later phase of that version are left out (rule O14).
    """
    if not member_ids:
        return
    made: dict[tuple[int, int], int] = {}
    for step in steps:
        alike = Named(asdict(step) | unstarted(at) | {"phase_execution_id": phase.id})
        made[phase.id, step.step_index] = tx.changed(_phase_steps(tx, member_ids, alike, phase.version, phase.place))
    note_new_steps(tx, {owner.batch_id for owner in phases_by_id(tx, [phase.id])}, made)


@prepared
def _phase_steps(draft: Drafting, member_ids: Collection[int], alike: Named, version: int, place: int) -> Insert:
    chosen = select(batch_members.c.id, batch_members.c.batch_id, batch_members.c.epoch)
    goes_through = or_(
        batch_members.c.first_phase_version.is_(None),
        batch_members.c.first_phase_version != version,
        batch_members.c.first_phase_place <= place,
    )
    members = chosen.where(among(draft, batch_members.c.id, member_ids), goes_through).subquery()
    whose = {"batch_member_id": members.c.id, "batch_id": members.c.batch_id, "epoch": members.c.epoch}
    same = {name: type_coerce(value, step_executions.c[name].type) for name, value in alike.items()}
    return draft.insert_missing(step_executions, {**whose, **same}, members, _KEY, order_by=members.c.id)


def current_steps_of_members(tx: Transaction, member_ids: Collection[int]) -> list[CurrentStep]:
    """Return all steps of members in their present epochs, in every phase, by id (rule O3)."""
    if not member_ids:
        return []
    present = and_(
        batch_members.c.id == step_executions.c.batch_member_id,
        batch_members.c.epoch == step_executions.c.epoch,
    )
    query = select_records(CurrentStep, step_executions).join(batch_members, present)
    mine = among(tx, step_executions.c.batch_member_id, member_ids)
    return rows_by_id(tx, CurrentStep, query.where(mine))


def done_steps_of_members(tx: Transaction, member_ids: Collection[int]) -> list[DoneStep]:
    """Return the steps that members have done, in all their epochs."""
    if not member_ids:
        return []
    mine = among(tx, step_executions.c.batch_member_id, member_ids)
    done = is_any(step_executions.c.status, {StepStatus.SUCCEEDED})
    return tx.rows(DoneStep, select_records(DoneStep, step_executions).where(mine, done))


def members_in_phases(tx: Transaction, phase_ids: Collection[int], member_ids: Collection[int]) -> set[tuple[int, int]]:
    """Return which of the members have steps of their present epoch in which of the phases, as phase and member."""
    present = and_(
        batch_members.c.id == step_executions.c.batch_member_id,
        batch_members.c.epoch == step_executions.c.epoch,
    )
    query = (
        select(step_executions.c.phase_execution_id, step_executions.c.batch_member_id)
        .join(batch_members, present)
        .where(
            among(tx, step_executions.c.batch_member_id, member_ids),
            among(tx, step_executions.c.phase_execution_id, phase_ids),
            step_executions.c.step_index == 0,
        )
    )
    return set(tx.rows(lambda phase, member: (phase, member), query))


def members_yet_to_begin(tx: Transaction, phase_ids: Collection[int], without: int) -> set[int]:
    """Return who has yet to begin one of the phases, and has no steps in the phase `without`."""
    if not phase_ids:
        return set()
    other = step_executions.alias()
    has_other = exists().where(
        other.c.batch_member_id == step_executions.c.batch_member_id,
        other.c.epoch == step_executions.c.epoch,
        other.c.phase_execution_id == without,
    )
    query = select(step_executions.c.batch_member_id).where(
        among(tx, step_executions.c.phase_execution_id, phase_ids),
        is_any(step_executions.c.status, {StepStatus.PENDING}),
        step_executions.c.step_index == 0,
        ~has_other,
    )
    return set(tx.values(query))


def steps_of_members(tx: Transaction, member_ids: Collection[int]) -> list[StepRow]:
    """Return all steps of members in all their epochs, by id: their whole history."""
    return records_among(tx, StepRow, step_executions, step_executions.c.batch_member_id, member_ids)


def cancel_steps_of_members(tx: Transaction, member_ids: Collection[int], at: datetime) -> list[CancelledStep]:
    """Cancel all open steps of members, in every phase (rules O5 and O8)."""
    return _cancel(tx, "batch_member_id", member_ids, at)


def cancel_steps_of_older_epochs(tx: Transaction, member_ids: Collection[int], at: datetime) -> list[CancelledStep]:
    """Cancel the open steps that members have left from before they started all over (rules O5 and O10)."""
    return _cancel(tx, "batch_member_id", member_ids, at, _OF_AN_OLDER_EPOCH)


def cancel_steps_of_phases(tx: Transaction, phase_ids: Collection[int], at: datetime) -> list[CancelledStep]:
    """Cancel all open steps of phases that are superseded or cancelled."""
    return _cancel(tx, "phase_execution_id", phase_ids, at)


def cancel_steps_of_batches(tx: Transaction, batch_ids: Collection[int], at: datetime) -> list[CancelledStep]:
    """Cancel all open steps of batches (rule O12)."""
    return cancel_steps_of_phases(tx, [phase.id for phase in phases_of_batches(tx, batch_ids)], at)


def steps_page(
    tx: Transaction, batch_id: int, *, phase_id: int | None = None, after: int = 0, limit: int = 100
) -> list[StepRow]:
    """Return one page of the steps of a batch, by id, from after the last id of the page before."""
    query = select_records(StepRow, step_executions).where(
        step_executions.c.batch_id == batch_id, step_executions.c.id > after
    )
    if phase_id is not None:
        query = query.where(step_executions.c.phase_execution_id == phase_id)
    return tx.rows(StepRow, query.order_by(step_executions.c.id).limit(limit))


def steps_in_state_page(
    tx: Transaction, phase_ids: Collection[int], status: StepStatus, *, after: int = 0, limit: int = 100
) -> list[StepRow]:
    """Return one page of the steps of phases that are in a state, by id, from after the last id of the page before.

    Each phase is asked for numbers: an index of states of whole batches would have to follow every move.
    """
    wanted = (is_any(step_executions.c.status, {status}), step_executions.c.id > after)
    first = select(step_executions.c.id).where(*wanted).order_by(step_executions.c.id).limit(limit)
    found = [
        number
        for phase in phase_ids
        for number in tx.values(first.where(step_executions.c.phase_execution_id == phase))
    ]
    return steps_by_id(tx, sorted(found)[:limit])


def _cancel(
    tx: Transaction, column: str, ids: Collection[int], at: datetime, *guards: ColumnElement[bool]
) -> list[CancelledStep]:
    if not ids:
        return []
    cancelled: list[CancelledStep] = []
    # One after the other, because no database says which status a row had before, and the counts have to know.
    for status, its_guards in forms_of(CANCEL):
        statement = _cancelled(
            *(tx, ids, Named(values_of(step_executions, CANCEL, at))),
            column=step_executions.c[column],
            guards=(*its_guards, *guards),
        )
        if found := tx.rows(CancelledStep, statement):
            note_cancelled_steps(tx, status, found)
            cancelled += found
    return sorted(cancelled, key=attrgetter("id"))


@prepared
def _cancelled(
    draft: Drafting,
    ids: Collection[int],
    values: Named,
    *,
    column: Column[Any],
    guards: tuple[ColumnElement[bool], ...],
) -> Update:
    mine = update(step_executions).where(among(draft, column, ids), *guards)
    return mine.values(values).returning(*columns_of(CancelledStep, step_executions))
