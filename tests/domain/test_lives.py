"""Every state of batches, phases and members, and everything that can happen to them."""

from itertools import product
from typing import Any, get_args

import pytest

from matoolkit.domain import batch, member, phase
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus

PHASE_EVENTS: list[phase.Event] = [
    phase.Due(),
    phase.NobodyLeft(),
    phase.StepsEnded(0),
    phase.StepsEnded(1),
    phase.GivenSteps(),
    phase.Superseded(),
    phase.BatchCancelled(),
]
COMPLETED, FAILED, SKIPPED = PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.SKIPPED
ACTIVE, REMOVED, GONE = MemberStatus.ACTIVE, MemberStatus.REMOVED, MemberStatus.FAILED
BATCH_EVENTS: list[batch.Event] = [
    batch.InitRequested(),
    batch.InitDone(),
    batch.InitFailed(is_rerun=False),
    batch.InitFailed(is_rerun=True),
    *(
        batch.PhasesEnded(phases, members)
        for phases in ([COMPLETED], [FAILED], [SKIPPED])
        for members in ([ACTIVE], [REMOVED], [GONE])
    ),
    batch.PersonCancelled(),
    batch.Emptied(),
    batch.PersonRetriedMembers(),
    batch.PersonRetriedInit(),
]
MEMBER_EVENTS: list[member.Event] = [
    member.StepFailed(1),
    member.StepFailed(2),
    member.Removed(),
    member.Returned(),
    member.RetriedFromFailure(),
    member.RetriedFromStart(),
]


Decided = list[tuple[Any, Any, Any, str | None]]


def check(decided: Decided, table: Any, events: list[Any], kinds: Any) -> None:
    """Everything that is not ignored is in the table, and everything in the table happens."""
    taken: dict[Any, set[Any]] = {}
    for status, event, to, ignored in decided:
        if ignored is None:
            assert to in table[status, type(event)]
            taken.setdefault((status, type(event)), set()).add(to)
        else:
            assert ignored
            assert to is status
    assert taken == {key: set(to) for key, to in table.items()}
    assert {type(event) for event in events} == set(get_args(kinds))


def test_every_event_in_every_state_of_a_phase() -> None:
    decided: Decided = []
    for status, event in product(PhaseStatus, PHASE_EVENTS):
        decision = phase.decide(status, event)
        decided.append((status, event, decision.status, decision.ignored))
    check(decided, phase.MOVES, PHASE_EVENTS, phase.Event)


def test_every_event_in_every_state_of_a_batch() -> None:
    decided: Decided = []
    for status, event in product(BatchStatus, BATCH_EVENTS):
        decision = batch.decide(status, event)
        decided.append((status, event, decision.status, decision.ignored))
    check(decided, batch.MOVES, BATCH_EVENTS, batch.Event)


def test_every_event_in_every_state_of_a_member() -> None:
    decided: Decided = []
    for status, event in product(MemberStatus, MEMBER_EVENTS):
        decision = member.decide(member.Member(status, 1), event)
        decided.append((status, event, decision.member.status, decision.ignored))
    check(decided, member.MOVES, MEMBER_EVENTS, member.Event)


@pytest.mark.parametrize(
    ("phases", "members", "expected"),
    [
        ([COMPLETED, FAILED], [ACTIVE, GONE], "completed"),
        ([COMPLETED, SKIPPED], [REMOVED], "completed"),
        ([SKIPPED, SKIPPED], [ACTIVE], "completed"),
        ([SKIPPED, SKIPPED], [GONE], "failed"),
        ([SKIPPED, FAILED], [ACTIVE], "failed"),
        ([FAILED, SKIPPED], [REMOVED], "cancelled"),
        ([FAILED], [REMOVED, GONE], "failed"),
        ([PhaseStatus.SUPERSEDED, COMPLETED], [ACTIVE], "completed"),
        ([PhaseStatus.SUPERSEDED, FAILED], [GONE], "failed"),
        ([SKIPPED], [], "cancelled"),
    ],
)
def test_o11_how_a_batch_ends(phases: list[PhaseStatus], members: list[MemberStatus], expected: str) -> None:
    assert batch.decide(BatchStatus.ACTIVE, batch.PhasesEnded(phases, members)).status == expected


def test_v5_a_rerun_of_init_that_fails_holds_the_batch() -> None:
    assert batch.decide(BatchStatus.INIT_DISPATCHED, batch.InitFailed(is_rerun=True)).is_held
    assert batch.decide(BatchStatus.INIT_DISPATCHED, batch.InitFailed(is_rerun=False)).status is BatchStatus.FAILED


def test_t5_who_returns_or_begins_again_is_in_a_new_epoch() -> None:
    gone = member.Member(MemberStatus.REMOVED, 3)
    assert member.decide(gone, member.Returned()).member == member.Member(MemberStatus.ACTIVE, 4)
    failed = member.Member(MemberStatus.FAILED, 1)
    assert member.decide(failed, member.RetriedFromFailure()).member.epoch == 1
    assert member.decide(failed, member.RetriedFromStart()).member.epoch == 2
    assert member.decide(member.Member(ACTIVE, 2), member.StepFailed(1)).ignored
