"""Batches: finding and creating them, and making their moves."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, false, func, select, true

from matoolkit.domain.gates import GateKind
from matoolkit.domain.holds import NOT_BEGUN, HoldKind
from matoolkit.domain.moves import Move
from matoolkit.domain.moves.batch import (
    ACTIVATE,
    ADVANCE,
    CANCEL,
    FOLLOW,
    NOTE_REMOVALS,
    REOPEN,
    REOPEN_INIT,
    REQUEST_INIT,
    RESCHEDULE,
    TAKE_VERSION,
)
from matoolkit.domain.states import OPEN_STEPS, UNFINISHED_BATCHES, BatchStatus
from matoolkit.store.gates import IS_HELD, is_standing
from matoolkit.store.moves import make_alike, make_each
from matoolkit.store.noting import note_batches
from matoolkit.store.schema import batches, gates, rollback_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, columns_of, insert_each, is_any, rows_by_id, select_records
from matoolkit.store.sql.transaction import Transaction

_NOBODYS_TIME = datetime(1, 1, 2, tzinfo=UTC)
_UNFINISHED = is_any(batches.c.status, UNFINISHED_BATCHES)
_AUTOMATED = batches.c.is_manual == false()
_hold = gates.alias("hold")
# Something in a batch is being undone, which may be so after the batch has ended.
IS_UNDOING = exists().where(
    rollback_executions.c.batch_id == batches.c.id, is_any(rollback_executions.c.status, OPEN_STEPS)
)


@dataclass(frozen=True, slots=True)
class NarrowBatch:
    """A batch without what it is held for: those who lock it in a pile ask the gates (rule G1)."""

    id: int
    runbook_id: int
    runbook_name: str
    batch_start_time: datetime | None
    status: BatchStatus
    is_manual: bool
    created_by: str | None
    current_phase: str | None
    detected_at: datetime
    init_dispatched_at: datetime | None
    init_count: int
    completed_at: datetime | None
    reopened_at: datetime | None
    hold_count: int
    removals_approved_at: datetime | None


@dataclass(frozen=True, slots=True)
class BatchRow(NarrowBatch):
    """A batch as it is stored, with the hold that stands for it."""

    held_at: datetime | None
    gate_kind: GateKind | None
    hold_reason: str | None
    hold_key: str | None
    hold_json: str | None
    approved_hold_by: str | None
    approved_hold_at: datetime | None

    @property
    def is_held(self) -> bool:
        """Whether the batch waits for a person's approval."""
        return self.held_at is not None

    @property
    def hold_kind(self) -> HoldKind | None:
        """What waits for a person's approval, if something does."""
        return None if self.gate_kind is None else HoldKind(self.gate_kind)

    @property
    def approved_hold_key(self) -> str | None:
        """Fingerprint of what a person approved, if that is yet to be carried out."""
        return None if self.approved_hold_at is None else self.hold_key

    @property
    def is_unbegun(self) -> bool:
        """Whether it waits for a person before anything of it begins (rule T5)."""
        return self.hold_kind in NOT_BEGUN


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch to be created; a manual one has no start time."""

    runbook_id: int
    runbook_name: str
    batch_start_time: datetime | None
    status: BatchStatus
    is_manual: bool = False
    created_by: str | None = None
    init_dispatched_at: datetime | None = None
    init_count: int = 0


@dataclass(frozen=True, slots=True)
class Reschedule:
    """A new start time for a batch."""

    id: int
    batch_start_time: datetime


@dataclass(frozen=True, slots=True)
class BatchFilter:
    """Which batches are wanted; what is not said does not matter."""

    runbook_name: str | None = None
    runbook_id: int | None = None
    status: BatchStatus | None = None
    is_manual: bool | None = None
    is_held: bool | None = None


ALL_BATCHES = BatchFilter()


_WITH_HOLD = select(
    *columns_of(NarrowBatch, batches),
    _hold.c.shut_from.label("held_at"),
    _hold.c.kind.label("gate_kind"),
    _hold.c.reason.label("hold_reason"),
    _hold.c.hold_key,
    _hold.c.shown_json.label("hold_json"),
    _hold.c.approved_by.label("approved_hold_by"),
    _hold.c.approved_at.label("approved_hold_at"),
).select_from(batches.outerjoin(_hold, and_(_hold.c.batch_id == batches.c.id, *is_standing(_hold))))


def select_batches() -> Select[Any]:
    """Begin a query for batches with their holds."""
    return _WITH_HOLD


def insert_batches(tx: Transaction, new: Sequence[NewBatch], at: datetime) -> list[BatchRow]:
    """Create batches and return them; a start time that another batch of the runbook has is a conflict."""
    if not new:
        return []
    alike = {"detected_at": at, "hold_count": 0}
    ids = tx.values(insert_each(tx, batches, new, alike, returning=(batches.c.id,)))
    note_batches(tx, ids)
    return batches_by_id(tx, ids)


def lock_batches(tx: Transaction, ids: Collection[int]) -> list[BatchRow]:
    """Lock batches in the order of their ids and return them as they are now (rule M5)."""
    # Holds are read after the lock: a join would show them as they were before somebody else let go of it.
    return batches_by_id(tx, [batch.id for batch in lock_narrow_batches(tx, ids)])


def lock_narrow_batches(tx: Transaction, ids: Collection[int]) -> list[NarrowBatch]:
    """Lock batches in the order of their ids and return them as they are now, without their holds (rule M5)."""
    if not ids:
        return []
    # Sorted here too: SQL Server locks rows in the order in which it finds them, not in that of the answer.
    return tx.rows(NarrowBatch, _locked(tx, sorted(ids)))


@prepared
def _locked(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    chosen = select_records(NarrowBatch, batches).where(among(draft, batches.c.id, ids))
    return draft.locking(chosen.order_by(batches.c.id), batches)


def batches_by_id(tx: Transaction, ids: Collection[int]) -> list[BatchRow]:
    """Return batches, by id."""
    return rows_by_id(tx, BatchRow, _by_id(tx, ids)) if ids else []


@prepared
def _by_id(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    return select_batches().where(among(draft, batches.c.id, ids))


def unfinished_batches(tx: Transaction, runbook_name: str) -> list[BatchRow]:
    """Return the batches of a runbook that have not ended, by id."""
    return rows_by_id(tx, BatchRow, _unfinished_of(tx, runbook_name))


@prepared
def _unfinished_of(_draft: Drafting, runbook_name: str) -> Select[Any]:
    return select_batches().where(batches.c.runbook_name == runbook_name, _UNFINISHED)


def all_unfinished_batches(tx: Transaction) -> list[BatchRow]:
    """Return all batches that have not ended, by id."""
    return rows_by_id(tx, BatchRow, select_batches().where(_UNFINISHED))


def has_batches(tx: Transaction, runbook_name: str) -> bool:
    """Tell whether a runbook ever had a batch."""
    return bool(tx.values(_first_of(tx, runbook_name)))


@prepared
def _first_of(_draft: Drafting, runbook_name: str) -> Select[Any]:
    return select(batches.c.id).where(batches.c.runbook_name == runbook_name).limit(1)


def has_manual_batches(tx: Transaction, runbook_name: str) -> bool:
    """Tell whether a person ever made a batch of a runbook."""
    made = (batches.c.runbook_name == runbook_name, batches.c.is_manual == true())
    return bool(tx.values(select(batches.c.id).where(*made).limit(1)))


def batches_at(tx: Transaction, runbook_name: str, times: Collection[datetime]) -> list[BatchRow]:
    """Return the automated batches of a runbook with these start times, ended ones included."""
    return rows_by_id(tx, BatchRow, _at(tx, runbook_name, times)) if times else []


@prepared
def _at(draft: Drafting, runbook_name: str, times: Collection[datetime]) -> Select[Any]:
    return select_batches().where(
        batches.c.runbook_name == runbook_name, _AUTOMATED, among(draft, batches.c.batch_start_time, times)
    )


def batches_page(
    tx: Transaction, wanted: BatchFilter = ALL_BATCHES, *, before: int | None = None, limit: int = 100
) -> list[BatchRow]:
    """Return one page of batches, newest first, from before the last id of the page before."""
    query = select_batches().where(*_conditions(wanted))
    if before is not None:
        query = query.where(batches.c.id < before)
    return tx.rows(BatchRow, query.order_by(batches.c.id.desc()).limit(limit))


def held_batches(tx: Transaction, wanted: BatchFilter = ALL_BATCHES) -> list[BatchRow]:
    """Return all batches that wait for a person's approval, by id."""
    return rows_by_id(tx, BatchRow, select_batches().where(IS_HELD, *_conditions(wanted)))


def count_batches(tx: Transaction, wanted: BatchFilter = ALL_BATCHES) -> int:
    """Count batches."""
    count: int = tx.values(select(func.count()).select_from(batches).where(*_conditions(wanted)))[0]
    return count


def _conditions(wanted: BatchFilter) -> list[ColumnElement[bool]]:
    given = {name: getattr(wanted, name) for name in ("runbook_name", "runbook_id", "status", "is_manual")}
    found = [batches.c[name] == value for name, value in given.items() if value is not None]
    if wanted.is_held is not None:
        found.append(IS_HELD if wanted.is_held else ~IS_HELD)
    return found


def move_batches(tx: Transaction, move: Move[BatchStatus], ids: Collection[int], at: datetime) -> list[int]:
    """Make the move that was decided for batches."""
    return make_alike(tx, batches, move, ids, at)


def dispatch_init(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Request the init of batches that have not ended, once more."""
    return move_batches(tx, REQUEST_INIT, ids, at)


def activate_batches(tx: Transaction, ids: Collection[int]) -> list[int]:
    """Let the phases of batches begin: their init is done, or they have none."""
    return make_alike(tx, batches, ACTIVATE, ids)


def cancel_batches(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Cancel batches for a person, or because they have no members left."""
    return move_batches(tx, CANCEL, ids, at)


def reopen_batches(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Take up ended batches again for a person's retry of their members."""
    return move_batches(tx, REOPEN, ids, at)


def reopen_inits(tx: Transaction, ids: Collection[int]) -> list[int]:
    """Take up batches again whose init had failed."""
    return make_alike(tx, batches, REOPEN_INIT, ids)


def reschedule_batches(tx: Transaction, reschedules: Sequence[Reschedule]) -> list[int]:
    """Give unfinished automated batches other start times; they may take one another's."""
    # Unique keys are checked row by row, and batches may trade times. So all first get times that no batch has, and
    # then their new ones.
    aside = [Reschedule(entry.id, _NOBODYS_TIME + timedelta(seconds=entry.id)) for entry in reschedules]
    make_each(tx, batches, RESCHEDULE, aside)
    return make_each(tx, batches, RESCHEDULE, reschedules)


def follow_version(tx: Transaction, ids: Collection[int], runbook_id: int) -> list[int]:
    """Let unfinished batches of a runbook follow another version of it, except manual and reopened ones (V2, V6)."""
    return make_alike(tx, batches, FOLLOW, ids, brought={"runbook_id": runbook_id})


def take_version(tx: Transaction, batch_id: int, runbook_id: int) -> list[int]:
    """Let an unfinished batch follow another version because a person says so (rule O14)."""
    return make_alike(tx, batches, TAKE_VERSION, [batch_id], brought={"runbook_id": runbook_id})


def advance_to_phase(tx: Transaction, batch_id: int, phase_name: str) -> list[int]:
    """Note which phase a manual batch was advanced to."""
    return make_alike(tx, batches, ADVANCE, [batch_id], brought={"current_phase": phase_name})


def note_removals_approved(tx: Transaction, ids: Collection[int], at: datetime) -> list[int]:
    """Note that removals were made that a person approved: the removal limit counts from then on (rule T6)."""
    return move_batches(tx, NOTE_REMOVALS, ids, at)
