"""Every move from every state: it happens where it may, and changes nothing where it may not (rule M3)."""

from collections.abc import Callable, Collection
from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest
from sqlalchemy import Table, select, update

from matoolkit.domain.states import BatchStatus, MemberStatus, OverdueBehavior, PhaseStatus, StepStatus
from matoolkit.ids import Kind
from matoolkit.store import Transaction, schema
from matoolkit.store.batches import (
    Hold,
    Reschedule,
    activate_batches,
    advance_to_phase,
    approve_hold,
    batches_by_id,
    cancel_batches,
    complete_batches,
    dispatch_init,
    fail_batches,
    follow_version,
    hold_batches,
    note_removals_approved,
    release_batches,
    reopen_batches,
    reschedule_batches,
    take_version,
)
from matoolkit.store.executions import lost_jobs
from matoolkit.store.members import (
    MemberAt,
    Outputs,
    Refresh,
    Restart,
    Return,
    fail_members,
    keep_outputs,
    note_caught_up,
    note_left_source,
    reactivate_members,
    refresh_members,
    remove_members,
    restart_members,
    return_members,
)
from matoolkit.store.moves import (
    Dispatch,
    Failure,
    Impossible,
    Incomplete,
    LateResult,
    Retry,
    Success,
    Withdrawal,
    cancel,
    dispatch,
    fail,
    fail_lost,
    fail_undispatched,
    give_up_cancelled,
    note_late_results,
    note_withdrawn,
    poll_later,
    reopen,
    retry_later,
    retry_lost,
    succeed,
    time_out_polls,
)
from matoolkit.store.phases import (
    NewDueTime,
    cancel_phases,
    complete_phases,
    dispatch_phases,
    fail_phases,
    note_expanded,
    reopen_phases,
    reschedule_phases,
    skip_phases,
    supersede_phases,
)
from matoolkit.store.runbooks import NewVersion, publish_version
from tests.databases import NOON
from tests.store.world import World

Move = Callable[[Transaction, int], list[int]]
LATER = NOON + timedelta(days=1)
JOB = "step-1-attempt-1"
STEP = Kind.STEP


def newer(tx: Transaction) -> int:
    """Publish another version of the runbook, and return its id."""
    return publish_version(
        tx, NewVersion("wave", "name: wave\n#2\n", "hash2", OverdueBehavior.RERUN, False, "ben"), NOON
    ).id


BATCHES: dict[str, tuple[Move, str]] = {
    "dispatch init": (lambda tx, n: dispatch_init(tx, [n], NOON), "detected init_dispatched active"),
    "activate": (lambda tx, n: activate_batches(tx, [n]), "detected init_dispatched"),
    "complete": (lambda tx, n: complete_batches(tx, [n], NOON), "active"),
    "fail": (lambda tx, n: fail_batches(tx, [n], NOON), "detected init_dispatched active"),
    "cancel": (lambda tx, n: cancel_batches(tx, [n], NOON), "detected init_dispatched active"),
    "reopen": (lambda tx, n: reopen_batches(tx, [n], BatchStatus.ACTIVE, NOON), "completed failed"),
    "reschedule": (lambda tx, n: reschedule_batches(tx, [Reschedule(n, LATER)]), "detected init_dispatched active"),
    "hold": (lambda tx, n: hold_batches(tx, [Hold(n, "why", "k", "{}")], NOON), "detected init_dispatched active"),
    "follow": (lambda tx, n: follow_version(tx, [n], newer(tx)), "detected init_dispatched active"),
    "take": (lambda tx, n: take_version(tx, n, newer(tx)), "detected init_dispatched active"),
    "note removals": (lambda tx, n: note_removals_approved(tx, [n], NOON), "detected init_dispatched active"),
}
MEMBERS: dict[str, tuple[Move, str]] = {
    "refresh": (lambda tx, n: refresh_members(tx, [Refresh(n, "{}", "h")]), "active"),
    "remove": (lambda tx, n: remove_members(tx, [n], "anna", "why", NOON), "active"),
    "return": (lambda tx, n: return_members(tx, [Return(n, "{}", "h")], NOON), "removed"),
    "fail": (lambda tx, n: fail_members(tx, [MemberAt(n, 1)], NOON), "active"),
    "reactivate": (lambda tx, n: reactivate_members(tx, [n]), "failed"),
    "restart": (lambda tx, n: restart_members(tx, [Restart(n)], NOON, forget_outputs=True), "failed"),
    "leave the source": (lambda tx, n: note_left_source(tx, [n], NOON), "active"),
}
PHASES: dict[str, tuple[Move, str]] = {
    "dispatch": (lambda tx, n: dispatch_phases(tx, [n], NOON), "pending"),
    "expand": (lambda tx, n: note_expanded(tx, [n], NOON), "dispatched"),
    "complete": (lambda tx, n: complete_phases(tx, [n], NOON), "dispatched"),
    "fail": (lambda tx, n: fail_phases(tx, [n], NOON), "dispatched"),
    "skip": (lambda tx, n: skip_phases(tx, [n], NOON), "pending"),
    "supersede": (lambda tx, n: supersede_phases(tx, [n], NOON), "pending dispatched"),
    "cancel": (lambda tx, n: cancel_phases(tx, [n], NOON), "pending dispatched"),
    "reopen": (lambda tx, n: reopen_phases(tx, [n], NOON), "completed failed skipped"),
    "reschedule": (lambda tx, n: reschedule_phases(tx, [NewDueTime(n, LATER)]), "pending"),
}
# The step has an unanswered job that has been out for too long, so every move that depends on one can happen.
STEPS: dict[str, tuple[Move, str]] = {
    "dispatch": (lambda tx, n: dispatch(tx, STEP, [Dispatch(n, 2, "j2", "F", "{}", LATER)], NOON), "pending polling"),
    "succeed": (lambda tx, n: succeed(tx, STEP, [Success(n, JOB, "{}")], NOON), "dispatched pending"),
    "fail": (lambda tx, n: fail(tx, STEP, [Failure(n, JOB, None, "e")], NOON), "dispatched pending"),
    "time out": (lambda tx, n: time_out_polls(tx, STEP, [Failure(n, JOB, None, "e")], NOON), "dispatched pending"),
    "retry": (lambda tx, n: retry_later(tx, STEP, [Retry(n, JOB, None, "e", LATER, 1)], NOON), "dispatched pending"),
    "poll": (lambda tx, n: poll_later(tx, STEP, [Incomplete(n, JOB, "{}", LATER)], NOON), "dispatched pending"),
    "fail as lost": (lambda tx, n: fail_lost(tx, STEP, [Failure(n, JOB, None, "e")], NOON), "dispatched"),
    "retry as lost": (lambda tx, n: retry_lost(tx, STEP, [Retry(n, JOB, None, "e", LATER, 1)], NOON), "dispatched"),
    "fail unsent": (lambda tx, n: fail_undispatched(tx, STEP, [Impossible(n, None, "e")], NOON), "pending polling"),
    "cancel": (lambda tx, n: cancel(tx, STEP, [n], NOON), "pending dispatched polling"),
    "late result": (
        lambda tx, n: note_late_results(tx, STEP, [LateResult(n, JOB, "{}")], NOON),
        "failed poll_timeout cancelled",
    ),
    "withdraw": (lambda tx, n: note_withdrawn(tx, STEP, [Withdrawal(n, JOB)]), "failed poll_timeout cancelled"),
    "give up": (lambda tx, n: give_up_cancelled(tx, STEP, [n], NOON), "failed poll_timeout cancelled"),
    "reopen": (lambda tx, n: reopen(tx, STEP, [n]), ""),
}


@pytest.fixture
def rows(world: World) -> dict[str, int]:
    batch = world.batch()
    phase, (member,) = world.phase(batch), world.members(batch, 1)
    (step,) = world.steps(batch, phase, [member])
    return {"batches": batch.id, "batch_members": member, "phase_executions": phase.id, "step_executions": step}


@pytest.mark.parametrize(
    ("table", "statuses", "moves", "also"),
    [
        (schema.batches, BatchStatus, BATCHES, {}),
        (schema.batch_members, MemberStatus, MEMBERS, {}),
        (schema.phase_executions, PhaseStatus, PHASES, {}),
        (schema.step_executions, StepStatus, STEPS, {"job_id": JOB, "attempt": 1, "lost_at": NOON}),
    ],
    ids=["batches", "members", "phases", "steps"],
)
def test_m3_every_move_from_every_state(
    world: World,
    rows: dict[str, int],
    table: Table,
    statuses: Collection[StrEnum],
    moves: dict[str, tuple[Move, str]],
    also: dict[str, Any],
) -> None:
    row = rows[table.name]
    for name, (move, allowed) in moves.items():
        for status in statuses:
            with pytest.raises(ZeroDivisionError), world.store.transaction() as tx:
                tx.execute(update(table).where(table.c.id == row).values(status=status, **also))
                before = tx.rows(lambda *cells: cells, select(*table.c).where(table.c.id == row))
                moved = move(tx, row)
                after = tx.rows(lambda *cells: cells, select(*table.c).where(table.c.id == row))
                assert moved == ([row] if status in allowed.split() else []), f"{name} from {status}"
                assert (after == before) is (not moved), f"{name} from {status}"
                _ = 1 / 0


ABOUT_A_JOB = (
    "succeed", "fail", "time out", "retry", "poll", "fail as lost", "retry as lost", "late result", "withdraw",
)  # fmt: skip


@pytest.mark.parametrize("name", ABOUT_A_JOB)
def test_o4_what_is_said_of_another_job_changes_nothing(world: World, rows: dict[str, int], name: str) -> None:
    step, (move, allowed) = rows["step_executions"], STEPS[name]
    for status in allowed.split():
        with world.store.transaction() as tx:
            tx.execute(update(schema.step_executions).values(status=status, job_id="another", attempt=1, lost_at=NOON))
            assert move(tx, step) == [], status


def test_m3_reopening_needs_that_no_job_is_out(world: World, rows: dict[str, int]) -> None:
    step = rows["step_executions"]
    for status in StepStatus:
        with pytest.raises(ZeroDivisionError), world.store.transaction() as tx:
            tx.execute(update(schema.step_executions).values(status=status, lost_at=None))
            expected = [step] if status in {"failed", "poll_timeout", "cancelled"} else []
            assert reopen(tx, STEP, [step]) == expected, status
            _ = 1 / 0


def test_m3_only_an_active_manual_batch_is_advanced(world: World) -> None:
    batch = world.batch(manual=True)
    for status in BatchStatus:
        with pytest.raises(ZeroDivisionError), world.store.transaction() as tx:
            tx.execute(update(schema.batches).values(status=status))
            assert advance_to_phase(tx, batch.id, "prepare") == ([batch.id] if status == "active" else []), status
            _ = 1 / 0


def test_m3_a_manual_batch_is_given_no_start_time_and_follows_no_version_by_itself(world: World) -> None:
    batch = world.batch(manual=True)
    with world.store.transaction() as tx:
        assert reschedule_batches(tx, [Reschedule(batch.id, LATER)]) == []
        assert follow_version(tx, [batch.id], newer(tx)) == []
        assert batches_by_id(tx, [batch.id]) == [batch]


def test_o14_a_person_gives_a_batch_another_version_of_its_own_runbook_only(world: World) -> None:
    batch, stranger = world.batch(), world.runbook("other")
    with world.store.transaction() as tx:
        assert take_version(tx, batch.id, stranger.id) == []
        assert take_version(tx, batch.id, batch.runbook_id) == []
        assert take_version(tx, batch.id, newer(tx)) == [batch.id]


def test_t6_a_hold_is_approved_once_and_only_while_it_lasts(world: World) -> None:
    batch = world.batch()
    with world.store.transaction() as tx:
        hold_batches(tx, [Hold(batch.id, "why", "key-1", "{}")], NOON)
        hold_batches(tx, [Hold(batch.id, "why else", "key-2", "{}")], NOON)
        assert batches_by_id(tx, [batch.id])[0].hold_count == 1, "it is one hold, whatever it stands for"
        assert approve_hold(tx, batch.id, "key-2", "anna", NOON) == [batch.id]
        assert approve_hold(tx, batch.id, "key-2", "ben", NOON) == []
        release_batches(tx, [batch.id])
        assert approve_hold(tx, batch.id, "key-2", "ben", NOON) == []


def test_t5_what_is_said_of_an_epoch_that_is_over_changes_no_member(world: World) -> None:
    (member,) = world.members(world.batch(), 1, waiting=True)
    with world.store.transaction() as tx:
        for epoch in (0, 2):
            assert fail_members(tx, [MemberAt(member, epoch)], NOON) == []
            assert keep_outputs(tx, [Outputs(member, epoch, '{"Id": 1}')]) == []
            assert note_caught_up(tx, [MemberAt(member, epoch)], NOON) == []
        assert note_caught_up(tx, [MemberAt(member, 1)], NOON) == [member]


def test_o16_lost_jobs_that_are_due_at_the_same_moment_are_found_slice_by_slice(world: World) -> None:
    batch = world.batch()
    steps = world.steps(batch, world.phase(batch), world.members(batch, 4))
    with world.store.transaction() as tx:
        world.dispatched(tx, steps)
        tx.execute(update(schema.step_executions).where(schema.step_executions.c.id == steps[0]).values(lost_at=LATER))
        tx.execute(update(schema.step_executions).where(schema.step_executions.c.id != steps[0]).values(lost_at=NOON))
        found, last = [], None
        while some := lost_jobs(tx, STEP, LATER, after=last, limit=1):
            found.append(some[0].id)
            last = some[-1]
        assert found == [*steps[1:], steps[0]]
