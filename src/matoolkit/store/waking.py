"""Who is looked at when a gate opens (rule G8), and which jobs are out when one shuts (rule G4)."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Update, and_, exists, func, null, or_, select, update

from matoolkit.domain.states import MemberStatus, StepStatus
from matoolkit.ids import Kind
from matoolkit.records import record
from matoolkit.store.executions import TABLES
from matoolkit.store.schema import batch_members, batches, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any, rows_by_id
from matoolkit.store.sql.transaction import Transaction


@record
class JobOut:
    """Work whose job is out, and what a gate wants to know of it."""

    id: int
    status: StepStatus
    job_id: str
    lost_at: datetime
    worker_id: str
    phase_execution_id: int | None
    member_key: str | None


def jobs_out_of(tx: Transaction, kind: Kind, batch_id: int) -> list[JobOut]:
    """Return all work of a batch whose job is out, cancelled work included, by id."""
    return rows_by_id(tx, JobOut, _out(tx, batch_id, kind=kind))


@prepared
def _out(_draft: Drafting, batch_id: int, *, kind: Kind) -> Select[Any]:
    table = TABLES[kind]
    chosen = (table.c.id, table.c.status, table.c.job_id, table.c.lost_at, table.c.worker_id)
    is_out = (table.c.batch_id == batch_id, table.c.lost_at.is_not(None))
    if "batch_member_id" not in table.c:
        return select(*chosen, null().label("phase_execution_id"), null().label("member_key")).where(*is_out)
    its = table.outerjoin(batch_members, batch_members.c.id == table.c.batch_member_id)
    phase = table.c.phase_execution_id if "phase_execution_id" in table.c else null().label("phase_execution_id")
    return select(*chosen, phase, batch_members.c.member_key).select_from(its).where(*is_out)


@record
class WokenBatch:
    """A batch, and how often all who wait in it were woken."""

    id: int
    runbook_name: str
    wake_count: int


def count_wakes(tx: Transaction, batch_ids: Collection[int]) -> list[WokenBatch]:
    """Count one more time for batches that all who wait in them are woken; return them by id (rule M2)."""
    return rows_by_id(tx, WokenBatch, _wakes(tx, batch_ids)) if batch_ids else []


@prepared
def _wakes(draft: Drafting, batch_ids: Collection[int]) -> Update:
    woken = update(batches).where(among(draft, batches.c.id, batch_ids))
    counted = woken.values(wake_count=func.coalesce(batches.c.wake_count, 0) + 1)
    return counted.returning(batches.c.id, batches.c.runbook_name, batches.c.wake_count)


def joiners_among(tx: Transaction, member_ids: Collection[int]) -> list[int]:
    """Return those of some members who take part and have yet to be given their steps, in order (rule O10)."""
    return tx.values(_joiners(tx, member_ids)) if member_ids else []


@prepared
def _joiners(draft: Drafting, member_ids: Collection[int]) -> Select[Any]:
    waits = (is_any(batch_members.c.status, {MemberStatus.ACTIVE}), batch_members.c.caught_up_at.is_(None))
    mine = among(draft, batch_members.c.id, member_ids)
    return select(batch_members.c.id).where(mine, *waits).order_by(batch_members.c.id)


def members_to_wake(tx: Transaction, batch_id: int, *, after: int, limit: int) -> list[int]:
    """Return a slice of the members of a batch that may have something to do: their ids, in order."""
    return tx.values(_to_wake(tx, batch_id, after, limit=limit))


@prepared
def _to_wake(_draft: Drafting, batch_id: int, after: int, *, limit: int) -> Select[Any]:
    joins = (is_any(batch_members.c.status, {MemberStatus.ACTIVE}), batch_members.c.caught_up_at.is_(None))
    waits = [
        exists().where(table.c.batch_member_id == batch_members.c.id, is_any(table.c.status, {StepStatus.PENDING}))
        for table in (step_executions, rollback_executions)
    ]
    mine = (batch_members.c.batch_id == batch_id, batch_members.c.id > after)
    return select(batch_members.c.id).where(*mine, or_(and_(*joins), *waits)).order_by(batch_members.c.id).limit(limit)
