"""Phases under way, for what opens and shuts with time (rule K2)."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select

from matoolkit.domain.states import UNFINISHED_BATCHES, PhaseStatus
from matoolkit.records import record
from matoolkit.store.schema import batches, phase_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import change, is_any, rows_by_id
from matoolkit.store.sql.transaction import Transaction

_IS_RUNNING = is_any(phase_executions.c.status, {PhaseStatus.DISPATCHED})


@record
class RunningPhase:
    """A phase that has begun and not ended, where its rules stand, and when all in it were woken last."""

    id: int
    batch_id: int
    runbook_name: str
    runbook_version: int
    phase_index: int
    dispatched_at: datetime | None
    woken_at: datetime | None

    @property
    def looked_at(self) -> datetime | None:
        """When all in it were looked at last."""
        return self.woken_at or self.dispatched_at

    def was_looked_at_after(self, at: datetime) -> bool:
        """Tell whether that is still to come: the clock was put back."""
        return self.looked_at is not None and self.looked_at > at


def running_phases(tx: Transaction) -> list[RunningPhase]:
    """Return the phases that have begun and not ended, of unfinished batches, by id."""
    return rows_by_id(tx, RunningPhase, _running(tx))


@prepared
def _running(_draft: Drafting) -> Select[Any]:
    phases = (phase_executions.c[name] for name in ("runbook_version", "phase_index", "dispatched_at", "woken_at"))
    return (
        select(phase_executions.c.id, phase_executions.c.batch_id, batches.c.runbook_name, *phases)
        .join(batches, batches.c.id == phase_executions.c.batch_id)
        .where(_IS_RUNNING, is_any(batches.c.status, UNFINISHED_BATCHES))
    )


def note_woken(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Note that all who wait in phases were woken, and return those that have not ended meanwhile."""
    return change(tx, phase_executions, ids, {"woken_at": at}, _IS_RUNNING)
