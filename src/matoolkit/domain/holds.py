"""Holds: changes that are too large to make without a person, and exactly what that person approves (rule T6)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matoolkit.runbook.values import Allowance

DEFAULT_PERCENT = 20
DEFAULT_COUNT = 5
REMOVAL_WINDOW = timedelta(hours=24)


class HoldKind(StrEnum):
    """What waits for a person."""

    REMOVALS = "removals"
    CALLED_OFF = "called_off"
    RESCHEDULE = "reschedule"
    INIT = "init"
    LATE = "late"
    REPEAT = "repeat"


# A batch that is held for one of these has not begun: only its init and its phases wait.
NOT_BEGUN = frozenset({HoldKind.LATE, HoldKind.REPEAT})


@dataclass(frozen=True, slots=True)
class StandingHold:
    """The hold that a batch has, and whether exactly what it stands for was approved."""

    kind: HoldKind
    key: str
    is_approved: bool


@dataclass(frozen=True, slots=True)
class Hold:
    """What a batch is held for: members that would leave or be migrated again, or a start."""

    batch_id: int
    kind: HoldKind
    key: str
    reason: str
    member_ids: tuple[int, ...] = ()
    start: datetime | None = None
    member_keys: tuple[str, ...] = ()


def removal_limit(limit: "Allowance | None", members: int) -> int:
    """Return how many of so many members may go within a day without a person."""
    if limit is None:
        return min(max(members * DEFAULT_PERCENT // 100, DEFAULT_COUNT), members // 2)
    return limit.of(members)


def removal_key(gone: Collection[int], moving: Collection[int] = ()) -> str:
    """Return the fingerprint of the members that would leave, and of those that would move."""
    return _key("removals", sorted(gone), "moves", sorted(moving))


def reschedule_key(start: datetime) -> str:
    """Return the fingerprint of a new start."""
    return _key("reschedule", start.isoformat())


def late_key(start: datetime) -> str:
    """Return the fingerprint of a start that had passed when it was first seen."""
    return _key("late", start.isoformat())


def repeat_key(keys: Collection[str]) -> str:
    """Return the fingerprint of the members that would be migrated again."""
    return _key("repeat", *sorted(keys))


def _key(*parts: object) -> str:
    return blake2b(" ".join(map(str, parts)).encode(), digest_size=16).hexdigest()
