"""Executions as the orchestrator decides about them: narrow records, without parameters, results and errors.

`executions.py` has the whole rows.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeAlias

from sqlalchemy import ColumnElement, Select, Table, and_, or_, select

from matoolkit.domain.progress import OpenStep
from matoolkit.domain.states import OPEN_STEPS, RollbackCause
from matoolkit.domain.step import Step
from matoolkit.ids import Kind
from matoolkit.records import record
from matoolkit.store.executions import TABLES
from matoolkit.store.schema import init_executions, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any, records_among, rows_by_id, select_records
from matoolkit.store.sql.transaction import Transaction


@record
class ExecutionState(Step):
    """What all executed work has that matters for its next move and its next job, and that no runbook says."""

    batch_id: int
    step_index: int
    lost_at: datetime | None
    timeout_sec: int

    @property
    def is_in_flight(self) -> bool:
        """Whether a job is out whose answer may still come, even if the step itself was cancelled."""
        return self.lost_at is not None


@record
class StepState(ExecutionState):
    """A step of a member."""

    phase_execution_id: int
    batch_member_id: int
    epoch: int


@record
class NextStep(OpenStep):
    """A step of a member whose turn may come: what matters for its first job."""

    batch_id: int
    attempt: int
    timeout_sec: int
    batch_member_id: int
    epoch: int


@record
class InitState(ExecutionState):
    """A step of a batch's init, which has no member."""

    batch_member_id: ClassVar[None] = None
    runbook_version: int
    init_count: int


@record
class RollbackState(ExecutionState):
    """A compensating step."""

    batch_member_id: int | None
    epoch: int | None
    runbook_version: int
    cause: RollbackCause
    sequence_name: str
    sequence_key: str


State: TypeAlias = StepState | InitState | RollbackState


@record
class StoredCall:
    """The call that work was resolved to when it was first dispatched."""

    id: int
    function_name: str
    params_json: str


@record
class MissingOutputs:
    """Outputs that a step of a member promised and did not have."""

    id: int
    batch_member_id: int
    epoch: int
    step_name: str
    missing_outputs_json: str


def batches_of_work(tx: Transaction, kind: Kind, ids: Collection[int]) -> list[int]:
    """Return the batches that work belongs to, so that they can be locked before it is read (rule M5)."""
    if not ids:
        return []
    return sorted(tx.values(_batches_of_work(tx, ids, table=TABLES[kind])))


@prepared
def _batches_of_work(draft: Drafting, ids: Collection[int], *, table: Table) -> Select[Any]:
    return select(table.c.batch_id).where(among(draft, table.c.id, ids)).distinct()


def step_states(tx: Transaction, ids: Collection[int]) -> list[StepState]:
    """Return steps of members, by id."""
    return records_among(tx, StepState, step_executions, step_executions.c.id, ids)


def init_states(tx: Transaction, ids: Collection[int]) -> list[InitState]:
    """Return steps of init, by id."""
    return records_among(tx, InitState, init_executions, init_executions.c.id, ids)


def rollback_states(tx: Transaction, ids: Collection[int]) -> list[RollbackState]:
    """Return compensating steps, by id."""
    return records_among(tx, RollbackState, rollback_executions, rollback_executions.c.id, ids)


def states_of(tx: Transaction, kind: Kind, ids: Collection[int]) -> Mapping[int, State]:
    """Return executions of a kind by their ids."""
    states: Sequence[State]
    match kind:
        case Kind.STEP:
            states = step_states(tx, ids)
        case Kind.INIT:
            states = init_states(tx, ids)
        case Kind.ROLLBACK:
            states = rollback_states(tx, ids)
    return {state.id: state for state in states}


def next_steps_of_members(tx: Transaction, member_ids: Collection[int]) -> list[NextStep]:
    """Return the steps of members that decide what comes next, in all epochs, by id.

    They are every step whose job is out, and every open step whose direct predecessor is not open. So the first open
    step of each phase is among them.
    """
    return rows_by_id(tx, NextStep, _next_steps(tx, member_ids)) if member_ids else []


@prepared
def _next_steps(draft: Drafting, member_ids: Collection[int]) -> Select[Any]:
    mine, other = step_executions.c, step_executions.alias()
    same = [other.c[name] == mine[name] for name in ("batch_member_id", "epoch", "phase_execution_id")]
    # The step directly before is found by index. A search for any earlier open step would read all ended ones first.
    neighbour = (*same, other.c.step_index == mine.step_index - 1, is_any(other.c.status, OPEN_STEPS))
    none_before = select(other.c.id).where(*neighbour).scalar_subquery().is_(None)
    first_open = and_(is_any(mine.status, OPEN_STEPS), none_before)
    chosen = among(draft, mine.batch_member_id, member_ids)
    return select_records(NextStep, step_executions).where(chosen, or_(mine.lost_at.is_not(None), first_open))


def unfinished_rollbacks_of_members(tx: Transaction, member_ids: Collection[int]) -> list[RollbackState]:
    """Return the compensating steps of members that are open or whose job is out, by id."""
    return rows_by_id(tx, RollbackState, _unfinished_rollbacks(tx, member_ids)) if member_ids else []


@prepared
def _unfinished_rollbacks(draft: Drafting, member_ids: Collection[int]) -> Select[Any]:
    mine = among(draft, rollback_executions.c.batch_member_id, member_ids)
    return select_records(RollbackState, rollback_executions).where(mine, _is_unfinished(rollback_executions))


def unfinished_rollbacks_of_inits(tx: Transaction, batch_ids: Collection[int]) -> list[RollbackState]:
    """Return the compensating steps of batches' inits that are open or whose job is out, by id."""
    return rows_by_id(tx, RollbackState, _unfinished_of_inits(tx, batch_ids)) if batch_ids else []


@prepared
def _unfinished_of_inits(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    return select_records(RollbackState, rollback_executions).where(
        among(draft, rollback_executions.c.batch_id, batch_ids),
        rollback_executions.c.batch_member_id.is_(None),
        _is_unfinished(rollback_executions),
    )


def init_states_of_batches(tx: Transaction, batch_ids: Collection[int]) -> list[InitState]:
    """Return the steps of init of batches, of all versions, by id."""
    return records_among(tx, InitState, init_executions, init_executions.c.batch_id, batch_ids)


def stored_calls(tx: Transaction, kind: Kind, ids: Collection[int]) -> list[StoredCall]:
    """Return what work was resolved to when it was first dispatched, by id (rule R8)."""
    table = TABLES[kind]
    return records_among(tx, StoredCall, table, table.c.id, ids)


def missing_outputs_of_members(tx: Transaction, member_ids: Collection[int]) -> list[MissingOutputs]:
    """Return which steps of members owe outputs, by id (rule O15)."""
    return rows_by_id(tx, MissingOutputs, _missing_outputs(tx, member_ids)) if member_ids else []


@prepared
def _missing_outputs(draft: Drafting, member_ids: Collection[int]) -> Select[Any]:
    return select_records(MissingOutputs, step_executions).where(
        among(draft, step_executions.c.batch_member_id, member_ids),
        step_executions.c.missing_outputs_json.is_not(None),
    )


def _is_unfinished(table: Table) -> ColumnElement[Any]:
    return or_(is_any(table.c.status, OPEN_STEPS), table.c.lost_at.is_not(None))
