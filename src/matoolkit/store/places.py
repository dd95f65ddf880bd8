"""The places of phases in which only so many members may be at once, counted from rows (rule C5).

A member's first step of a phase says whether the member has a place there. So there is no counter that could drift.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, Update, and_, exists, func, literal_column, or_, select, true, update

from matoolkit.domain.states import OPEN_STEPS, MemberStatus, StepStatus
from matoolkit.records import record
from matoolkit.store.schema import batch_members, rollback_executions, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among, change, is_any
from matoolkit.store.sql.transaction import Transaction

_HOLDS = step_executions.c.holds_place == true()


@record
class FirstStep:
    """A member's first step of a phase in one epoch, and whether the member has a place there."""

    id: int
    phase_execution_id: int
    batch_member_id: int
    epoch: int
    holds_place: bool | None


@record
class Candidate:
    """A member without a place whose next step in a phase could be sent, as far as its own work goes."""

    id: int
    step_id: int
    member_key: str
    is_pilot: bool | None
    joined_no: int | None
    step_index: int
    worker_id: str


def places_taken(tx: Transaction, phase_ids: Collection[int]) -> dict[int, int]:
    """Count the places that are taken in phases; phases without any are left out."""
    return dict(tx.rows(lambda *row: row, _taken(tx, phase_ids))) if phase_ids else {}


@prepared
def _taken(draft: Drafting, phase_ids: Collection[int]) -> Select[Any]:
    phase = step_executions.c.phase_execution_id
    return select(phase, func.count()).where(among(draft, phase, phase_ids), _HOLDS).group_by(phase)


def give_back_places(tx: Transaction, phase_ids: Collection[int]) -> None:
    """Take the places of phases from members who have no open step there any more."""
    if phase_ids:
        tx.execute(_given_back(tx, phase_ids))


@prepared
def _given_back(draft: Drafting, phase_ids: Collection[int]) -> Update:
    other = step_executions.alias("other")
    same = [other.c[name] == step_executions.c[name] for name in ("batch_member_id", "epoch", "phase_execution_id")]
    still_there = exists().where(*same, is_any(other.c.status, OPEN_STEPS))
    mine = (among(draft, step_executions.c.phase_execution_id, phase_ids), _HOLDS)
    return update(step_executions).where(*mine, ~still_there).values(holds_place=None)


def first_steps_of(tx: Transaction, phase_ids: Collection[int], member_ids: Collection[int]) -> list[FirstStep]:
    """Return the first steps of members in phases, in all their epochs."""
    return tx.rows(FirstStep, _first_steps(tx, phase_ids, member_ids)) if phase_ids and member_ids else []


@prepared
def _first_steps(draft: Drafting, phase_ids: Collection[int], member_ids: Collection[int]) -> Select[Any]:
    mine = step_executions.c
    chosen = (mine.id, mine.phase_execution_id, mine.batch_member_id, mine.epoch, mine.holds_place)
    return select(*chosen).where(
        among(draft, mine.batch_member_id, member_ids),
        among(draft, mine.phase_execution_id, phase_ids),
        mine.step_index == 0,
    )


def take_places(tx: Transaction, first_steps: Collection[int]) -> None:
    """Let members have places in phases, told by their first steps there."""
    change(tx, step_executions, first_steps, {"holds_place": True})


def candidates(
    tx: Transaction,
    phase_id: int,
    earlier: Collection[int],
    *,
    after: int,
    limit: int,
    may_begin: bool,
    pilots_only: bool,
) -> list[Candidate]:
    """Return a slice of those who wait for a place in a phase and for none of their own jobs, as they got their steps.

    Who has something to do in an `earlier` phase, or something to be undone, does that first. Unless somebody may begin
    the phase, or while only pilots may, others are left out who have done nothing in it yet.
    """
    found = _candidates(tx, phase_id, earlier, after, limit=limit, may_begin=may_begin, pilots_only=pilots_only)
    return tx.rows(Candidate, found)


@prepared
def _candidates(
    draft: Drafting,
    phase_id: int,
    earlier: Collection[int],
    after: int,
    *,
    limit: int,
    may_begin: bool,
    pilots_only: bool,
) -> Select[Any]:
    mine, before, first = step_executions.c, step_executions.alias("before"), step_executions.alias("first")
    same = ("batch_member_id", "epoch", "phase_execution_id")
    is_next = ~exists().where(
        *(before.c[name] == mine[name] for name in same),
        before.c.step_index == mine.step_index - 1,
        is_any(before.c.status, OPEN_STEPS),
    )
    has_place = exists().where(
        *(first.c[name] == mine[name] for name in same), first.c.step_index == 0, first.c.holds_place == true()
    )
    present = and_(batch_members.c.id == mine.batch_member_id, batch_members.c.epoch == mine.epoch)
    of_member = (batch_members.c[name] for name in ("member_key", "is_pilot", "joined_no"))
    chosen = (batch_members.c.id, mine.id.label("step_id"), *of_member, mine.step_index, mine.worker_id)
    waits: tuple[ColumnElement[bool], ...] = (
        mine.phase_execution_id == phase_id,
        is_any(mine.status, {StepStatus.PENDING}),
        mine.retry_after.is_(None),
        is_any(batch_members.c.status, {MemberStatus.ACTIVE}),
        mine.id > after,
    )
    has_begun = mine.step_index > literal_column("0")
    if not may_begin:
        waits = (*waits, has_begun)
    elif pilots_only:
        waits = (*waits, or_(has_begun, batch_members.c.is_pilot == true()))
    query = select(*chosen).select_from(step_executions.join(batch_members, present))
    found = query.where(*waits, is_next, ~has_place, *_is_free(draft, mine.batch_member_id, earlier))
    # By the number of the step, in which the index of a phase is sorted: only what is returned is read.
    return found.order_by(mine.id).limit(limit)


def _is_free(draft: Drafting, member: ColumnElement[int], earlier: Collection[int]) -> tuple[ColumnElement[bool], ...]:
    """Demand that no job of a member is out, nothing is open in an earlier phase, and nothing is being undone."""
    out, busy, undoing = step_executions.alias("out").c, step_executions.alias("busy").c, rollback_executions.c
    # Each by itself: for two conditions in one, PostgreSQL reads all steps that there are.
    return (
        ~exists().where(out.batch_member_id == member, out.lost_at.is_not(None)),
        ~exists().where(
            busy.batch_member_id == member,
            is_any(busy.status, OPEN_STEPS),
            among(draft, busy.phase_execution_id, earlier),
        ),
        ~exists().where(undoing.batch_member_id == member, undoing.lost_at.is_not(None)),
        ~exists().where(undoing.batch_member_id == member, is_any(undoing.status, OPEN_STEPS)),
    )
