"""The database says of every member what the rules say, and counts what it says (rule U1)."""

from collections import Counter
from datetime import datetime
from itertools import product
from typing import Any

import pytest
from sqlalchemy import update

from matoolkit.domain.memberstate import MemberFacts, state_of
from matoolkit.domain.states import ABSENT, MOVED, BatchStatus, MemberState, MemberStatus, PhaseStatus, StepStatus
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.counting import count_again
from matoolkit.store.counts import member_counts
from matoolkit.store.enrolments import count_members, members_page
from matoolkit.store.memberstates import last_completed_phases, states_of_members
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.statecounts import state_counts
from tests.store.world import World

YES_OR_NO = (False, True)
# What members of one batch differ in: status, caught up, an open step, a compensation or being on the way out.
MEMBERS = list(product(MemberStatus, YES_OR_NO, YES_OR_NO, YES_OR_NO))


def member_of(facts: tuple[MemberStatus, bool, bool, bool], at: datetime) -> dict[str, object]:
    status, is_caught_up, _, _ = facts
    gone = {"removed_at": at, "remove_reason": ABSENT, "seen_off_at": at} if status is MemberStatus.REMOVED else {}
    return {"status": status, "caught_up_at": at if is_caught_up else None, **gone}


def possible(facts: tuple[MemberStatus, bool, bool, bool]) -> bool:
    """Only active members have open steps: with the others, they were cancelled."""
    return facts[0] is MemberStatus.ACTIVE or not facts[2]


@pytest.fixture(params=product(YES_OR_NO, YES_OR_NO), ids=["quiet", "ahead", "beginning", "both"])
def crowd(
    request: pytest.FixtureRequest, store: Store, world: World
) -> tuple[BatchRow, dict[int, tuple[MemberStatus, bool, bool, bool]], bool, bool]:
    """A batch with a member for each combination of facts."""
    is_beginning, is_ahead = request.param
    batch = world.batch()
    running, other = world.phase(batch, 0), world.phase(batch, 1)
    kinds = [facts for facts in MEMBERS if possible(facts)]
    members = dict(zip(world.members(batch, len(kinds)), kinds, strict=True))
    steps = world.steps(batch, running, list(members), per_member=2)
    with store.transaction() as tx:
        phases: dict[int, dict[str, Any]] = {
            running.id: {"status": PhaseStatus.DISPATCHED, "expanded_at": None if is_beginning else world.now},
            other.id: {"status": PhaseStatus.PENDING if is_ahead else PhaseStatus.COMPLETED},
        }
        for number, values in phases.items():
            tx.execute(update(phase_executions).where(phase_executions.c.id == number).values(values))
        tx.execute(update(step_executions).where(step_executions.c.id.in_(steps)).values(status=StepStatus.SUCCEEDED))
        for number, facts in members.items():
            tx.execute(update(batch_members).where(batch_members.c.id == number).values(member_of(facts, world.now)))
            if facts[2]:
                mine = step_executions.c.batch_member_id == number
                tx.execute(update(step_executions).where(mine).values(status=StepStatus.PENDING))
            if facts[3]:
                world.rollback(tx, batch, number, f"undo-{number}")
        count_again(tx, [batch.id])
    return batch, members, is_beginning, is_ahead


@pytest.mark.parametrize("status", list(BatchStatus))
def test_u1_the_database_says_the_state_that_the_rules_say_and_counts_it(
    store: Store,
    crowd: tuple[BatchRow, dict[int, tuple[MemberStatus, bool, bool, bool]], bool, bool],
    status: BatchStatus,
) -> None:
    batch, members, is_beginning, is_ahead = crowd
    with store.transaction() as tx:
        tx.execute(update(batches).where(batches.c.id == batch.id).values(status=status))
    expected = {
        number: state_of(MemberFacts(facts[0], status, *facts[1:], False, is_beginning, is_ahead))
        for number, facts in members.items()
    }
    with store.reading() as tx:
        assert states_of_members(tx, list(members)) == expected
        assert _counted(tx, batch) == Counter(expected.values())
        for state in MemberState:
            wanted = [number for number, found in expected.items() if found is state]
            assert [one.id for one in members_page(tx, batch.id, state=state)] == wanted
            assert count_members(tx, batch.id, state=state) == len(wanted)


def _counted(tx: Transaction, batch: BatchRow) -> dict[MemberState, int]:
    return {found.state: found.count for found in state_counts(tx, member_counts(tx, [batch.id]))}


def test_u1_a_member_that_left_is_being_undone_until_it_was_seen_off(store: Store, world: World) -> None:
    batch = world.batch()
    leaving, moved, gone = world.members(batch, 3)
    reasons = {leaving: ABSENT, moved: MOVED, gone: ABSENT}
    with store.transaction() as tx:
        for number, reason in reasons.items():
            values = {"status": MemberStatus.REMOVED, "removed_at": world.now, "remove_reason": reason}
            seen = {"seen_off_at": world.now} if number == gone else {}
            tx.execute(update(batch_members).where(batch_members.c.id == number).values(**values, **seen))
        count_again(tx, [batch.id])
    with store.reading() as tx:
        left = MemberState.LEFT
        assert states_of_members(tx, [leaving, moved, gone]) == {leaving: MemberState.UNDOING, moved: left, gone: left}
        assert _counted(tx, batch) == {MemberState.UNDOING: 1, left: 2}


def test_u1_the_last_completed_phase_is_that_of_the_present_epoch(store: Store, world: World) -> None:
    batch = world.batch()
    phases = [world.phase(batch, index) for index in range(3)]
    through, half, again, beginner = members = world.members(batch, 4)
    for phase in phases[:2]:
        world.steps(batch, phase, members, per_member=2)
    with store.transaction() as tx:
        mine, last = step_executions.c.batch_member_id, step_executions.c.phase_execution_id == phases[1].id
        tx.execute(update(step_executions).values(status=StepStatus.SUCCEEDED))
        tx.execute(
            update(step_executions)
            .where(mine == half, last, step_executions.c.step_index == 1)
            .values(status=StepStatus.FAILED)
        )
        tx.execute(update(batch_members).where(batch_members.c.id.in_([again, beginner])).values(epoch=2))
        tx.execute(
            update(batch_members)
            .where(batch_members.c.id == beginner)
            .values(first_phase_version=1, first_phase_place=2)
        )
    with store.reading() as tx:
        names = [phase.phase_name for phase in phases]
        assert last_completed_phases(tx, members) == {through: names[1], half: names[0], beginner: names[1]}
