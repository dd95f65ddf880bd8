"""What must be so when phases and batches end, begin again, or follow another version."""

from dataclasses import replace
from datetime import timedelta

import pytest

from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves.step import FailUnsent, PollLater, Succeed, TimeOut
from matoolkit.ids import Kind
from matoolkit.store import Store
from matoolkit.store.batches import follow_version, move_batches, reopen_batches, reopen_inits
from matoolkit.store.counts import phase_outcomes
from matoolkit.store.executions import steps_by_id
from matoolkit.store.members import Return, remove_members, return_members
from matoolkit.store.moves import move_steps
from matoolkit.store.phases import (
    NewPhase,
    batches_without_open_phases,
    due_phases,
    insert_phases,
    phases_without_open_steps,
    reopen_phases,
    skip_phases,
)
from matoolkit.store.steps import insert_steps
from tests.store.world import World

pytestmark = pytest.mark.both_executions


def test_o10_a_skipped_phase_that_is_given_steps_ends_when_they_have(store: Store, world: World) -> None:
    batch = world.batch()
    phase, members = world.phase(batch), world.members(batch, 1)
    with store.transaction() as tx:
        skip_phases(tx, [phase.id], world.now)
        assert reopen_phases(tx, [phase.id], world.now) == [phase.id]
    (step,) = world.steps(batch, phase, members)
    with store.transaction() as tx:
        world.dispatched(tx, [step])
        assert phases_without_open_steps(tx) == []
        move_steps(tx, Kind.STEP, [Succeed(step, f"step-{step}-attempt-1", "{}")], world.now)
        assert [found.id for found in phases_without_open_steps(tx)] == [phase.id]


def test_v2_manual_and_reopened_batches_keep_their_version(store: Store, world: World) -> None:
    first = world.runbook()
    manual, reopened = world.batch(first, manual=True), world.batch(first)
    ordinary = world.batch(first, start=world.now)
    second = world.runbook()
    with store.transaction() as tx:
        move_batches(tx, batch_moves.COMPLETE, [reopened.id], world.now)
        reopen_batches(tx, [reopened.id], world.now)
        assert follow_version(tx, [manual.id, reopened.id, ordinary.id], second.id) == [ordinary.id]


def test_v2_a_batch_that_failed_in_init_takes_the_active_version_when_retried(store: Store, world: World) -> None:
    batch = world.batch(world.runbook())
    second = world.runbook()
    with store.transaction() as tx:
        move_batches(tx, batch_moves.FAIL, [batch.id], world.now)
        reopen_inits(tx, [batch.id])
        assert follow_version(tx, [batch.id], second.id) == [batch.id]


def test_m3_two_moves_of_one_row_are_refused(store: Store, world: World) -> None:
    batch = world.batch()
    (step,) = world.steps(batch, world.phase(batch), world.members(batch, 1))
    job = f"step-{step}-attempt-1"
    with store.transaction() as tx:
        world.dispatched(tx, [step])
        with pytest.raises(ValueError, match="two changes of one row of step_executions"):
            move_steps(tx, Kind.STEP, [Succeed(step, job, "1"), Succeed(step, job, "2")], world.now)


def test_t8_phases_due_at_the_same_moment_come_in_the_order_of_their_runbook(store: Store, world: World) -> None:
    batch = world.batch()
    with store.transaction() as tx:
        new = [NewPhase(batch.id, 1, name, index, 0, world.now) for index, name in ((1, "second"), (0, "first"))]
        insert_phases(tx, new)
        assert [phase.phase_name for phase in due_phases(tx, world.now)] == ["first", "second"]


def test_o6_the_answer_at_the_deadline_is_a_poll_like_the_others(store: Store, world: World) -> None:
    batch = world.batch()
    (step,) = world.steps(batch, world.phase(batch), world.members(batch, 1))
    later = world.now + timedelta(hours=1)
    with store.transaction() as tx:
        world.dispatched(tx, [step])
        move_steps(tx, Kind.STEP, [PollLater(step, f"step-{step}-attempt-1", "{}", later)], world.now)
        world.dispatched(tx, [step], 2)
        move_steps(tx, Kind.STEP, [TimeOut(step, f"step-{step}-attempt-2", None, "not done")], later)
        (row,) = steps_by_id(tx, [step])
        assert (row.poll_count, row.last_polled_at) == (2, later)


def test_o11_a_batch_whose_members_wait_to_be_caught_up_has_not_ended(store: Store, world: World) -> None:
    done, waiting = world.batch(), world.batch(start=world.now)
    world.members(done, 1)
    world.members(waiting, 1, waiting=True)
    with store.transaction() as tx:
        assert batches_without_open_phases(tx) == [done.id]


def test_o11_what_a_member_did_before_it_started_all_over_does_not_count(store: Store, world: World) -> None:
    batch = world.batch()
    phase, members = world.phase(batch), world.members(batch, 1)
    (step,) = world.steps(batch, phase, members)
    with store.transaction() as tx:
        world.dispatched(tx, [step])
        move_steps(tx, Kind.STEP, [Succeed(step, f"step-{step}-attempt-1", "{}")], world.now)
        remove_members(tx, members, "scheduler", "gone", world.now)
        return_members(tx, [Return(members[0], "{}", "1" * 32)], world.now)
        (again,) = insert_steps(tx, [replace(world.new_step(batch.id, phase.id, members[0]), epoch=2)], world.now)
        move_steps(tx, Kind.STEP, [FailUnsent(again.id, None, "no")], world.now)
        (outcome,) = phase_outcomes(tx, [phase.id])
        assert (outcome.members, outcome.members_through) == (1, 0)
