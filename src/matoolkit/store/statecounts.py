"""Counts of members by state, for whole batches (rule U1).

What the rows of members say is counted as it changes (see `counting.py`), and the rules of `domain/memberstate.py` make
states of it. Only who has an open step is not: that would be a write for every member and phase. It is seen from the
counts of steps, because a member has all steps of a phase from its beginning and ends the last one last.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, case, false, func, select, true, union

from matoolkit.domain.memberstate import MemberFacts, state_of
from matoolkit.domain.states import OPEN_STEPS, BatchStatus, MemberState, MemberStatus, PhaseStatus
from matoolkit.store.counts import MemberCount, PlacedStepCount, StandingCount, standings, step_counts_by_place
from matoolkit.store.memberfacts import HAS_ANY_OPEN_STEP, HAS_OPEN_STEP, NUMBER, Standing, standing_of
from matoolkit.store.memberstates import phase_is_ahead, phase_is_beginning
from matoolkit.store.schema import batch_members, batches, phase_executions, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any
from matoolkit.store.sql.transaction import Transaction

_ORDINARY = Standing(MemberStatus.ACTIVE, is_caught_up=True)


@dataclass(frozen=True, slots=True)
class StateCount:
    """Members of a batch in one state."""

    batch_id: int
    state: MemberState
    count: int


@dataclass(frozen=True, slots=True)
class _BatchFacts:
    """What is the same for all members of a batch."""

    batch_id: int
    batch_status: BatchStatus
    is_phase_beginning: bool
    is_phase_ahead: bool


@dataclass(frozen=True, slots=True)
class _Busy:
    """Members of a batch that are counted together and have an open step, in their present epoch or left over."""

    batch_id: int
    number: int
    has_open_step: bool
    count: int


@dataclass(frozen=True, slots=True)
class _Running:
    id: int
    batch_id: int


def state_counts(tx: Transaction, counts: Sequence[MemberCount]) -> list[StateCount]:
    """Count members by state; they were counted by status before, in the same transaction."""
    ids = sorted({count.batch_id for count in counts})
    if not ids:
        return []
    groups = standings(tx, ids)
    busy = _busy_members(tx, ids, groups)
    batches_of = {facts.batch_id: facts for facts in tx.rows(_BatchFacts, _batch_facts(tx, ids))}
    found: Counter[tuple[int, MemberState]] = Counter()
    for group in groups:
        facts, at_work = batches_of[group.batch_id], busy[group.batch_id, group.standing]
        found[group.batch_id, _state(facts, group.standing, True)] += at_work
        found[group.batch_id, _state(facts, group.standing, False)] += group.count - at_work
    order = {state: place for place, state in enumerate(MemberState)}
    pairs = sorted(found, key=lambda pair: (pair[0], order[pair[1]]))
    return [StateCount(*pair, found[pair]) for pair in pairs if found[pair] > 0]


def _state(batch: _BatchFacts, standing: Standing, has_open_step: bool) -> MemberState:
    return state_of(
        MemberFacts(
            status=standing.status,
            batch_status=batch.batch_status,
            is_caught_up=standing.is_caught_up,
            has_open_step=has_open_step,
            is_being_undone=standing.is_being_undone,
            is_undone=standing.is_undone,
            is_phase_beginning=batch.is_phase_beginning,
            is_phase_ahead=batch.is_phase_ahead,
        )
    )


def _busy_members(
    tx: Transaction, ids: Sequence[int], groups: Sequence[StandingCount]
) -> Counter[tuple[int, Standing]]:
    """Count who has an open step: most are ordinary, and the others are looked at one by one if there are any."""
    busy: Counter[tuple[int, Standing]] = Counter()
    totals = _busy_totals(tx, ids)
    unusual = {group.batch_id for group in groups if not group.standing.is_ordinary and totals[group.batch_id]}
    for one in tx.rows(_Busy, _unusual(tx, sorted(unusual))) if unusual else ():
        standing = standing_of(one.number)
        if not standing.is_ordinary:
            busy[one.batch_id, standing] += one.count if one.has_open_step else 0
            totals[one.batch_id] -= one.count
    for batch_id, total in totals.items():
        busy[batch_id, _ORDINARY] = total
    return busy


def _busy_totals(tx: Transaction, ids: Sequence[int]) -> Counter[int]:
    """Count the members of batches who have an open step in a phase that has begun."""
    phases = tx.rows(_Running, _running(tx, ids))
    open_steps: dict[int, list[PlacedStepCount]] = {}
    for one in step_counts_by_place(tx, [phase.id for phase in phases]):
        if one.status in OPEN_STEPS:
            open_steps.setdefault(one.phase_execution_id, []).append(one)
    of_batches: dict[int, list[int]] = {}
    for phase in phases:
        if phase.id in open_steps:
            of_batches.setdefault(phase.batch_id, []).append(_members_at_work(open_steps[phase.id]))
    totals = Counter({batch_id: members[0] for batch_id, members in of_batches.items() if len(members) == 1})
    # Who goes through two phases at once has open steps in both, so the members themselves are counted.
    overlapping = sorted(batch_id for batch_id, members in of_batches.items() if len(members) > 1)
    return totals + Counter(dict(tx.rows(_row, _at_work(tx, overlapping)) if overlapping else ()))


def _members_at_work(counts: Sequence[PlacedStepCount]) -> int:
    last = max(one.step_index for one in counts)
    return sum(one.count for one in counts if one.step_index == last)


def _row(*cells: Any) -> tuple[Any, ...]:
    return cells


@prepared
def _running(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    mine = among(draft, phase_executions.c.batch_id, ids)
    return select(phase_executions.c.id, phase_executions.c.batch_id).where(
        mine, is_any(phase_executions.c.status, {PhaseStatus.DISPATCHED})
    )


@prepared
def _at_work(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    # Only active members have open steps, and only in phases that have begun.
    members = func.count(step_executions.c.batch_member_id.distinct())
    return (
        select(phase_executions.c.batch_id, members)
        .join(step_executions, phase_executions.c.id == step_executions.c.phase_execution_id)
        .where(
            among(draft, phase_executions.c.batch_id, ids),
            is_any(phase_executions.c.status, {PhaseStatus.DISPATCHED}),
            is_any(step_executions.c.status, OPEN_STEPS),
        )
        .group_by(phase_executions.c.batch_id)
    )


@prepared
def _batch_facts(draft: Drafting, ids: Any) -> Select[Any]:
    number = batches.c.id
    columns = (
        number.label("batch_id"),
        batches.c.status.label("batch_status"),
        _yes_or_no(phase_is_beginning(number)).label("is_phase_beginning"),
        _yes_or_no(phase_is_ahead(number)).label("is_phase_ahead"),
    )
    return select(*columns).where(among(draft, number, ids))


@prepared
def _unusual(draft: Drafting, ids: Any) -> Select[Any]:
    """Find the few who may have an open step and are not simply active: on the way in, out, or being undone."""
    member = batch_members.c
    undone = select(rollback_executions.c.batch_member_id).where(
        among(draft, rollback_executions.c.batch_id, ids), is_any(rollback_executions.c.status, OPEN_STEPS)
    )
    leaving = select(member.id).where(member.removed_at.is_not(None), member.seen_off_at.is_(None))
    waiting = select(member.id).where(
        among(draft, member.batch_id, ids), is_any(member.status, {MemberStatus.ACTIVE}), member.caught_up_at.is_(None)
    )
    chosen = union(undone, leaving, waiting).subquery()
    each = (
        select(member.batch_id, NUMBER.label("number"), _yes_or_no(HAS_OPEN_STEP).label("has_open_step"))
        .where(member.id.in_(select(chosen.c[0])), among(draft, member.batch_id, ids), HAS_ANY_OPEN_STEP)
        .subquery()
    )
    return select(*each.c, func.count().label("count")).group_by(*each.c)


def _yes_or_no(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return case((condition, true()), else_=false())
