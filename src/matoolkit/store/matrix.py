"""The steps of all members of a batch, read as numbers: of many rows the database makes few, and those are small."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, Select, case, cast, func, literal_column, select

from matoolkit.domain.keys import folded
from matoolkit.domain.matrix import MOST_ATTEMPTS, SHIFT, STATE_OF_STEP
from matoolkit.domain.states import MemberStatus
from matoolkit.records import record
from matoolkit.store.schema import batch_members, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import contains, is_any
from matoolkit.store.sql.transaction import Transaction

# Bytes of steps in one number; an eighth would reach its sign.
STEPS_TOGETHER = 7


@record
class MatrixMember:
    """What the cells of a member depend on, besides its steps."""

    id: int
    epoch: int
    status: MemberStatus
    is_caught_up: int
    is_undone: int
    first_phase_version: int | None
    first_phase_place: int | None


@record
class PackedSteps:
    """Up to seven steps of a member in a phase, a byte each, the first of them lowest; 0 is a step that is not there.

    They are the steps from `7 * part` on.
    """

    batch_member_id: int
    epoch: int
    part: int
    packed: int


def members_of_matrix(tx: Transaction, batch_id: int) -> list[MatrixMember]:
    """Return all members of a batch, by id."""
    return tx.rows(MatrixMember, _members(tx, batch_id))


@prepared
def _members(_draft: Drafting, batch_id: int) -> Select[Any]:
    mine = batch_members.c
    query = select(
        mine.id,
        mine.epoch,
        mine.status,
        _yes_or_no(mine.caught_up_at.is_not(None)).label("is_caught_up"),
        _yes_or_no(mine.undone_at.is_not(None)).label("is_undone"),
        mine.first_phase_version,
        mine.first_phase_place,
    )
    return query.where(mine.batch_id == batch_id).order_by(mine.id)


def packed_steps_of_phase(tx: Transaction, phase_id: int) -> list[PackedSteps]:
    """Return the steps of all members in a phase, in all their epochs, in no order."""
    return tx.rows(PackedSteps, _packed(tx, phase_id))


@prepared
def _packed(_draft: Drafting, phase_id: int) -> Select[Any]:
    mine = step_executions.c
    # A table below the grouping, because not every database sees that two expressions are the same.
    each = (
        select(
            mine.batch_member_id,
            mine.epoch,
            (mine.step_index // _number(STEPS_TOGETHER)).label("part"),
            (_byte() * _place()).label("byte"),
        )
        .where(mine.phase_execution_id == phase_id)
        .subquery()
        .c
    )
    whose = (each.batch_member_id, each.epoch, each.part)
    # PostgreSQL adds numbers up to one without a limit, which drivers read slowly.
    packed = cast(func.sum(each.byte), BigInteger).label("packed")
    return select(*whose, packed).group_by(*whose)


def _byte() -> ColumnElement[Any]:
    states = [(is_any(step_executions.c.status, {status}), _number(state)) for status, state in STATE_OF_STEP.items()]
    attempt = step_executions.c.attempt
    attempts = case((attempt > _number(MOST_ATTEMPTS), _number(MOST_ATTEMPTS)), else_=attempt)
    return case(*states) + attempts * _number(1 << SHIFT)


def _place() -> ColumnElement[Any]:
    index = step_executions.c.step_index % _number(STEPS_TOGETHER)
    return cast(case(*((index == _number(n), _number(1 << 8 * n)) for n in range(STEPS_TOGETHER))), BigInteger)


def _yes_or_no(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return case((condition, _number(1)), else_=_number(0))


def _number(value: int) -> ColumnElement[Any]:
    return literal_column(str(int(value)), BigInteger if value >= 1 << 31 else Integer)


def members_with_key_part(tx: Transaction, batch_id: int, part: str, limit: int) -> Sequence[int]:
    """Return the ids of members of a batch whose keys contain a text, in whatever case, in the order of ids."""
    found = contains(batch_members.c.member_key_fold, folded(part))
    query = select(batch_members.c.id).where(batch_members.c.batch_id == batch_id, found)
    return tx.values(query.order_by(batch_members.c.id).limit(limit))
