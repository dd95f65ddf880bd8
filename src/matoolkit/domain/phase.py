"""The life of a phase of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, assert_never

from matoolkit.domain.states import OPEN_PHASES, PhaseStatus


@dataclass(frozen=True, slots=True)
class Due:
    """Its time has come, or a person advanced its batch to it."""


@dataclass(frozen=True, slots=True)
class NobodyLeft:
    """Its time has come and no member is there for it, or a new version passes it by."""


@dataclass(frozen=True, slots=True)
class StepsEnded:
    """All its steps have ended, and so many members went through it."""

    members_through: int


@dataclass(frozen=True, slots=True)
class GivenSteps:
    """A late joiner or a person's retry has steps in it."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """A new version takes its place."""


@dataclass(frozen=True, slots=True)
class BatchCancelled:
    """Its batch was cancelled."""


Event: TypeAlias = Due | NobodyLeft | StepsEnded | GivenSteps | Superseded | BatchCancelled


@dataclass(frozen=True, slots=True)
class Decision:
    """Where the phase is then, or why the event means nothing to it."""

    status: PhaseStatus
    ignored: str | None = None


_PENDING, _DISPATCHED = PhaseStatus.PENDING, PhaseStatus.DISPATCHED
_REOPENABLE = (PhaseStatus.DISPATCHED, PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.SKIPPED)

MOVES: Mapping[tuple[PhaseStatus, type[Event]], frozenset[PhaseStatus]] = MappingProxyType(
    {
        (_PENDING, Due): frozenset({_DISPATCHED}),
        (_PENDING, NobodyLeft): frozenset({PhaseStatus.SKIPPED}),
        (_DISPATCHED, StepsEnded): frozenset({PhaseStatus.COMPLETED, PhaseStatus.FAILED}),
        **{(status, GivenSteps): frozenset({_DISPATCHED}) for status in _REOPENABLE},
        **{(status, Superseded): frozenset({PhaseStatus.SUPERSEDED}) for status in sorted(OPEN_PHASES)},
        **{(status, BatchCancelled): frozenset({PhaseStatus.CANCELLED}) for status in sorted(OPEN_PHASES)},
    }
)


def decide(status: PhaseStatus, event: Event) -> Decision:
    """Say what becomes of a phase when something happens."""
    if (status, type(event)) not in MOVES:
        return Decision(status, f"{type(event).__name__} while it is {status}")
    match event:
        case Due() | GivenSteps():
            return Decision(PhaseStatus.DISPATCHED)
        case NobodyLeft():
            return Decision(PhaseStatus.SKIPPED)
        case StepsEnded(members_through):
            return Decision(PhaseStatus.COMPLETED if members_through else PhaseStatus.FAILED)
        case Superseded():
            return Decision(PhaseStatus.SUPERSEDED)
        case BatchCancelled():
            return Decision(PhaseStatus.CANCELLED)
        case _:
            assert_never(event)


def is_caught_up_with(status: PhaseStatus) -> bool:
    """Tell whether somebody who joins late has to go through a phase, skipped ones included (rule O10)."""
    return status in _REOPENABLE
