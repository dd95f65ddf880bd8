"""Members as a person's undo sees them, and how far an undo has come (rule U2)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, false, func, or_, select, true

from matoolkit.domain.moves.member import UNDO, UNDO_EXCLUDED
from matoolkit.domain.states import OPEN_STEPS, MemberState, MemberStatus, RollbackCause, StepStatus
from matoolkit.domain.undoing import KnownPlace
from matoolkit.records import record
from matoolkit.store.enrolments import IS_DONE
from matoolkit.store.memberstates import STATE, is_in_state
from matoolkit.store.moves import make_each
from matoolkit.store.schema import batch_members, batches, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, is_any, rows_by_id
from matoolkit.store.sql.transaction import Transaction


@record
class UndoableMember:
    """A member of a batch in any status, with what decides about its undo."""

    id: int
    member_key: str
    member_key_fold: str
    status: MemberStatus
    epoch: int
    undone_at: datetime | None
    remove_reason: str | None
    state: MemberState
    is_rolling_back: bool
    was_rolled_back: bool


@dataclass(frozen=True, slots=True)
class UndoneMember:
    """A member to be undone in one of its epochs; without a version nothing runs for it."""

    id: int
    epoch: int
    undo_version: int | None
    removed_by: str
    remove_reason: str


@dataclass(frozen=True, slots=True)
class _Counted:
    status: StepStatus
    count: int


@dataclass(frozen=True, slots=True)
class UndoProgress:
    """How many members of a batch were undone, for how many of them something is still to come, and their steps."""

    members: int
    undoing: int
    steps: dict[StepStatus, int]


_MINE = rollback_executions.c.batch_member_id == batch_members.c.id
_IN_ITS_EPOCH = rollback_executions.c.epoch == batch_members.c.epoch
_IS_ROLLING_BACK = exists().where(
    _MINE, or_(is_any(rollback_executions.c.status, OPEN_STEPS), rollback_executions.c.lost_at.is_not(None))
)
_WAS_ROLLED_BACK = exists().where(_MINE, _IN_ITS_EPOCH, rollback_executions.c.attempt > 0)
_HAS_DONE = or_(
    batch_members.c.worker_data_json != "{}",
    exists().where(step_executions.c.batch_member_id == batch_members.c.id, step_executions.c.attempt > 0),
)


def undoable_members(tx: Transaction, batch_id: int) -> list[UndoableMember]:
    """Return everybody who is or was in a batch, by id."""
    return rows_by_id(tx, UndoableMember, _undoable(tx, batch_id))


@prepared
def _undoable(_draft: Drafting, batch_id: int) -> Select[Any]:
    plain = ("id", "member_key", "member_key_fold", "status", "epoch", "undone_at", "remove_reason")
    answers = _told(is_rolling_back=_IS_ROLLING_BACK, was_rolled_back=_WAS_ROLLED_BACK)
    return select(*(batch_members.c[name] for name in plain), STATE.label("state"), *answers).where(
        batch_members.c.batch_id == batch_id
    )


def known_places(tx: Transaction, runbook_name: str, folds: Collection[str]) -> dict[str, list[KnownPlace]]:
    """Return where people are or were members in the batches of a runbook, by folded key."""
    found: dict[str, list[KnownPlace]] = {}
    for place in tx.rows(KnownPlace, _known_places(tx, runbook_name, folds)) if folds else ():
        found.setdefault(place.member_key_fold, []).append(place)
    return found


@prepared
def _known_places(draft: Drafting, runbook_name: str, folds: Collection[str]) -> Select[Any]:
    plain = ("id", "member_key_fold", "added_at", "remove_reason")
    return (
        select(*(batch_members.c[name] for name in plain), *_told(is_done=IS_DONE, has_done=_HAS_DONE))
        .join(batches, batches.c.id == batch_members.c.batch_id)
        .where(batches.c.runbook_name == runbook_name, among(draft, batch_members.c.member_key_fold, folds))
    )


def _told(**conditions: ColumnElement[bool]) -> list[ColumnElement[bool]]:
    return [case((condition, true()), else_=false()).label(name) for name, condition in conditions.items()]


def undo_members(tx: Transaction, undone: Collection[UndoneMember], at: datetime) -> list[int]:
    """Mark active and failed members undone that have not started all over since, and excluded ones that had left."""
    rows = list(undone)
    here = make_each(tx, batch_members, UNDO, rows, at)
    moved = set(here)
    rest = [row for row in rows if row.id not in moved]
    return here + make_each(tx, batch_members, UNDO_EXCLUDED, rest, at)


def undo_progress(tx: Transaction, batch_id: int) -> UndoProgress:
    """Count the members of a batch that were undone, those for whom something is still to come, and their steps."""
    (members,), (undoing,) = tx.values(_undone(tx, batch_id)), tx.values(_undoing(tx, batch_id))
    steps = {one.status: one.count for one in tx.rows(_Counted, _steps(tx, batch_id))}
    return UndoProgress(members, undoing, steps)


@prepared
def _undone(_draft: Drafting, batch_id: int) -> Select[Any]:
    return select(func.count()).select_from(batch_members).where(_was_undone(batch_id))


@prepared
def _undoing(_draft: Drafting, batch_id: int) -> Select[Any]:
    return (
        select(func.count()).select_from(batch_members).where(_was_undone(batch_id), *is_in_state(MemberState.UNDOING))
    )


@prepared
def _steps(_draft: Drafting, batch_id: int) -> Select[Any]:
    status = rollback_executions.c.status
    return (
        select(status, func.count().label("count"))
        .join(batch_members, and_(_MINE, _IN_ITS_EPOCH))
        .where(_was_undone(batch_id), is_any(rollback_executions.c.cause, {RollbackCause.MEMBER_REMOVED}))
        .group_by(status)
    )


def _was_undone(batch_id: int) -> ColumnElement[bool]:
    return and_(batch_members.c.batch_id == batch_id, batch_members.c.undone_at.is_not(None))
