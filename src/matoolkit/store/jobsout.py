"""Jobs that are out: sent, and neither answered nor lost."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, union_all

from matoolkit.store.schema import init_executions, rollback_executions, step_executions
from matoolkit.store.sql.transaction import Transaction

_KINDS = (step_executions, init_executions, rollback_executions)


@dataclass(frozen=True, slots=True)
class JobsOut:
    """How many jobs of a worker are out, when the oldest was sent, and when the first of them counts as lost."""

    worker_id: str
    jobs: int
    oldest_at: datetime | None
    first_lost_at: datetime | None


def jobs_out(tx: Transaction) -> list[JobsOut]:
    """Count the jobs that are out by worker, by name; what it costs grows with them only."""
    # Each has an index of its rows that wait for an answer.
    parts = [
        select(kind.c.worker_id, kind.c.dispatched_at, kind.c.lost_at).where(kind.c.lost_at.is_not(None))
        for kind in _KINDS
    ]
    out = union_all(*parts).subquery()
    counted = (
        func.count().label("jobs"),
        func.min(out.c.dispatched_at).label("oldest_at"),
        func.min(out.c.lost_at).label("first_lost_at"),
    )
    return tx.rows(JobsOut, select(out.c.worker_id, *counted).group_by(out.c.worker_id).order_by(out.c.worker_id))


def has_had_work(tx: Transaction, worker_id: str) -> bool:
    """Tell whether anything was ever to be done by a worker; it is asked only about workers that nobody knows."""
    return any(tx.values(select(kind.c.id).where(kind.c.worker_id == worker_id).limit(1)) for kind in _KINDS)
