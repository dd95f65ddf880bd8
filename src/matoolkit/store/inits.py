"""Steps of init: they belong to a batch and run one after the other."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, false, func, select

from matoolkit.domain.states import BatchStatus, StepStatus
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.executions import InitRow, NewExecution, unstarted
from matoolkit.store.noting import note_batches
from matoolkit.store.schema import batches, init_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import (
    among,
    change,
    columns_of,
    insert_each,
    is_any,
    records_among,
    rows_by_id,
    select_records,
)
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInit(NewExecution):
    """A step of init to be created for a batch."""

    batch_id: int
    runbook_version: int
    init_count: int


def insert_inits(tx: Transaction, new: Sequence[NewInit], at: datetime) -> list[InitRow]:
    """Create steps of init that batches do not have yet, and return those that were created (rule O1)."""
    if not new:
        return []
    key = ("batch_id", "runbook_version", "step_index")
    statement = insert_each(tx, init_executions, new, unstarted(at), key, columns_of(InitRow, init_executions))
    made = tx.rows(InitRow, statement)
    note_batches(tx, {init.batch_id for init in made})
    return sorted(made, key=lambda init: init.id)


def note_requested(tx: Transaction, ids: Collection[int], init_count: int) -> list[int]:
    """Let steps of init run for another request."""
    return change(tx, init_executions, ids, {"init_count": init_count})


def begun_inits(tx: Transaction, batch_ids: Collection[int]) -> set[tuple[int, int, int]]:
    """Return the inits of batches that ever sent a job, as batch, version and request."""
    return set(tx.rows(lambda *row: row, _begun(tx, batch_ids))) if batch_ids else set()


@prepared
def _begun(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    mine = init_executions.c
    has_begun = (among(draft, mine.batch_id, batch_ids), ~is_any(mine.status, {StepStatus.PENDING}))
    return select(mine.batch_id, mine.runbook_version, mine.init_count).where(*has_begun).distinct()


def latest_init_versions(tx: Transaction, batch_ids: Collection[int]) -> dict[int, int]:
    """Return the newest version that batches have steps of init of; those without any are left out."""
    return dict(tx.rows(lambda *row: row, _latest(tx, batch_ids))) if batch_ids else {}


@prepared
def _latest(draft: Drafting, batch_ids: Collection[int]) -> Select[Any]:
    mine = init_executions.c
    newest = select(mine.batch_id, func.max(mine.runbook_version)).where(among(draft, mine.batch_id, batch_ids))
    return newest.group_by(mine.batch_id)


def inits_of_batches(tx: Transaction, batch_ids: Collection[int]) -> list[InitRow]:
    """Return the steps of init of batches, of all versions, by id."""
    return records_among(tx, InitRow, init_executions, init_executions.c.batch_id, batch_ids)


def batches_before_init(tx: Transaction) -> list[NarrowBatch]:
    """Return the batches whose init was asked for and has not ended, by id; manual ones have no times."""
    waiting = (is_any(batches.c.status, {BatchStatus.INIT_DISPATCHED}), batches.c.is_manual == false())
    return rows_by_id(tx, NarrowBatch, select_records(NarrowBatch, batches).where(*waiting))
