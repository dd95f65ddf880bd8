"""Decides for whom a person's undo runs what, and for whom it does not (rule U2).

Pure and total: a member that the batch has or had is either left out, for a reason, or undone. For some of those who
are undone there is nothing to run.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import TypeAlias

from matoolkit.domain.states import NOTHING_TO_UNDO, WORK_STANDS, BatchStatus, MemberStatus
from matoolkit.records import record


class NotUndoneBecause(StrEnum):
    """Why a member is left out."""

    UNDONE_BEFORE = "undone_before"
    LEFT = "left"
    ROLLBACK_RUNS = "rollback_runs"
    IN_ANOTHER_BATCH = "in_another_batch"
    DONE_SINCE = "done_since"


class NothingToRun(StrEnum):
    """Why nothing runs for a member that is undone."""

    NOTHING_DONE = "nothing_done"
    NO_STEPS = "no_steps"


@record
class Undoable:
    """A member as an undo sees it, and what is known of the same person in other batches.

    `is_excluded`: it left because a person keeps it out, and what it did stayed. `is_rolling_back`: a rollback of it is
    open or its job is out. `was_rolled_back`: one has begun in its present epoch. `has_done`: a job was sent for it, or
    it brought work from another batch. `is_elsewhere`: another batch has it or still runs something for it.
    `is_done_since`: it is done in a batch that it joined later.
    """

    status: MemberStatus
    is_undone: bool = False
    is_excluded: bool = False
    is_rolling_back: bool = False
    was_rolled_back: bool = False
    has_done: bool = True
    is_elsewhere: bool = False
    is_done_since: bool = False


@record
class LeaveOut:
    """It stays as it is."""

    because: NotUndoneBecause


@record
class Undo:
    """It is undone: its removal steps run unless there is a reason why nothing does."""

    nothing_because: NothingToRun | None = None
    was_rolled_back: bool = False


Undoing: TypeAlias = LeaveOut | Undo


@record
class KnownPlace:
    """Where somebody is or was a member: since when, why it left, whether it is done there, and did anything there."""

    id: int
    member_key_fold: str
    added_at: datetime
    remove_reason: str | None
    is_done: bool
    has_done: bool

    @property
    def joined(self) -> tuple[datetime, int]:
        """What orders the places of somebody. A return is later than what came before it, a number is not."""
        return self.added_at, self.id


def has_work(member_id: int, places: Sequence[KnownPlace]) -> bool:
    """Tell whether anything was done for somebody, in a place or in those from which it brought its work (rule T5)."""
    here = _place(member_id, places)
    before = sorted((one for one in places if one.joined < here.joined), key=lambda one: one.joined, reverse=True)
    brought = takewhile(lambda one: one.remove_reason in WORK_STANDS, before)
    return here.has_done or any(one.has_done for one in brought)


def is_done_since(member_id: int, places: Sequence[KnownPlace]) -> bool:
    """Tell whether somebody is done in a batch that it joined later."""
    here = _place(member_id, places)
    return any(one.is_done and one.joined > here.joined for one in places)


def _place(member_id: int, places: Sequence[KnownPlace]) -> KnownPlace:
    return next(place for place in places if place.id == member_id)


def decide_undo(member: Undoable, *, has_steps: bool) -> Undoing:
    """Decide what an undo does for a member; `has_steps` says whether the version has any steps for a removal."""
    if (because := _why_not(member)) is not None:
        return LeaveOut(because)
    if not member.has_done:
        return Undo(NothingToRun.NOTHING_DONE, member.was_rolled_back)
    return Undo(None if has_steps else NothingToRun.NO_STEPS, member.was_rolled_back)


def _why_not(member: Undoable) -> NotUndoneBecause | None:
    if member.status is MemberStatus.REMOVED and member.is_undone:
        return NotUndoneBecause.UNDONE_BEFORE
    if member.status is MemberStatus.REMOVED and not member.is_excluded:
        return NotUndoneBecause.LEFT
    if member.is_rolling_back:
        return NotUndoneBecause.ROLLBACK_RUNS
    if member.is_elsewhere:
        return NotUndoneBecause.IN_ANOTHER_BATCH
    return NotUndoneBecause.DONE_SINCE if member.is_done_since else None


@record
class Removal:
    """Why a member left; if a person undid it, the version whose steps run, or none."""

    reason: str | None
    is_undone: bool = False
    undo_version: int | None = None


def version_that_undoes(removal: Removal, batch: BatchStatus, followed: int) -> int | None:
    """Return the version whose removal steps run for a member that left, if any do (rules O9, O12, U2 and U3)."""
    if removal.is_undone:
        return removal.undo_version
    # In a cancelled batch nothing new begins. In a batch whose init failed, members that left are still undone.
    is_kept = removal.reason in NOTHING_TO_UNDO or batch is BatchStatus.CANCELLED
    return None if is_kept else followed
