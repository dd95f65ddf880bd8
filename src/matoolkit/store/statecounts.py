"""Counts of members by state, for whole batches (rule U1).

Most members of a batch are alike. Only those are looked at one by one who left, wait to catch up or are being undone;
the others are counted as they are in `counts.py`, and their steps by those that are open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, case, false, func, select, true, union

from matoolkit.domain.memberstate import MemberFacts, state_of
from matoolkit.domain.states import OPEN_STEPS, BatchStatus, MemberState, MemberStatus, PhaseStatus
from matoolkit.store.counts import MemberCount
from matoolkit.store.memberstates import HAS_OPEN_STEP, STATE, phase_is_ahead, phase_is_beginning
from matoolkit.store.schema import batch_members, batches, phase_executions, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class StateCount:
    """Members of a batch in one state."""

    batch_id: int
    state: MemberState
    count: int


@dataclass(frozen=True, slots=True)
class _BatchFacts:
    """What is the same for all members of a batch, and how many of them have an open step."""

    batch_id: int
    batch_status: BatchStatus
    is_phase_beginning: bool
    is_phase_ahead: bool
    busy: int


@dataclass(frozen=True, slots=True)
class _Special:
    """Members of a batch whose state is looked up one by one."""

    batch_id: int
    status: MemberStatus
    state: MemberState
    has_open_step: bool
    count: int


def state_counts(tx: Transaction, counts: Sequence[MemberCount]) -> list[StateCount]:
    """Count members by state; they were counted by status before, in the same transaction."""
    ids = sorted({count.batch_id for count in counts})
    if not ids:
        return []
    special = tx.rows(_Special, _specials(tx, ids))
    found: dict[tuple[int, MemberState], int] = {(one.batch_id, one.state): 0 for one in special}
    for one in special:
        found[one.batch_id, one.state] += one.count
    for batch in tx.rows(_BatchFacts, _batch_facts(tx, ids)):
        mine = [one for one in special if one.batch_id == batch.batch_id]
        for count in counts:
            if count.batch_id == batch.batch_id:
                for state, many in _ordinary(batch, count, mine):
                    found[batch.batch_id, state] = found.get((batch.batch_id, state), 0) + many
    order = {state: place for place, state in enumerate(MemberState)}
    pairs = sorted(found, key=lambda pair: (pair[0], order[pair[1]]))
    return [StateCount(*pair, found[pair]) for pair in pairs if found[pair] > 0]


def _ordinary(batch: _BatchFacts, counted: MemberCount, special: Sequence[_Special]) -> list[tuple[MemberState, int]]:
    """Count the other members of one status: some have an open step, and that is all that tells them apart."""
    rest = counted.count - sum(one.count for one in special if one.status is counted.status)
    is_active = counted.status is MemberStatus.ACTIVE
    busy = batch.busy - sum(one.count for one in special if one.has_open_step) if is_active else 0
    return [(_state(batch, counted.status, True), busy), (_state(batch, counted.status, False), rest - busy)]


def _state(batch: _BatchFacts, status: MemberStatus, has_open_step: bool) -> MemberState:
    return state_of(
        MemberFacts(
            status=status,
            batch_status=batch.batch_status,
            is_caught_up=True,
            has_open_step=has_open_step,
            is_being_undone=False,
            is_undone=False,
            is_phase_beginning=batch.is_phase_beginning,
            is_phase_ahead=batch.is_phase_ahead,
        )
    )


@prepared
def _batch_facts(draft: Drafting, ids: Any) -> Select[Any]:
    number = batches.c.id
    # Only active members have open steps, and only in phases that have begun.
    busy = (
        select(func.count(step_executions.c.batch_member_id.distinct()))
        .join(phase_executions, phase_executions.c.id == step_executions.c.phase_execution_id)
        .where(
            phase_executions.c.batch_id == number,
            is_any(phase_executions.c.status, {PhaseStatus.DISPATCHED}),
            is_any(step_executions.c.status, OPEN_STEPS),
        )
        .scalar_subquery()
    )
    columns = (
        number.label("batch_id"),
        batches.c.status.label("batch_status"),
        _yes_or_no(phase_is_beginning(number)).label("is_phase_beginning"),
        _yes_or_no(phase_is_ahead(number)).label("is_phase_ahead"),
        busy.label("busy"),
    )
    return select(*columns).where(among(draft, number, ids))


@prepared
def _specials(draft: Drafting, ids: Any) -> Select[Any]:
    member = batch_members.c
    undone = select(rollback_executions.c.batch_member_id).where(
        among(draft, rollback_executions.c.batch_id, ids), is_any(rollback_executions.c.status, OPEN_STEPS)
    )
    left = select(member.id).where(among(draft, member.batch_id, ids), is_any(member.status, {MemberStatus.REMOVED}))
    waiting = select(member.id).where(
        among(draft, member.batch_id, ids), is_any(member.status, {MemberStatus.ACTIVE}), member.caught_up_at.is_(None)
    )
    chosen = union(undone, left, waiting).subquery()
    each = (
        select(member.batch_id, member.status, STATE.label("state"), _yes_or_no(HAS_OPEN_STEP).label("has_open_step"))
        .where(member.id.in_(select(chosen.c[0])))
        .subquery()
    )
    return select(*each.c, func.count().label("count")).group_by(*each.c)


def _yes_or_no(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return case((condition, true()), else_=false())
