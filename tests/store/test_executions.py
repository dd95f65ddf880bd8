from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from matoolkit.domain.moves.step import (
    Dispatch,
    Fail,
    FailLost,
    FailUnsent,
    GiveUp,
    NoteLate,
    PollLater,
    RetryLater,
    RetryLost,
    Succeed,
    TimeOut,
)
from matoolkit.domain.states import RollbackCause, StepStatus
from matoolkit.ids import Kind
from matoolkit.store import Store
from matoolkit.store.counts import phase_outcomes, step_counts
from matoolkit.store.executions import (
    inits_by_id,
    lost_jobs,
    polls_due,
    retries_due,
    rollbacks_by_id,
    steps_by_id,
)
from matoolkit.store.failures import failures_by_error, members_that_failed
from matoolkit.store.inits import NewInit, inits_of_batches, insert_inits
from matoolkit.store.members import MemberAt, Restart, fail_members, restart_members
from matoolkit.store.moves import cancel, move_steps, reopen
from matoolkit.store.phases import PhaseRow
from matoolkit.store.rollbacks import (
    NewRollback,
    insert_rollbacks,
    open_rollbacks_of_batches,
    rollbacks_in_sequences,
    rollbacks_of_batches,
    rollbacks_of_members,
)
from matoolkit.store.steps import (
    NewStep,
    cancel_steps_of_batches,
    cancel_steps_of_members,
    cancel_steps_of_phases,
    current_steps_of_members,
    insert_steps,
    members_in_phases,
    steps_in_state_page,
    steps_of_members,
    steps_page,
)
from tests.store.world import World

pytestmark = pytest.mark.both_executions


def one_step(world: World) -> int:
    batch = world.batch()
    return world.steps(batch, world.phase(batch), world.members(batch, 1))[0]


def status_of(store: Store, step: int) -> StepStatus:
    with store.reading() as tx:
        return steps_by_id(tx, [step])[0].status


def job(step: int, attempt: int = 1) -> str:
    return f"step-{step}-attempt-{attempt}"


def test_o2_steps_are_created_once_for_each_epoch(store: Store, world: World) -> None:
    batch = world.batch()
    phase, (member, _) = world.phase(batch), world.members(batch, 2)
    new = NewStep(
        batch_id=batch.id,
        phase_execution_id=phase.id,
        batch_member_id=member,
        epoch=1,
        step_name="create",
        step_index=0,
        worker_id="worker-01",
        timeout_sec=60,
        is_poll_step=True,
        poll_interval_sec=30,
        on_failure="undo",
        max_retries=2,
    )
    with store.transaction() as tx:
        (made,) = insert_steps(tx, [new], world.now)
        assert insert_steps(tx, [new], world.now) == []
        (step,) = steps_by_id(tx, [made.id])
    assert (step.status, step.attempt, step.max_retries, step.on_failure) == (
        StepStatus.PENDING,
        0,
        2,
        "undo",
    )
    assert step.is_poll_step
    assert not step.is_in_flight


def test_m2_an_attempt_is_dispatched_once(store: Store, world: World) -> None:
    step = one_step(world)
    with store.transaction() as tx:
        assert world.dispatched(tx, [step], attempt=2) == []
        assert world.dispatched(tx, [step], attempt=1) == [step]
        assert world.dispatched(tx, [step], attempt=1) == []
        assert world.dispatched(tx, [step], attempt=2) == []
        (row,) = steps_by_id(tx, [step])
    assert (row.status, row.attempt, row.job_id) == (StepStatus.DISPATCHED, 1, job(step))
    assert row.is_in_flight


def test_o4_an_answer_counts_once_and_only_for_the_job_it_belongs_to(store: Store, world: World) -> None:
    step = one_step(world)
    with store.transaction() as tx:
        assert move_steps(tx, Kind.STEP, [Succeed(step, job(step), "{}")], world.now) == []
        world.dispatched(tx, [step])
        assert move_steps(tx, Kind.STEP, [Succeed(step, job(step, 7), "{}")], world.now) == []
        assert move_steps(tx, Kind.STEP, [Succeed(step, job(step), '{"id": 7}')], world.now) == [step]
        assert move_steps(tx, Kind.STEP, [Succeed(step, job(step), "{}")], world.now) == []
        assert move_steps(tx, Kind.STEP, [Fail(step, job(step), None, "late")], world.now) == []
        (row,) = steps_by_id(tx, [step])
    assert (row.status, row.result_json, row.completed_at) == (StepStatus.SUCCEEDED, '{"id": 7}', world.now)
    assert not row.is_in_flight


def test_o7_a_failure_delivered_twice_uses_up_one_retry(store: Store, world: World) -> None:
    step = one_step(world)
    retry = RetryLater(step, job(step), "Graph", "busy", world.now + timedelta(minutes=5), 1)
    with store.transaction() as tx:
        world.dispatched(tx, [step])
        assert move_steps(tx, Kind.STEP, [retry], world.now) == [step]
        assert move_steps(tx, Kind.STEP, [retry], world.now) == []
        assert retries_due(tx, Kind.STEP, world.now + timedelta(minutes=4)) == []
        (due,) = retries_due(tx, Kind.STEP, world.now + timedelta(minutes=5))
        assert (due.kind, due.id, due.attempt) == (Kind.STEP, step, 1)
        assert world.dispatched(tx, [step], attempt=2) == [step]
        assert retries_due(tx, Kind.STEP, world.now + timedelta(minutes=5)) == []
        (row,) = steps_by_id(tx, [step])
    assert (row.retry_count, row.retry_after, row.attempt) == (1, None, 2)


def test_o6_polling_keeps_the_time_of_the_first_incomplete_answer(store: Store, world: World) -> None:
    step, start = one_step(world), world.now
    for attempt in (1, 2):
        with store.transaction() as tx:
            assert world.dispatched(tx, [step], attempt) == [step]
            incomplete = PollLater(step, job(step, attempt), "{}", world.now + timedelta(minutes=1))
            assert move_steps(tx, Kind.STEP, [incomplete], world.now) == [step]
            assert polls_due(tx, Kind.STEP, world.now) == []
            world.clock.advance(timedelta(minutes=1))
            assert [poll.id for poll in polls_due(tx, Kind.STEP, world.now)] == [step]
    with store.transaction() as tx:
        (row,) = steps_by_id(tx, [step])
        assert (row.poll_started_at, row.poll_count) == (start, 2)
        assert row.last_polled_at == start + timedelta(minutes=1)
        world.dispatched(tx, [step], 3)
        too_late = TimeOut(step, job(step, 3), "PollTimeout", "not done in time")
        assert move_steps(tx, Kind.STEP, [too_late], world.now) == [step]
    assert status_of(store, step) is StepStatus.POLL_TIMEOUT


def test_o16_a_lost_jobs_answer_still_counts_while_its_retry_waits(store: Store, world: World) -> None:
    step = one_step(world)
    with store.transaction() as tx:
        world.dispatched(tx, [step])
        retry = RetryLost(step, job(step), "Lost", "no answer", world.now + timedelta(hours=3), 1)
        assert move_steps(tx, Kind.STEP, [retry], world.now) == []
        world.clock.advance(timedelta(hours=2))
        assert [lost.id for lost in lost_jobs(tx, Kind.STEP, world.now)] == [step]
        assert move_steps(tx, Kind.STEP, [retry], world.now) == [step]
        assert lost_jobs(tx, Kind.STEP, world.now) == []
        assert move_steps(tx, Kind.STEP, [Succeed(step, job(step), "{}")], world.now) == [step]
        assert retries_due(tx, Kind.STEP, world.now + timedelta(days=1)) == []
    assert status_of(store, step) is StepStatus.SUCCEEDED


def test_o16_the_answer_to_a_job_that_failed_as_lost_is_only_noted(store: Store, world: World) -> None:
    step = one_step(world)
    with store.transaction() as tx:
        world.dispatched(tx, [step])
        world.clock.advance(timedelta(hours=2))
        failure = FailLost(step, job(step), "Lost", "no answer")
        assert move_steps(tx, Kind.STEP, [failure], world.now) == [step]
        assert move_steps(tx, Kind.STEP, [Succeed(step, job(step), "{}")], world.now) == []
        late = [NoteLate(step, job(step), '{"id": 7}')]
        assert move_steps(tx, Kind.STEP, late, world.now) == [step]
        assert move_steps(tx, Kind.STEP, late, world.now) == []
    assert status_of(store, step) is StepStatus.FAILED


def test_o5_a_cancelled_job_stays_in_flight_until_its_answer_comes_or_it_is_lost(store: Store, world: World) -> None:
    batch = world.batch()
    answered, lost, unsent = steps = world.steps(batch, world.phase(batch), world.members(batch, 3))
    with store.transaction() as tx:
        world.dispatched(tx, [answered, lost])
        cancelled = cancel_steps_of_batches(tx, [batch.id], world.now)
        assert [step.id for step in cancelled if step.lost_at is not None] == [answered, lost]
        assert [step.id for step in cancelled] == steps
        assert [step.id for step in steps_by_id(tx, steps) if step.is_in_flight] == [answered, lost]
        assert reopen(tx, Kind.STEP, steps) == [unsent]
        late = NoteLate(answered, job(answered), '{"id": 7}')
        assert move_steps(tx, Kind.STEP, [late], world.now) == [answered]
        assert move_steps(tx, Kind.STEP, [GiveUp(step) for step in steps], world.now) == []
        world.clock.advance(timedelta(hours=1))
        assert [entry.id for entry in lost_jobs(tx, Kind.STEP, world.now)] == [lost]
        assert move_steps(tx, Kind.STEP, [GiveUp(step) for step in steps], world.now) == [lost]
        assert not any(step.is_in_flight for step in steps_by_id(tx, steps))
        assert reopen(tx, Kind.STEP, steps) == [answered, lost]


def test_m2_reopened_work_forgets_everything_but_its_attempts(store: Store, world: World) -> None:
    step = one_step(world)
    with store.transaction() as tx:
        world.dispatched(tx, [step])
        move_steps(tx, Kind.STEP, [Fail(step, job(step), "Graph", "no such user")], world.now)
        assert reopen(tx, Kind.STEP, [step]) == [step]
        (row,) = steps_by_id(tx, [step])
        assert (row.status, row.attempt, row.job_id, row.params_json) == (StepStatus.PENDING, 1, None, None)
        assert (row.error_message, row.completed_at) == (None, None)
        assert world.dispatched(tx, [step], attempt=2) == [step]


def test_r9_work_without_job_fails_only_while_pending(store: Store, world: World) -> None:
    batch = world.batch()
    pending, sent = steps = world.steps(batch, world.phase(batch), world.members(batch, 2))
    with store.transaction() as tx:
        world.dispatched(tx, [sent])
        failures = [FailUnsent(step, "UnresolvedVariable", "no such variable") for step in steps]
        assert move_steps(tx, Kind.STEP, failures, world.now) == [pending]
        assert cancel(tx, Kind.STEP, steps, world.now) == [sent]


@pytest.mark.parametrize("scope", ["members", "phases"])
def test_o8_all_open_steps_of_members_or_phases_are_cancelled_at_once(store: Store, world: World, scope: str) -> None:
    batch = world.batch()
    members = world.members(batch, 2)
    first, second = (world.phase(batch, index) for index in range(2))
    steps = world.steps(batch, first, members, 2) + world.steps(batch, second, members)
    with store.transaction() as tx:
        world.dispatched(tx, steps[:1])
        move_steps(tx, Kind.STEP, [Succeed(steps[0], job(steps[0]), "{}")], world.now)
        if scope == "members":
            moved = cancel_steps_of_members(tx, members[:1], world.now)
            assert {step.batch_member_id for step in moved} == {members[0]}
            assert len(moved) == 2
        else:
            moved = cancel_steps_of_phases(tx, [first.id], world.now)
            assert {step.phase_execution_id for step in moved} == {first.id}
            assert len(moved) == 3


def test_o3_a_members_present_steps_leave_earlier_epochs_out(store: Store, world: World) -> None:
    batch = world.batch()
    (member,) = world.members(batch, 1)
    old = world.steps(batch, world.phase(batch), [member], 2)
    with store.transaction() as tx:
        assert [step.id for step in current_steps_of_members(tx, [member])] == old
        fail_members(tx, [MemberAt(member, 1)], world.now)
        restart_members(tx, [Restart(member)], world.now, forget_outputs=True)
        assert current_steps_of_members(tx, [member]) == []
        assert [step.id for step in steps_of_members(tx, [member])] == old


def test_o11_a_member_went_through_a_phase_when_all_its_steps_succeeded(store: Store, world: World) -> None:
    batch = world.batch()
    phase, members = world.phase(batch), world.members(batch, 3)
    steps = world.steps(batch, phase, members, 2)
    through, half = steps[:2], steps[2:3]
    with store.transaction() as tx:
        world.dispatched(tx, steps)
        good = [Succeed(step, job(step), "{}") for step in through + half]
        move_steps(tx, Kind.STEP, good, world.now)
        (outcome,) = phase_outcomes(tx, [phase.id])
        assert (outcome.members, outcome.members_through) == (3, 1)
        assert [(count.status, count.count) for count in step_counts(tx, [phase.id])] == [
            (StepStatus.DISPATCHED, 3),
            (StepStatus.SUCCEEDED, 3),
        ]


def test_failures_are_grouped_by_error_with_the_largest_group_first(store: Store, world: World) -> None:
    batch = world.batch()
    steps = world.steps(batch, world.phase(batch), world.members(batch, 5))
    with store.transaction() as tx:
        world.dispatched(tx, steps)
        rare = [Fail(steps[0], job(steps[0]), "Graph", "no licence")]
        common = [Fail(step, job(step), None, "mailbox not found") for step in steps[1:4]]
        move_steps(tx, Kind.STEP, rare + common, world.now)
        first, second = failures_by_error(tx, batch.id)
    assert (first.error, first.error_type, first.steps, first.members) == ("mailbox not found", None, 3, 3)
    assert first.example_step_id == steps[1]
    assert (second.error, second.error_type, second.steps) == ("no licence", "Graph", 1)


def test_o14_members_to_retry_are_chosen_by_step_and_error_of_their_present_epoch(store: Store, world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 3)
    steps = world.steps(batch, world.phase(batch), members)
    with store.transaction() as tx:
        world.dispatched(tx, steps)
        errors = ["no licence", "mailbox\0 not found", "mailbox\ud800 not found"]
        failures = [Fail(step, job(step), None, error) for step, error in zip(steps, errors, strict=True)]
        move_steps(tx, Kind.STEP, failures, world.now)
        assert members_that_failed(tx, batch.id) == members
        group = failures_by_error(tx, batch.id)[0]
        chosen = members_that_failed(
            tx, batch.id, phase_name=group.phase_name, step_name=group.step_name, error=group.error
        )
        assert (group.error, chosen) == ("mailbox\ufffd not found", members[1:])
        assert members_that_failed(tx, batch.id, step_name="another") == []
        fail_members(tx, [MemberAt(member, 1) for member in members], world.now)
        restart_members(tx, list(map(Restart, members[1:])), world.now, forget_outputs=False)
        assert members_that_failed(tx, batch.id) == members[:1]
        assert len(failures_by_error(tx, batch.id)) == 1


def test_r7_a_function_name_from_a_template_may_be_long(store: Store, world: World) -> None:
    batch = world.batch()
    first, second = world.steps(batch, world.phase(batch), world.members(batch, 2))
    long_name = "Enable-" + "x" * 1000
    with store.transaction() as tx:
        jobs = [world.job(first), replace(world.job(second), function_name=long_name)]
        assert move_steps(tx, Kind.STEP, jobs, world.now) == [first, second]
        assert [step.function_name for step in steps_by_id(tx, [first, second])] == ["New-EntraUser", long_name]


def test_pages_of_steps_follow_one_another(store: Store, world: World) -> None:
    batch = world.batch()
    phase = world.phase(batch)
    steps = world.steps(batch, phase, world.members(batch, 12))
    with store.reading() as tx:
        assert [step.id for step in steps_page(tx, batch.id, limit=5)] == steps[:5]
        assert [step.id for step in steps_page(tx, batch.id, after=steps[9], phase_id=phase.id)] == steps[10:]
        assert steps_in_state_page(tx, [phase.id], StepStatus.FAILED) == []


def test_pages_of_steps_in_a_state_go_by_their_numbers_across_phases(store: Store, world: World) -> None:
    batch, other = world.batch(), world.batch(start=world.now + timedelta(days=9))
    phases = [world.phase(batch, 0), world.phase(batch, 1)]
    elsewhere = world.phase(other)
    steps: dict[int, list[int]] = {phase.id: [] for phase in (*phases, elsewhere)}
    for number in range(4):  # so that numbers of one phase come between those of the other
        for phase in phases:
            steps[phase.id] += world.steps(batch, phase, world.members(batch, 2, prefix=f"m{number}-{phase.id}-"))
    steps[elsewhere.id] = world.steps(other, elsewhere, world.members(other, 2))
    first, second = (steps[phase.id] for phase in phases)
    done = [*first[1:], *second[:-1], *steps[elsewhere.id]]
    with store.transaction() as tx:
        assert cancel(tx, Kind.STEP, done, world.now) == sorted(done)

    def page(*of: PhaseRow, **wanted: Any) -> list[int]:
        numbers = [phase.id for phase in of]
        with store.reading() as tx:
            return [step.id for step in steps_in_state_page(tx, numbers, StepStatus.CANCELLED, **wanted)]

    mine = sorted([*first[1:], *second[:-1]])
    assert page(*phases) == mine
    assert page(*phases, limit=5) == mine[:5]
    assert page(*phases, after=mine[4], limit=5) == mine[5:10]
    assert page(phases[1]) == second[:-1]
    assert page(elsewhere) == steps[elsewhere.id]
    assert page() == []


def test_o1_steps_of_init_are_created_once_for_each_version_and_move_like_any_step(store: Store, world: World) -> None:
    batch = world.batch()
    new = [
        NewInit(
            batch_id=batch.id,
            runbook_version=1,
            init_count=1,
            step_name=f"s{n}",
            step_index=n,
            worker_id="w",
            timeout_sec=9,
        )
        for n in range(2)
    ]
    with store.transaction() as tx:
        first, second = insert_inits(tx, new, world.now)
        assert insert_inits(tx, new, world.now) == []
        assert inits_of_batches(tx, [batch.id]) == [first, second]
        sent = Dispatch(first.id, 1, f"init-{first.id}-attempt-1", "New-EntraUser", "{}", world.now)
        assert move_steps(tx, Kind.INIT, [sent], world.now) == [first.id]
        assert [(lost.kind, lost.id) for lost in lost_jobs(tx, Kind.INIT, world.now)] == [(Kind.INIT, first.id)]
        assert inits_by_id(tx, [first.id])[0].status is StepStatus.DISPATCHED


def test_o9_a_rollback_runs_once_for_what_started_it(store: Store, world: World) -> None:
    batch = world.batch()
    (member,) = world.members(batch, 1)
    (step,) = world.steps(batch, world.phase(batch), [member])
    new = NewRollback(
        batch_id=batch.id,
        runbook_version=1,
        cause=RollbackCause.STEP_FAILED,
        sequence_name="undo",
        sequence_key=f"step-{step}",
        batch_member_id=member,
        epoch=1,
        step_execution_id=step,
        step_name="remove",
        step_index=0,
        worker_id="w",
        timeout_sec=9,
    )
    with store.transaction() as tx:
        (made,) = insert_rollbacks(tx, [new], world.now)
        assert insert_rollbacks(tx, [new], world.now) == []
        assert rollbacks_of_members(tx, [member]) == rollbacks_of_batches(tx, [batch.id]) == [made]
        assert rollbacks_in_sequences(tx, [f"step-{step}"]) == rollbacks_by_id(tx, [made.id]) == [made]
        assert open_rollbacks_of_batches(tx, [batch.id]) == [made]
        assert cancel(tx, Kind.ROLLBACK, [made.id], world.now) == [made.id]
        assert open_rollbacks_of_batches(tx, [batch.id]) == []


def test_o3_steps_and_phases_are_those_of_a_members_own_present_epoch(store: Store, world: World) -> None:
    batch = world.batch()
    phase, (begun, again, other) = world.phase(batch), world.members(batch, 3)
    world.steps(batch, phase, [begun, again, other])
    with store.transaction() as tx:
        fail_members(tx, [MemberAt(again, 1)], world.now)
        restart_members(tx, [Restart(again)], world.now, forget_outputs=False)
        new = replace(world.new_step(batch.id, phase.id, other, 1), epoch=2)
        insert_steps(tx, [new], world.now)
        assert [step.batch_member_id for step in current_steps_of_members(tx, [begun, again])] == [begun]
        assert len(current_steps_of_members(tx, [other])) == 1
        assert members_in_phases(tx, [phase.id], [begun, again]) == {(phase.id, begun)}
