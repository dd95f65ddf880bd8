"""What the orchestrator reads and writes in sets: narrow records, next steps, steps of a phase (rules M4, O2, O3)."""

import pytest

from matoolkit.domain.gates import GateKind
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.ids import Kind
from matoolkit.store import Store
from matoolkit.store.enrolments import taken_keys
from matoolkit.store.executions import NewExecution
from matoolkit.store.holds import Hold, hold_batches
from matoolkit.store.members import Return, remove_members, return_members
from matoolkit.store.moves import cancel
from matoolkit.store.narrow_executions import batches_of_work, next_steps_of_members, step_states
from matoolkit.store.narrow_members import caught_up_members, members_to_catch_up, members_with_keys
from matoolkit.store.steps import PhasePlace, cancel_steps_of_older_epochs, insert_phase_steps, steps_page
from tests.store.world import World

pytestmark = pytest.mark.both_executions

STEPS = [
    NewExecution(step_name=f"s{index}", step_index=index, worker_id="worker-01", timeout_sec=60) for index in range(3)
]


def test_o2_members_get_the_steps_of_a_phase_once(store: Store, world: World) -> None:
    batch = world.batch()
    phase, members = world.phase(batch), world.members(batch, 4)
    with store.transaction() as tx:
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), STEPS, members[:3], world.now)
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), STEPS, members, world.now)
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), STEPS, [], world.now)
        steps = steps_page(tx, batch.id)
    assert sorted((step.batch_member_id, step.step_index) for step in steps) == [
        (member, index) for member in members for index in range(3)
    ]
    assert {(step.status, step.attempt, step.epoch, step.batch_id) for step in steps} == {("pending", 0, 1, batch.id)}


def test_o3_the_first_open_step_of_each_phase_and_every_job_that_is_out(store: Store, world: World) -> None:
    batch = world.batch()
    first, second = world.phase(batch), world.phase(batch, 1)
    (member, other) = world.members(batch, 2)
    with store.transaction() as tx:
        insert_phase_steps(tx, PhasePlace(first.id, 1, 0), STEPS, [member, other], world.now)
        insert_phase_steps(tx, PhasePlace(second.id, 1, 0), STEPS, [member], world.now)
        found = next_steps_of_members(tx, [member])
        assert [(step.phase_execution_id, step.step_index) for step in found] == [(first.id, 0), (second.id, 0)]
        world.dispatched(tx, [found[0].id])
        cancel(tx, Kind.STEP, [found[0].id], world.now)
        after = next_steps_of_members(tx, [member])
        seen = [(step.phase_execution_id, step.step_index, step.is_in_flight) for step in after]
        assert sorted(seen) == [(first.id, 0, True), (first.id, 1, False), (second.id, 0, False)]
        assert [step.id for step in step_states(tx, [found[0].id])] == [found[0].id]
        assert batches_of_work(tx, Kind.STEP, [step.id for step in after]) == [batch.id]


def test_o3_the_first_open_step_is_found_wherever_others_have_ended(store: Store, world: World) -> None:
    batch = world.batch()
    phase, (member,) = world.phase(batch), world.members(batch, 1)
    with store.transaction() as tx:
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), STEPS, [member], world.now)
        first, second, third = [step.id for step in steps_page(tx, batch.id)]
        cancel(tx, Kind.STEP, [second], world.now)
        assert [step.id for step in next_steps_of_members(tx, [member])] == [first, third]
        cancel(tx, Kind.STEP, [first], world.now)
        assert [step.id for step in next_steps_of_members(tx, [member])] == [third]
        cancel(tx, Kind.STEP, [third], world.now)
        assert next_steps_of_members(tx, [member]) == []


def test_o5_what_is_left_of_an_older_epoch_is_cancelled_and_nothing_else(store: Store, world: World) -> None:
    batch = world.batch()
    phase, (back, other) = world.phase(batch), world.members(batch, 2)
    with store.transaction() as tx:
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), STEPS[:1], [back, other], world.now)
        remove_members(tx, [back], "scheduler", "gone", world.now)
        return_members(tx, [Return(back, "{}", "h")], world.now)
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), STEPS[:1], [back], world.now)
        cancelled = cancel_steps_of_older_epochs(tx, [back, other], world.now)
        states = {(step.batch_member_id, step.epoch): str(step.status) for step in steps_page(tx, batch.id)}
    assert [step.batch_member_id for step in cancelled] == [back]
    assert states == {(back, 1): "cancelled", (back, 2): "pending", (other, 1): "pending"}


def test_o10_members_are_expanded_or_wait_to_catch_up_never_both(store: Store, world: World) -> None:
    batch = world.batch()
    there, late = world.members(batch, 3), world.members(batch, 2, waiting=True, prefix="late")
    idle = world.batch(world.runbook("other"), BatchStatus.INIT_DISPATCHED)
    world.members(idle, 1, waiting=True)
    with store.transaction() as tx:
        assert caught_up_members(tx, batch.id, after=there[0], limit=5) == there[1:]
        assert [member.id for member in members_to_catch_up(tx)] == late
        assert [member.id for member in members_to_catch_up(tx, after=late[0], limit=5)] == late[1:]
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "why", "key", "{}")], world.now)
        assert members_to_catch_up(tx) == []


def test_o14_keys_under_way_are_those_of_active_members_of_unfinished_batches(store: Store, world: World) -> None:
    runbook = world.runbook()
    mine, done = world.batch(runbook), world.batch(runbook, BatchStatus.COMPLETED, manual=True)
    world.members(mine, 2)
    world.members(done, 1, prefix="past")
    with store.transaction() as tx:
        assert taken_keys(tx, "wave", ["user0", "past0", "nobody"]) == {"user0"}
        assert taken_keys(tx, "wave", ["user0"], besides=mine.id) == set()
        (found,) = members_with_keys(tx, mine.id, ["user1", "past0"])
        assert (found.member_key, found.status) == ("user1", MemberStatus.ACTIVE)
