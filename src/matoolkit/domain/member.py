"""The life of a member in its batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, assert_never

from matoolkit.domain.states import MemberStatus


@dataclass(frozen=True, slots=True)
class StepFailed:
    """One of its steps has failed for good, in an epoch of it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Removed:
    """It left the source, moved to another batch, or a person took it out."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The source has it again."""


@dataclass(frozen=True, slots=True)
class RetriedFromFailure:
    """A person lets it go on from where it failed."""


@dataclass(frozen=True, slots=True)
class RetriedFromStart:
    """A person lets it begin again, because what it had done was undone or belongs to an old version."""


Event: TypeAlias = StepFailed | Removed | Returned | RetriedFromFailure | RetriedFromStart


@dataclass(frozen=True, slots=True)
class Member:
    """What of a member matters for its next move."""

    status: MemberStatus
    epoch: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What the member is then, or why the event means nothing to it."""

    member: Member
    ignored: str | None = None


_ACTIVE, _REMOVED, _FAILED = MemberStatus.ACTIVE, MemberStatus.REMOVED, MemberStatus.FAILED

MOVES: Mapping[tuple[MemberStatus, type[Event]], frozenset[MemberStatus]] = MappingProxyType(
    {
        (_ACTIVE, StepFailed): frozenset({_FAILED}),
        (_ACTIVE, Removed): frozenset({_REMOVED}),
        (_REMOVED, Returned): frozenset({_ACTIVE}),
        (_FAILED, RetriedFromFailure): frozenset({_ACTIVE}),
        (_FAILED, RetriedFromStart): frozenset({_ACTIVE}),
    }
)


def decide(member: Member, event: Event) -> Decision:
    """Say what becomes of a member when something happens."""
    if (member.status, type(event)) not in MOVES:
        return Decision(member, f"{type(event).__name__} while it is {member.status}")
    match event:
        case StepFailed(epoch):
            if epoch != member.epoch:
                return Decision(member, "it has started all over since")
            return Decision(Member(_FAILED, member.epoch))
        case Removed():
            return Decision(Member(_REMOVED, member.epoch))
        case RetriedFromFailure():
            return Decision(Member(_ACTIVE, member.epoch))
        case Returned() | RetriedFromStart():
            return Decision(Member(_ACTIVE, member.epoch + 1))
        case _:
            assert_never(event)
