"""The life of a batch."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, assert_never

from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, MemberStatus, PhaseStatus


@dataclass(frozen=True, slots=True)
class InitRequested:
    """Its init is to run, for the first time or again."""


@dataclass(frozen=True, slots=True)
class InitDone:
    """All steps of its init have succeeded, there are none, or a person passes it by."""


@dataclass(frozen=True, slots=True)
class InitFailed:
    """A step of its init has failed for good, and what was to be undone is."""

    is_rerun: bool


@dataclass(frozen=True, slots=True)
class PhasesEnded:
    """All its phases have ended, nobody waits to be caught up, and nothing is being undone."""

    phases: Collection[PhaseStatus]
    members: Collection[MemberStatus]


@dataclass(frozen=True, slots=True)
class PersonCancelled:
    """A person cancels it."""


@dataclass(frozen=True, slots=True)
class Emptied:
    """It waited for a person before it began, and nobody is left in it."""


@dataclass(frozen=True, slots=True)
class PersonRetriedMembers:
    """A person lets failed members try again."""


@dataclass(frozen=True, slots=True)
class PersonRetriedInit:
    """A person lets its failed init run again."""


Event: TypeAlias = (
    InitRequested
    | InitDone
    | InitFailed
    | PhasesEnded
    | PersonCancelled
    | Emptied
    | PersonRetriedMembers
    | PersonRetriedInit
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Where the batch is then, whether it is held, or why the event means nothing to it."""

    status: BatchStatus
    is_held: bool = False
    ignored: str | None = None


_DETECTED, _INIT, _ACTIVE = BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED, BatchStatus.ACTIVE
_COMPLETED, _FAILED, _CANCELLED = BatchStatus.COMPLETED, BatchStatus.FAILED, BatchStatus.CANCELLED

MOVES: Mapping[tuple[BatchStatus, type[Event]], frozenset[BatchStatus]] = MappingProxyType(
    {
        **{(status, InitRequested): frozenset({_INIT}) for status in sorted(UNFINISHED_BATCHES)},
        (_DETECTED, InitDone): frozenset({_ACTIVE}),
        (_INIT, InitDone): frozenset({_ACTIVE}),
        (_INIT, InitFailed): frozenset({_FAILED, _INIT}),
        (_ACTIVE, PhasesEnded): frozenset({_COMPLETED, _CANCELLED, _FAILED}),
        **{(status, PersonCancelled): frozenset({_CANCELLED}) for status in sorted(UNFINISHED_BATCHES)},
        (_DETECTED, Emptied): frozenset({_CANCELLED}),
        **{(status, PersonRetriedMembers): frozenset({_ACTIVE}) for status in (_ACTIVE, _COMPLETED, _FAILED)},
        **{(status, PersonRetriedInit): frozenset({_INIT}) for status in (_INIT, _FAILED)},
    }
)


def decide(status: BatchStatus, event: Event) -> Decision:
    """Say what becomes of a batch when something happens."""
    if (status, type(event)) not in MOVES:
        return Decision(status, ignored=f"{type(event).__name__} while it is {status}")
    match event:
        case InitRequested() | PersonRetriedInit():
            return Decision(_INIT)
        case InitDone() | PersonRetriedMembers():
            return Decision(_ACTIVE)
        case InitFailed(is_rerun):
            # People already depend on a batch that was under way; whether it goes on without init, a person says.
            return Decision(_INIT, is_held=True) if is_rerun else Decision(_FAILED)
        case PhasesEnded(phases, members):
            return Decision(_ending(phases, members))
        case PersonCancelled() | Emptied():
            return Decision(_CANCELLED)
        case _:
            assert_never(event)


def _ending(phases: Collection[PhaseStatus], members: Collection[MemberStatus]) -> BatchStatus:
    in_use = [phase for phase in phases if phase is not PhaseStatus.SUPERSEDED]
    if PhaseStatus.COMPLETED in in_use:
        return _COMPLETED
    if all(member is MemberStatus.REMOVED for member in members):
        return _CANCELLED
    # Phases that a new version passed by left their members as they were; the others were passed by for want of any.
    if all(phase is PhaseStatus.SKIPPED for phase in in_use) and MemberStatus.ACTIVE in members:
        return _COMPLETED
    return _FAILED
