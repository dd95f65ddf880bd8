"""The state of a member: one table of rules says it, for Python and, translated by the store, for SQL (rule U1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, MemberState, MemberStatus
from matoolkit.records import record


@record
class MemberFacts:
    """What the state of a member depends on.

    It is being undone while a compensation of it is open, or while it has left and was not seen off. A phase that is
    beginning has not given all its members their steps yet; a phase that is ahead is pending.
    """

    status: MemberStatus
    batch_status: BatchStatus
    is_caught_up: bool
    has_open_step: bool
    is_being_undone: bool
    is_undone: bool
    is_phase_beginning: bool
    is_phase_ahead: bool


@dataclass(frozen=True, slots=True, eq=False)
class StateRule:
    """A state, and what each of some facts must be one of."""

    state: MemberState
    facts: Mapping[str, frozenset[Any]]


def _rule(state: MemberState, **facts: Any) -> StateRule:
    wanted = {name: fact if isinstance(fact, frozenset) else frozenset({fact}) for name, fact in facts.items()}
    return StateRule(state, MappingProxyType(wanted))


# The first rule that fits decides.
RULES = (
    _rule(MemberState.UNDOING, is_being_undone=True),
    _rule(MemberState.UNDONE, status=MemberStatus.REMOVED, is_undone=True),
    _rule(MemberState.LEFT, status=MemberStatus.REMOVED),
    _rule(MemberState.FAILED, status=MemberStatus.FAILED),
    _rule(MemberState.STOPPED, status=MemberStatus.ACTIVE, batch_status=BatchStatus.CANCELLED),
    _rule(MemberState.UNDER_WAY, status=MemberStatus.ACTIVE, has_open_step=True),
    _rule(MemberState.UNDER_WAY, status=MemberStatus.ACTIVE, batch_status=BatchStatus.ACTIVE, is_caught_up=False),
    _rule(MemberState.UNDER_WAY, status=MemberStatus.ACTIVE, batch_status=BatchStatus.ACTIVE, is_phase_beginning=True),
    _rule(MemberState.WAITING, status=MemberStatus.ACTIVE, is_phase_ahead=True),
    _rule(MemberState.WAITING, status=MemberStatus.ACTIVE, batch_status=UNFINISHED_BATCHES - {BatchStatus.ACTIVE}),
    _rule(MemberState.DONE, status=MemberStatus.ACTIVE),
)


def state_of(facts: MemberFacts) -> MemberState:
    """Say in which state a member is."""
    fits = (rule.state for rule in RULES if all(getattr(facts, name) in is_in for name, is_in in rule.facts.items()))
    return next(fits)
