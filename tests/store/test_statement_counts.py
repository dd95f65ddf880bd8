"""The number of statements does not grow with the number of rows (rule M4)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from matoolkit.domain.moves.step import Succeed
from matoolkit.ids import Kind
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import lock_batches
from matoolkit.store.counts import member_counts, phase_outcomes, step_counts
from matoolkit.store.enrolments import known_members, latest_enrolments
from matoolkit.store.executions import lost_jobs, polls_due, retries_due, steps_by_id
from matoolkit.store.members import (
    MemberAt,
    NewMember,
    Outputs,
    Refresh,
    fail_members,
    insert_members,
    keep_outputs,
    members_by_id,
    refresh_members,
)
from matoolkit.store.memberstates import last_completed_phases, states_of_members
from matoolkit.store.moves import cancel, move_steps, reopen
from matoolkit.store.outbox import NewMessage, add_messages
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.reporting import ReportFilter, report_page
from matoolkit.store.rollbacks import rollbacks_of_members
from matoolkit.store.statecounts import state_counts
from matoolkit.store.steps import cancel_steps_of_members, current_steps_of_members
from tests.store.world import World

SMALL, LARGE = 3, 3000  # the large one is beyond every database's limit of parameters


@pytest.fixture
def everything(world: World) -> Callable[[Transaction, int], Any]:
    """A pile of results handled: load all about it, decide, write in bulk."""
    batch = world.batch()
    phase, members = world.phase(batch), world.members(batch, LARGE)
    steps = world.steps(batch, phase, members)
    with world.store.transaction() as tx:
        world.dispatched(tx, steps)

    def handle(tx: Transaction, size: int) -> None:
        chosen, mine = steps[:size], members[:size]
        lock_batches(tx, [batch.id])
        assert len(steps_by_id(tx, chosen)) == size
        assert len(members_by_id(tx, mine)) == size
        assert len(current_steps_of_members(tx, mine)) == size
        known_members(tx, [batch.id])
        latest_enrolments(tx, "wave", [f"user{number}" for number in range(size)])
        phases_of_batches(tx, [batch.id])
        rollbacks_of_members(tx, mine)
        answers = [Succeed(step, f"step-{step}-attempt-1", '{"id": 1}') for step in chosen]
        assert move_steps(tx, Kind.STEP, answers, world.now) == chosen
        assert keep_outputs(tx, [Outputs(number, 1, "{}") for number in mine]) == mine
        assert refresh_members(tx, [Refresh(number, "{}", "h") for number in mine]) == mine
        assert fail_members(tx, [MemberAt(number, 1) for number in mine], world.now) == mine
        cancel_steps_of_members(tx, mine, world.now)
        cancel(tx, Kind.STEP, chosen, world.now)
        reopen(tx, Kind.STEP, chosen)
        new = [NewMember(batch.id, f"new-{size}-{number}", "{}", "h") for number in range(size)]
        assert len(insert_members(tx, new, world.now)) == size
        messages = [NewMessage("worker-jobs", f"{size}-{number}", "worker-job", "{}") for number in range(size)]
        assert len(add_messages(tx, messages, world.now)) == size
        step_counts(tx, [phase.id])
        phase_outcomes(tx, [phase.id])
        state_counts(tx, member_counts(tx, [batch.id]))
        assert len(states_of_members(tx, mine)) == size
        last_completed_phases(tx, mine)
        assert len(report_page(tx, ReportFilter(batch_id=batch.id), limit=size)) == size
        for sweep in (polls_due, retries_due, lost_jobs):
            sweep(tx, Kind.STEP, world.now + timedelta(days=1))

    return handle


def test_m4_a_pile_of_any_size_costs_the_same_number_of_statements(
    store: Store,
    everything: Callable[[Transaction, int], Any],
    statements: Callable[[], list[str]],
) -> None:
    counts = []
    for size in (SMALL, LARGE):
        with pytest.raises(ZeroDivisionError), store.transaction() as tx:
            statements()
            everything(tx, size)
            counts.append(len(statements()))
            _ = 1 / 0
    assert counts[0] == counts[1] < 50
