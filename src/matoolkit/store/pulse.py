"""How the work goes: steps that ended minute by minute, jobs that are out, and what was heard of workers.

Each query reads a stretch of one index. Those about jobs that are out read the first few, however many there are.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, func, select

from matoolkit.domain.states import PhaseStatus, StepStatus
from matoolkit.store.dialect.types import Instant
from matoolkit.store.schema import batches, phase_executions, step_executions, worker_functions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import is_any
from matoolkit.store.sql.transaction import Transaction

# Of the jobs that are out, those that will be given up first; of the steps that poll, those that answered last.
MOST_JOBS, _MOST_POLLS = 2000, 1000
_MOST_PHASES = 1000
# A step that was cancelled was not done.
_WORKED = (StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.POLL_TIMEOUT)
_step = step_executions.c


@dataclass(frozen=True, slots=True)
class Endings:
    """Steps of one worker that ended in one minute in one status."""

    begin: datetime
    worker_id: str
    status: StepStatus
    count: int


@dataclass(frozen=True, slots=True)
class OldestJobs:
    """Jobs of a worker that are out, among those that will be given up first, and since when the oldest is."""

    worker_id: str
    jobs: int
    oldest_at: datetime


@dataclass(frozen=True, slots=True)
class Heard:
    """When something was last heard of a worker."""

    worker_id: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Beginning:
    """A phase that began: when it was due, when its batch was found, and when it was dispatched."""

    due_at: datetime
    detected_at: datetime
    dispatched_at: datetime


def endings_by_minute(tx: Transaction, worker_ids: Collection[str], begins: Collection[datetime]) -> list[Endings]:
    """Count the steps of members that ended in minutes, by minute, worker and status."""
    cells = [
        (begin, begin + timedelta(minutes=1), worker_id, status)
        for begin in sorted(begins)
        for worker_id in sorted(worker_ids)
        for status in _WORKED
    ]
    counted = tx.rows(Endings, _endings(tx, cells)) if cells else []
    return [one for one in counted if one.count]


@prepared
def _endings(draft: Drafting, cells: Any) -> Select[Any]:
    # Each count is a stretch of the index. Grouping would sort all that ended in the hour.
    columns = {"begin": Instant(), "until": Instant(), "worker_id": _step.worker_id.type, "status": _step.status.type}
    given = draft.table_of(columns, cells)
    of_worker = (_step.worker_id == given.c.worker_id, _step.status == given.c.status)
    within = (_step.completed_at >= given.c.begin, _step.completed_at < given.c.until)
    count = select(func.count()).select_from(step_executions).where(*of_worker, *within).scalar_subquery()
    return select(given.c.begin, given.c.worker_id, given.c.status, count.label("count"))


def count_jobs_out(tx: Transaction) -> int:
    """Count the jobs of members that are out."""
    count: int = tx.values(_out(tx))[0]
    return count


@prepared
def _out(_draft: Drafting) -> Select[Any]:
    return select(func.count()).select_from(step_executions).where(_step.lost_at.is_not(None))


def oldest_jobs_out(tx: Transaction) -> list[OldestJobs]:
    """Count the jobs of each worker that are out, of those that will be given up first."""
    return tx.rows(OldestJobs, _oldest(tx))


@prepared
def _oldest(_draft: Drafting) -> Select[Any]:
    first = select(_step.worker_id, _step.dispatched_at).where(_step.lost_at.is_not(None))
    out = first.order_by(_step.lost_at, _step.id).limit(MOST_JOBS).subquery()
    counted = (func.count().label("jobs"), func.min(out.c.dispatched_at).label("oldest_at"))
    return select(out.c.worker_id, *counted).group_by(out.c.worker_id).order_by(out.c.worker_id)


def last_answers(tx: Transaction) -> list[Heard]:
    """Say when a step that polls last had an answer of each worker."""
    return tx.rows(Heard, _answers(tx))


@prepared
def _answers(_draft: Drafting) -> Select[Any]:
    first = select(_step.worker_id, _step.last_polled_at).where(is_any(_step.status, {StepStatus.POLLING}))
    last = first.order_by(_step.poll_due_at.desc(), _step.id.desc()).limit(_MOST_POLLS).subquery()
    return select(last.c.worker_id, func.max(last.c.last_polled_at).label("at")).group_by(last.c.worker_id)


def last_endings(tx: Transaction, worker_ids: Collection[str]) -> list[Heard]:
    """Say when a step of each worker last ended."""
    pairs = [(worker_id, status) for worker_id in sorted(worker_ids) for status in _WORKED]
    return [one for one in tx.rows(Heard, _last_endings(tx, pairs)) if one.at is not None] if pairs else []


@prepared
def _last_endings(draft: Drafting, pairs: Any) -> Select[Any]:
    given = draft.table_of({"worker_id": _step.worker_id.type, "status": _step.status.type}, pairs)
    of_worker = (_step.worker_id == given.c.worker_id, _step.status == given.c.status, _step.completed_at.is_not(None))
    last = select(func.max(_step.completed_at)).where(*of_worker).scalar_subquery()
    return select(given.c.worker_id, last.label("at"))


def last_hellos(tx: Transaction) -> list[Heard]:
    """Say when each worker last announced itself."""
    return tx.rows(Heard, _hellos(tx))


@prepared
def _hellos(_draft: Drafting) -> Select[Any]:
    worker = worker_functions.c.worker_id
    return select(worker, func.max(worker_functions.c.announced_at).label("at")).group_by(worker).order_by(worker)


def beginnings_since(tx: Transaction, since: datetime) -> list[Beginning]:
    """Return the phases that began since a time, in batches that nobody has ever had to approve."""
    return tx.rows(Beginning, _beginnings(tx, since))


@prepared
def _beginnings(_draft: Drafting, since: datetime) -> Select[Any]:
    phase = phase_executions.c
    query = (
        select(phase.due_at, batches.c.detected_at, phase.dispatched_at)
        .join(batches, batches.c.id == phase.batch_id)
        .where(
            phase.dispatched_at >= since,
            phase.due_at.is_not(None),
            is_any(phase.status, {PhaseStatus.DISPATCHED, PhaseStatus.COMPLETED, PhaseStatus.FAILED}),
            batches.c.hold_count == 0,
        )
    )
    return query.order_by(phase.dispatched_at.desc()).limit(_MOST_PHASES)
