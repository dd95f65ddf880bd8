"""The steps of all members of a batch, read as numbers, because they are many."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, Select, case, cast, literal_column, select

from matoolkit.domain.keys import folded
from matoolkit.domain.matrix import MOST_ATTEMPTS, SHIFT, STATE_OF_STEP
from matoolkit.domain.states import MemberStatus
from matoolkit.records import record
from matoolkit.store.schema import batch_members, step_executions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import contains, is_any
from matoolkit.store.sql.transaction import Transaction

# A packed step is, from its lowest bits on: eight of its cell, twelve of its place in the phase, twelve of its epoch,
# and how far the member's number is from the first one's.
INDEX_SHIFT, EPOCH_SHIFT, MEMBER_SHIFT = 8, 20, 32
EPOCHS = 1 << MEMBER_SHIFT - EPOCH_SHIFT


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


def packed_steps_of_phase(tx: Transaction, phase_id: int, first_member: int) -> list[int]:
    """Return the steps of all members in a phase, in all their epochs, in no order, each as one number.

    There may be hundreds of thousands, and one column is read in half the time of two. They are not grouped in the
    database: that would save rows, but for the sake of the groups SQLite would run through the steps of all batches.
    """
    return tx.values(_packed(tx, phase_id, first_member))


@prepared
def _packed(_draft: Drafting, phase_id: int, first_member: int) -> Select[Any]:
    mine = step_executions.c
    member = cast(mine.batch_member_id - first_member, BigInteger) * _number(1 << MEMBER_SHIFT)
    epoch = cast(mine.epoch % _number(EPOCHS), BigInteger) * _number(1 << EPOCH_SHIFT)
    # SQL Server takes a large literal for a decimal, so the sum is cast too.
    packed = cast(member + epoch + mine.step_index * _number(1 << INDEX_SHIFT) + _byte(), BigInteger)
    return select(packed.label("packed")).where(mine.phase_execution_id == phase_id)


def _byte() -> ColumnElement[Any]:
    states = [(is_any(step_executions.c.status, {status}), _number(state)) for status, state in STATE_OF_STEP.items()]
    attempt = step_executions.c.attempt
    attempts = case((attempt > _number(MOST_ATTEMPTS), _number(MOST_ATTEMPTS)), else_=attempt)
    return case(*states) + attempts * _number(1 << SHIFT)


def _yes_or_no(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return case((condition, _number(1)), else_=_number(0))


def _number(value: int) -> ColumnElement[Any]:
    return literal_column(str(int(value)), BigInteger if value >= 1 << 31 else Integer)


def members_with_key_part(tx: Transaction, batch_id: int, part: str, limit: int) -> Sequence[int]:
    """Return the ids of members of a batch whose keys contain a text, in whatever case, in the order of ids."""
    found = contains(batch_members.c.member_key_fold, folded(part))
    query = select(batch_members.c.id).where(batch_members.c.batch_id == batch_id, found)
    return tx.values(query.order_by(batch_members.c.id).limit(limit))
