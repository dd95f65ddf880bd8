"""Counts: what people look at first, and what ends phases and batches. Most are stored (see `counting.py`)."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import product
from typing import Any

from sqlalchemy import Select, case, func, literal_column, select

from matoolkit.domain.states import BatchStatus, MemberStatus, StepStatus
from matoolkit.store.memberfacts import Standing, standing_of
from matoolkit.store.schema import batch_members, batches, step_executions
from matoolkit.store.schema import member_counts as member_counts_table
from matoolkit.store.schema import step_counts as step_counts_table
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any
from matoolkit.store.sql.transaction import Transaction

_STATUS = step_executions.c.status
_ORDER = {status: place for place, status in enumerate(StepStatus)}


@dataclass(frozen=True, slots=True)
class BatchCount:
    """Batches of a runbook in one state."""

    runbook_name: str
    status: BatchStatus
    count: int


@dataclass(frozen=True, slots=True)
class MemberCount:
    """Members of a batch in one state."""

    batch_id: int
    status: MemberStatus
    count: int


@dataclass(frozen=True, slots=True)
class StepCount:
    """Steps of a phase in one state."""

    phase_execution_id: int
    status: StepStatus
    count: int


@dataclass(frozen=True, slots=True)
class PlacedStepCount:
    """Steps of a phase in one place and one state; the place is that of the step in the runbook's phase, from 0."""

    phase_execution_id: int
    step_index: int
    status: StepStatus
    count: int


@dataclass(frozen=True, slots=True)
class StandingCount:
    """Members of a batch that are counted together."""

    batch_id: int
    standing: Standing
    count: int


@dataclass(frozen=True, slots=True)
class PhaseOutcome:
    """How many members of a phase there are, and how many went through it."""

    phase_execution_id: int
    members: int
    members_through: int


def batch_counts(tx: Transaction) -> list[BatchCount]:
    """Count batches by runbook and status."""
    columns = (batches.c.runbook_name, batches.c.status)
    return tx.rows(BatchCount, select(*columns, func.count().label("count")).group_by(*columns).order_by(*columns))


def member_counts(tx: Transaction, batch_ids: Collection[int]) -> list[MemberCount]:
    """Count the members of batches by status."""
    found: Counter[tuple[int, MemberStatus]] = Counter()
    for one in standings(tx, batch_ids):
        found[one.batch_id, one.standing.status] += one.count
    pairs = product(sorted(set(batch_ids)), MemberStatus)
    return [MemberCount(*pair, found[pair]) for pair in pairs if found[pair]]


def active_counts(tx: Transaction, batch_ids: Collection[int]) -> dict[int, int]:
    """Count the active members of batches; a batch without any is left out."""
    counts = member_counts(tx, batch_ids)
    return {count.batch_id: count.count for count in counts if count.status is MemberStatus.ACTIVE}


def standings(tx: Transaction, batch_ids: Collection[int]) -> list[StandingCount]:
    """Count the members of batches by all that is counted of them."""
    if not batch_ids:
        return []
    tx.write_notes()
    counted = member_counts_table.c.counted_as
    there = (among(tx, member_counts_table.c.batch_id, batch_ids), member_counts_table.c.members > literal_column("0"))
    query = select(member_counts_table.c.batch_id, counted, member_counts_table.c.members).where(*there)
    return [StandingCount(batch, standing_of(number), count) for batch, number, count in tx.rows(_row, query)]


def step_counts(tx: Transaction, phase_ids: Collection[int]) -> list[StepCount]:
    """Count the steps of phases by status."""
    found: Counter[tuple[int, StepStatus]] = Counter()
    for one in step_counts_by_place(tx, phase_ids):
        found[one.phase_execution_id, one.status] += one.count
    pairs = product(sorted(set(phase_ids)), StepStatus)
    return [StepCount(*pair, found[pair]) for pair in pairs if found[pair]]


def step_counts_by_place(tx: Transaction, phase_ids: Collection[int]) -> list[PlacedStepCount]:
    """Count the steps of phases by their place in the phase and by status."""
    if not phase_ids:
        return []
    tx.write_notes()
    found = tx.rows(PlacedStepCount, _placed(tx, phase_ids))
    return sorted(found, key=lambda one: (one.phase_execution_id, one.step_index, _ORDER[one.status]))


@prepared
def _placed(draft: Drafting, phase_ids: Collection[int]) -> Select[Any]:
    counted = step_counts_table.c
    columns = (counted.phase_execution_id, counted.step_index, counted.status, counted.steps.label("count"))
    return select(*columns).where(
        among(draft, counted.phase_execution_id, phase_ids), counted.steps > literal_column("0")
    )


def _row(*cells: Any) -> tuple[Any, ...]:
    return cells


def phase_outcomes(tx: Transaction, phase_ids: Collection[int]) -> list[PhaseOutcome]:
    """Count for phases how many members have steps in them and how many had all of theirs succeed (O11).

    What a member did before it started all over is left out.
    """
    return tx.rows(PhaseOutcome, _outcomes(tx, phase_ids)) if phase_ids else []


@prepared
def _outcomes(draft: Drafting, phase_ids: Collection[int]) -> Select[Any]:
    phase, succeeded = step_executions.c.phase_execution_id, is_any(_STATUS, {StepStatus.SUCCEEDED})
    of_member = (
        select(phase, func.min(case((succeeded, 1), else_=0)).label("through"))
        .join(batch_members, batch_members.c.id == step_executions.c.batch_member_id)
        .where(among(draft, phase, phase_ids), step_executions.c.epoch == batch_members.c.epoch)
        .group_by(phase, step_executions.c.batch_member_id)
        .subquery()
    )
    query = select(
        of_member.c.phase_execution_id,
        func.count().label("members"),
        func.sum(of_member.c.through).label("members_through"),
    )
    return query.group_by(of_member.c.phase_execution_id).order_by(of_member.c.phase_execution_id)
