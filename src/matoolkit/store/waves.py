"""Waves by their time: the batches that have T or a phase between two moments."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, false, or_, select, true

from matoolkit.domain.states import PhaseStatus
from matoolkit.store.gates import IS_HELD
from matoolkit.store.schema import batches, phase_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import is_any
from matoolkit.store.sql.transaction import Transaction

# So many are told apart at once; nobody looks at more on a calendar.
_MOST = 5000


@dataclass(frozen=True, slots=True)
class WaveHead:
    """A wave, and what decides whether it is drawn when there are many."""

    id: int
    runbook_name: str
    batch_start_time: datetime
    is_held: bool


def waves_between(tx: Transaction, begin: datetime, end: datetime) -> list[WaveHead]:
    """Return the batches of sources whose T, or a phase that counts, lies between two moments, by T."""
    return tx.rows(WaveHead, _between(tx, begin, end))


@prepared
def _between(_draft: Drafting, begin: datetime, end: datetime) -> Select[Any]:
    start, phase = batches.c.batch_start_time, phase_executions.c
    counts: ColumnElement[bool] = is_any(phase.status, set(PhaseStatus) - {PhaseStatus.SUPERSEDED})
    has_phase = exists().where(phase.batch_id == batches.c.id, counts, phase.due_at >= begin, phase.due_at < end)
    is_held = case((IS_HELD, true()), else_=false()).label("is_held")
    query = select(batches.c.id, batches.c.runbook_name, start, is_held)
    query = query.where(start.is_not(None), or_(and_(start >= begin, start < end), has_phase))
    return query.order_by(start, batches.c.id).limit(_MOST)
