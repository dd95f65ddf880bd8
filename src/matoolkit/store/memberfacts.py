"""What a member's row and its open work say of its state (rule U1), and the number under which it is counted."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Integer, Table, and_, case, literal_column, or_, select

from matoolkit.domain.states import MOVED, NOTHING_TO_UNDO, OPEN_STEPS, MemberStatus
from matoolkit.records import record
from matoolkit.store.schema import batch_members, rollback_executions, step_executions
from matoolkit.store.sql.statements import is_any


def has(table: Table, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Say that there is such a row. It is looked up by index: for EXISTS, PostgreSQL may read all such rows at once."""
    return select(literal_column("1")).select_from(table).where(*conditions).limit(1).scalar_subquery().is_not(None)


# Who left, and whom the orchestrator has yet to see off. Members that moved to another batch have no removal steps.
IS_TO_SEE_OFF = (
    is_any(batch_members.c.status, {MemberStatus.REMOVED}),
    batch_members.c.removed_at.is_not(None),
    batch_members.c.seen_off_at.is_(None),
    batch_members.c.remove_reason != literal_column(f"'{MOVED}'"),
)
_IS_LEAVING = and_(
    is_any(batch_members.c.status, {MemberStatus.REMOVED}),
    batch_members.c.removed_at.is_not(None),
    batch_members.c.seen_off_at.is_(None),
    batch_members.c.remove_reason.not_in([literal_column(f"'{reason}'") for reason in sorted(NOTHING_TO_UNDO)]),
)
_IS_COMPENSATED = has(
    rollback_executions,
    rollback_executions.c.batch_member_id == batch_members.c.id,
    is_any(rollback_executions.c.status, OPEN_STEPS),
)
_ITS_OPEN_STEPS = (
    step_executions.c.batch_member_id == batch_members.c.id,
    is_any(step_executions.c.status, OPEN_STEPS),
)
HAS_OPEN_STEP = has(step_executions, *_ITS_OPEN_STEPS, step_executions.c.epoch == batch_members.c.epoch)
# Also one that is left of an epoch that is over, until it is cancelled.
HAS_ANY_OPEN_STEP = has(step_executions, *_ITS_OPEN_STEPS)
IS_CAUGHT_UP = batch_members.c.caught_up_at.is_not(None)
IS_BEING_UNDONE = or_(_IS_COMPENSATED, _IS_LEAVING)
IS_UNDONE = batch_members.c.undone_at.is_not(None)

# A move of a member that writes none of these columns does not change how it is counted.
COUNTED_BY = frozenset({"status", "caught_up_at", "removed_at", "seen_off_at", "undone_at"})
_CAUGHT_UP, _BEING_UNDONE, _UNDONE = 1, 2, 4
_STATUSES: Mapping[MemberStatus, int] = {MemberStatus.ACTIVE: 0, MemberStatus.FAILED: 8, MemberStatus.REMOVED: 16}
_OF_STATUS = {number: status for status, number in _STATUSES.items()}


@record
class Standing:
    """What members that are counted together have in common; who has an open step is not among it."""

    status: MemberStatus
    is_caught_up: bool
    is_being_undone: bool = False
    is_undone: bool = False

    @property
    def number(self) -> int:
        """The number that stands for it in the tables."""
        facts = {_CAUGHT_UP: self.is_caught_up, _BEING_UNDONE: self.is_being_undone, _UNDONE: self.is_undone}
        return _STATUSES[self.status] + sum(number for number, holds in facts.items() if holds)

    @property
    def is_ordinary(self) -> bool:
        """Whether only its open steps and its batch say what state a member is in."""
        return self.status is MemberStatus.ACTIVE and self.is_caught_up and not self.is_being_undone


def standing_of(number: int) -> Standing:
    """Return what a number of the tables stands for."""
    facts = (bool(number & one) for one in (_CAUGHT_UP, _BEING_UNDONE, _UNDONE))
    return Standing(_OF_STATUS[number & ~(_CAUGHT_UP | _BEING_UNDONE | _UNDONE)], *facts)


def _added(number: int, condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return case((condition, literal_column(str(number), Integer)), else_=literal_column("0", Integer))


# The number of a member as it is now.
NUMBER: ColumnElement[int] = (
    _added(_CAUGHT_UP, IS_CAUGHT_UP)
    + _added(_BEING_UNDONE, IS_BEING_UNDONE)
    + _added(_UNDONE, IS_UNDONE)
    + _added(_STATUSES[MemberStatus.FAILED], is_any(batch_members.c.status, {MemberStatus.FAILED}))
    + _added(_STATUSES[MemberStatus.REMOVED], is_any(batch_members.c.status, {MemberStatus.REMOVED}))
)
