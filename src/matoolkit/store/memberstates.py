"""The states of members, as people see them (rule U1).

No state is stored: the rules of `domain/memberstate.py` become one expression, which looks up what a member has open.
It says the state of a page of members, of one batch or of many. `statecounts.py` counts without looking at everybody.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, literal_column, not_, select

from matoolkit.domain.memberstate import RULES, StateRule
from matoolkit.domain.phaseorder import PhaseOrder, phase_order
from matoolkit.domain.states import MemberState, MemberStatus, PhaseStatus, StepStatus
from matoolkit.records import record
from matoolkit.store.dialect.types import OneOf
from matoolkit.store.memberfacts import HAS_OPEN_STEP, IS_BEING_UNDONE, IS_CAUGHT_UP, IS_UNDONE, has
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any, select_records
from matoolkit.store.sql.transaction import Transaction


@record
class _CompletedPhase:
    """A phase that a member went through in its present epoch."""

    member_id: int
    phase_name: str
    runbook_version: int
    offset_minutes: int
    phase_index: int

    @property
    def order(self) -> PhaseOrder:
        return phase_order(self.runbook_version, self.offset_minutes, self.phase_index)


@record
class _Beginner:
    """A member that left out the first phases of a version, because it had completed them before."""

    id: int
    batch_id: int
    first_phase_version: int
    first_phase_place: int


def phase_is_beginning(batch_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Say that a phase of a batch has begun and has not given everybody its steps yet."""
    mine = phase_executions.c.batch_id == batch_id
    is_under_way = is_any(phase_executions.c.status, {PhaseStatus.DISPATCHED})
    return has(phase_executions, mine, is_under_way, phase_executions.c.expanded_at.is_(None))


def phase_is_ahead(batch_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Say that a phase of a batch is still to come."""
    mine = phase_executions.c.batch_id == batch_id
    return has(phase_executions, mine, is_any(phase_executions.c.status, {PhaseStatus.PENDING}))


# The facts of `MemberFacts` that are yes or no.
_CONDITIONS: dict[str, ColumnElement[bool]] = {
    "is_caught_up": IS_CAUGHT_UP,
    "has_open_step": HAS_OPEN_STEP,
    "is_being_undone": IS_BEING_UNDONE,
    "is_undone": IS_UNDONE,
    "is_phase_beginning": phase_is_beginning(batch_members.c.batch_id),
    "is_phase_ahead": phase_is_ahead(batch_members.c.batch_id),
}


def _fact(name: str, wanted: frozenset[Any]) -> ColumnElement[bool]:
    if name == "status":
        return is_any(batch_members.c.status, wanted)
    if name == "batch_status":
        return has(batches, batches.c.id == batch_members.c.batch_id, is_any(batches.c.status, wanted))
    return _CONDITIONS[name] if True in wanted else not_(_CONDITIONS[name])


def _fits(rule: StateRule) -> ColumnElement[bool]:
    return and_(*(_fact(name, wanted) for name, wanted in rule.facts.items()))


def _word(state: MemberState) -> ColumnElement[Any]:
    return literal_column(f"'{state}'", OneOf(MemberState))


STATE: ColumnElement[Any] = case(*((_fits(rule), _word(rule.state)) for rule in RULES))


def is_in_state(state: MemberState) -> list[ColumnElement[bool]]:
    """Return the conditions for members in a state; where it depends on the status, an index finds them by that."""
    statuses = [rule.facts.get("status", frozenset(MemberStatus)) for rule in RULES if rule.state is state]
    return [is_any(batch_members.c.status, frozenset[Any]().union(*statuses)), _word(state) == STATE]


def states_of_members(tx: Transaction, ids: Collection[int]) -> dict[int, MemberState]:
    """Return the states of members by their ids."""
    return dict(tx.rows(lambda *row: row, _states(tx, ids))) if ids else {}


@prepared
def _states(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    return select(batch_members.c.id, STATE).where(among(draft, batch_members.c.id, ids))


def last_completed_phases(tx: Transaction, ids: Collection[int]) -> dict[int, str]:
    """Return the name of the last phase that each member has completed, if it has completed one."""
    if not ids:
        return {}
    last: dict[int, _CompletedPhase] = {}
    for phase in tx.rows(_CompletedPhase, _completed(tx, ids)):
        if phase.member_id not in last or last[phase.member_id].order < phase.order:
            last[phase.member_id] = phase
    names = {number: phase.phase_name for number, phase in last.items()}
    return _left_out(tx, ids) | names


@prepared
def _completed(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    columns = [phase_executions.c[name] for name in ("phase_name", "runbook_version", "offset_minutes", "phase_index")]
    succeeded = is_any(step_executions.c.status, {StepStatus.SUCCEEDED})
    present = (
        step_executions.c.batch_member_id == batch_members.c.id,
        step_executions.c.epoch == batch_members.c.epoch,
    )
    return (
        select(batch_members.c.id.label("member_id"), *columns)
        .join(step_executions, and_(*present))
        .join(phase_executions, phase_executions.c.id == step_executions.c.phase_execution_id)
        .where(among(draft, batch_members.c.id, ids))
        .group_by(batch_members.c.id, phase_executions.c.id, *columns)
        .having(func.min(case((succeeded, 1), else_=0)) == literal_column("1"))
    )


def _left_out(tx: Transaction, ids: Collection[int]) -> dict[int, str]:
    """Return the last phase that members left out in this epoch because they had completed it before (rule O14)."""
    query = select_records(_Beginner, batch_members).where(
        among(tx, batch_members.c.id, ids), batch_members.c.first_phase_place > literal_column("0")
    )
    beginners = tx.rows(_Beginner, query)
    phases = sorted(phases_of_batches(tx, {one.batch_id for one in beginners}), key=lambda phase: phase.order)
    names: dict[tuple[int, int], list[str]] = {}
    for phase in phases:
        names.setdefault((phase.batch_id, phase.runbook_version), []).append(phase.phase_name)
    return {one.id: names[one.batch_id, one.first_phase_version][one.first_phase_place - 1] for one in beginners}
