"""Which steps a question finds: for each of its conditions there is a row for which only that one does not hold."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from matoolkit.domain.states import StepStatus
from matoolkit.ids import Kind
from matoolkit.store import Store, Transaction
from matoolkit.store.executions import NewExecution, Overdue, lost_jobs, polls_due, retries_due
from matoolkit.store.narrow_executions import (
    batches_of_work,
    missing_outputs_of_members,
    next_steps_of_members,
    unfinished_rollbacks_of_inits,
    unfinished_rollbacks_of_members,
)
from matoolkit.store.rollbacks import open_rollbacks_of_batches
from matoolkit.store.schema import batch_members, rollback_executions, step_executions
from matoolkit.store.steps import (
    PhasePlace,
    cancel_steps_of_older_epochs,
    current_steps_of_members,
    done_steps_of_members,
    insert_phase_steps,
    members_in_phases,
    members_yet_to_begin,
    steps_in_state_page,
    steps_page,
)
from tests.databases import NOON
from tests.store.world import World, put

EARLIER, LATER = NOON - timedelta(days=1), NOON + timedelta(days=1)
STEP = NewExecution(step_name="s", step_index=0, worker_id="worker-01", timeout_sec=60)


def test_o14_a_member_has_no_steps_in_phases_before_the_one_it_begins_with(store: Store, world: World) -> None:
    batch = world.batch()
    phase = world.phase(batch)
    first, there, later, by_another, _ = members = world.members(batch, 5)
    with store.transaction() as tx:
        put(tx, batch_members, there, first_phase_version=1, first_phase_place=1)
        put(tx, batch_members, later, first_phase_version=1, first_phase_place=2)
        put(tx, batch_members, by_another, first_phase_version=2, first_phase_place=2)
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 1), [STEP], members[:4], NOON)
        assert [step.batch_member_id for step in steps_page(tx, batch.id)] == [first, there, by_another]


def test_o3_only_steps_of_a_members_present_epoch_are_current(store: Store, world: World) -> None:
    batch = world.batch()
    phase, other_phase = world.phase(batch), world.phase(batch, 1)
    again, other = world.members(batch, 2)
    old, _ = world.steps(batch, phase, [again, other])
    with store.transaction() as tx:
        put(tx, batch_members, again, epoch=2)
        put(tx, batch_members, other, epoch=2)
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), [STEP], [again], NOON)
        insert_phase_steps(tx, PhasePlace(other_phase.id, 1, 0), [STEP], [other], NOON)
        insert_phase_steps(
            tx,
            PhasePlace(other_phase.id, 1, 0),
            [NewExecution(step_name="t", step_index=1, worker_id="worker-01", timeout_sec=60)],
            [again],
            NOON,
        )
        (current, second) = current_steps_of_members(tx, [again])
        assert (current.phase_execution_id, second.phase_execution_id) == (phase.id, other_phase.id)
        phases = [phase.id, other_phase.id]
        assert members_in_phases(tx, phases, [again, other]) == {(phase.id, again), (other_phase.id, other)}
        assert members_in_phases(tx, [phase.id], [again, other]) == {(phase.id, again)}
        assert members_in_phases(tx, phases, [other]) == {(other_phase.id, other)}
        assert [step.id for step in cancel_steps_of_older_epochs(tx, [again], NOON)] == [old]


def test_o14_done_is_what_succeeded_in_any_epoch(store: Store, world: World) -> None:
    batch = world.batch()
    phase, (mine, other) = world.phase(batch), world.members(batch, 2)
    done, _, others = world.steps(batch, phase, [mine], 2) + world.steps(batch, phase, [other])
    with store.transaction() as tx:
        put(tx, batch_members, mine, epoch=2)
        for step in (done, others):
            put(tx, step_executions, step, status="succeeded")
        assert [(step.batch_member_id, step.step_index) for step in done_steps_of_members(tx, [mine])] == [(mine, 0)]


def test_v3_who_has_yet_to_begin_a_phase_has_its_first_step_pending_and_no_steps_in_the_other(
    store: Store, world: World
) -> None:
    batch = world.batch()
    phase, other_phase, third = (world.phase(batch, index) for index in range(3))
    waits, begun, has_other, went_on, started_over = world.members(batch, 5)
    steps = world.steps(batch, phase, [waits, begun, has_other, went_on, started_over], 2)
    world.steps(batch, other_phase, [has_other, started_over])
    world.steps(batch, third, [begun])
    with store.transaction() as tx:
        put(tx, step_executions, steps[2], status="dispatched")
        put(tx, step_executions, steps[6], status="succeeded")
        for step in steps[8:]:
            put(tx, step_executions, step, epoch=2)
        # Somebody who started all over has the other phase's steps of the epoch before.
        assert members_yet_to_begin(tx, [phase.id], other_phase.id) == {waits, started_over}
        assert members_yet_to_begin(tx, [phase.id, third.id], other_phase.id) == {waits, begun, started_over}


def test_steps_are_paged_by_batch_phase_and_state(store: Store, world: World) -> None:
    batch = world.batch()
    phase, other_phase, elsewhere = world.phase(batch), world.phase(batch, 1), world.another(batch)
    members = world.members(batch, 3)
    first, second, third = world.steps(batch, phase, members)
    (others,) = world.steps(batch, other_phase, members[:1])
    world.steps(elsewhere, world.phase(elsewhere), world.members(elsewhere, 1))
    with store.transaction() as tx:
        put(tx, step_executions, second, status="failed")
        assert [step.id for step in steps_page(tx, batch.id)] == [first, second, third, others]
        assert [step.id for step in steps_page(tx, batch.id, phase_id=other_phase.id)] == [others]
        assert [step.id for step in steps_page(tx, batch.id, after=first, limit=1)] == [second]
        both = [phase.id, other_phase.id]
        assert [step.id for step in steps_in_state_page(tx, both, StepStatus.PENDING)] == [first, third, others]
        assert [step.id for step in steps_in_state_page(tx, both[:1], StepStatus.PENDING)] == [first, third]
        page = steps_in_state_page(tx, both, StepStatus.PENDING, after=first, limit=1)
        assert [step.id for step in page] == [third]


def test_m5_only_the_batches_of_the_work_at_hand_are_to_be_locked(store: Store, world: World) -> None:
    batch = world.batch()
    other = world.another(batch)
    mine, _ = (world.steps(one, world.phase(one), world.members(one, 1)) for one in (batch, other))
    with store.reading() as tx:
        assert batches_of_work(tx, Kind.STEP, mine) == [batch.id]


def test_o3_a_step_is_next_when_the_one_directly_before_it_in_its_phase_is_not_open(store: Store, world: World) -> None:
    batch = world.batch()
    phase, other_phase = world.phase(batch), world.phase(batch, 1)
    mine, other = world.members(batch, 2)
    steps = world.steps(batch, phase, [mine], 4)
    others = world.steps(batch, other_phase, [mine], 2)
    world.steps(batch, phase, [other], 4)
    with store.transaction() as tx:
        put(tx, step_executions, steps[0], status="succeeded")
        put(tx, step_executions, others[0], status="cancelled", lost_at=LATER)
        assert [step.id for step in next_steps_of_members(tx, [mine])] == [steps[1], *others]
        put(tx, step_executions, steps[3], epoch=2)
        found = [step.id for step in next_steps_of_members(tx, [mine])]
        assert found == [steps[1], steps[3], *others], "the one before it is of another epoch"


def test_o9_what_is_being_undone_is_open_or_its_job_is_out(store: Store, world: World) -> None:
    batch = world.batch()
    elsewhere = world.another(batch)
    mine, other = world.members(batch, 2)
    with store.transaction() as tx:
        opened, out, ended = (world.rollback(tx, batch, mine, key) for key in "abc")
        others = world.rollback(tx, batch, other, "d")
        of_init, done, further = (
            world.rollback(tx, one, None, one_key) for one, one_key in ((batch, "e"), (batch, "f"), (elsewhere, "g"))
        )
        put(tx, rollback_executions, out, status="cancelled", lost_at=LATER)
        for number in (ended, done):
            put(tx, rollback_executions, number, status="failed")
        assert [one.id for one in unfinished_rollbacks_of_members(tx, [mine])] == [opened, out]
        assert [one.id for one in unfinished_rollbacks_of_inits(tx, [batch.id])] == [of_init]
        assert [one.id for one in open_rollbacks_of_batches(tx, [batch.id])] == [opened, others, of_init]
        assert [one.id for one in unfinished_rollbacks_of_inits(tx, [batch.id, elsewhere.id])] == [of_init, further]


def test_o15_outputs_are_owed_by_the_steps_that_lack_them(store: Store, world: World) -> None:
    batch = world.batch()
    mine, other = world.members(batch, 2)
    owing, _, others = world.steps(batch, world.phase(batch), [mine, other], 2)[:3]
    with store.transaction() as tx:
        for step in (owing, others):
            put(tx, step_executions, step, missing_outputs_json="{}")
        assert [step.id for step in missing_outputs_of_members(tx, [mine])] == [owing]


@pytest.mark.parametrize(
    ("question", "column", "status"),
    [(polls_due, "poll_due_at", "polling"), (retries_due, "retry_after", "pending"), (lost_jobs, "lost_at", None)],
)
def test_t9_work_is_overdue_in_its_state_from_its_time_on(
    store: Store, world: World, question: Callable[..., list[Overdue]], column: str, status: str | None
) -> None:
    def ids(tx: Transaction, at: datetime, after: Overdue | None = None, limit: int = 9) -> list[int]:
        return [one.id for one in question(tx, Kind.STEP, at, after=after, limit=limit)]

    batch = world.batch()
    first, second, also_second, later, ended = world.steps(batch, world.phase(batch), world.members(batch, 5))
    with store.transaction() as tx:
        for step, at in ((first, EARLIER), (second, NOON), (also_second, NOON), (later, LATER), (ended, EARLIER)):
            put(tx, step_executions, step, **{column: at, "status": status or "dispatched"})
        put(tx, step_executions, ended, **({"status": "cancelled"} if status else {column: None}))
        assert ids(tx, NOON) == [first, second, also_second]
        assert ids(tx, NOON, limit=2) == [first, second]
        before, at_once, _ = question(tx, Kind.STEP, NOON)
        assert ids(tx, NOON, after=before) == [second, also_second]
        assert ids(tx, LATER, after=at_once) == [also_second, later]
