"""Every move of the tables from every state: it is made where it may, and changes nothing where it may not (rule M3).

The cases are the rows of `domain/moves`. A row of the database is put into each state with all guards of the move
holding; then each guard in turn is made not to hold.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any, get_args

import pytest
from sqlalchemy import Table, select, update

from matoolkit.domain.gates import GateKind
from matoolkit.domain.moves import Guard, Move
from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves import member as member_moves
from matoolkit.domain.moves import phase as phase_moves
from matoolkit.domain.moves import step as step_moves
from matoolkit.domain.states import EXCLUDED, BatchStatus, MemberStatus, OverdueBehavior, PhaseStatus, StepStatus
from matoolkit.ids import Kind
from matoolkit.store import Transaction, schema
from matoolkit.store.batches import (
    Reschedule,
    advance_to_phase,
    batches_by_id,
    follow_version,
    move_batches,
    reopen_inits,
    reschedule_batches,
    take_version,
)
from matoolkit.store.executions import lost_jobs
from matoolkit.store.holds import Hold, approve_hold, hold_batches, release_batches
from matoolkit.store.members import (
    MemberAt,
    Outputs,
    Refresh,
    Restart,
    Return,
    fail_members,
    keep_outputs,
    note_caught_up,
)
from matoolkit.store.moves import make_alike, make_each, move_steps
from matoolkit.store.phases import NewDueTime
from matoolkit.store.runbooks import NewVersion, publish_version
from matoolkit.store.undoing import UndoneMember
from tests.databases import NOON
from tests.store.world import World

pytestmark = pytest.mark.both_executions

EARLIER, LATER = NOON - timedelta(days=1), NOON + timedelta(days=1)
JOB = "step-1-attempt-1"
STEP = Kind.STEP


def newer(tx: Transaction) -> int:
    """Publish another version of the runbook, and return its id."""
    return publish_version(
        tx, NewVersion("wave", "name: wave\n#2\n", "hash2", OverdueBehavior.RERUN, False, "ben"), NOON
    ).id


@dataclass(frozen=True)
class Machine:
    """What has a table of moves, and a row of it for which every guard can hold."""

    table: Table
    statuses: type[StrEnum]
    moves: Collection[Move[Any]]
    holding: dict[str, Any]


MACHINES = {
    "batch": Machine(schema.batches, BatchStatus, batch_moves.MOVES, {}),
    "member": Machine(schema.batch_members, MemberStatus, member_moves.MOVES, {}),
    "phase": Machine(schema.phase_executions, PhaseStatus, phase_moves.MOVES, {}),
    # It has a job whose answer is overdue.
    "step": Machine(
        schema.step_executions, StepStatus, step_moves.MOVES, {"job_id": JOB, "attempt": 1, "lost_at": NOON}
    ),
}
MOVES = [(machine, move) for machine, one in MACHINES.items() for move in one.moves]

# What holds for a row only if a move asks for it, and what is true of a row for which a guard does not hold.
HOLDING: dict[Guard, dict[str, Any]] = {
    Guard.NOT_OUT: {"lost_at": None},
    Guard.GONE_FROM_SOURCE: {"left_source_at": EARLIER},
    Guard.NOT_CAUGHT_UP: {"caught_up_at": None},
    Guard.NOT_SEEN_OFF: {"seen_off_at": None},
    Guard.EXCLUDED: {"remove_reason": EXCLUDED},
    Guard.UNDONE: {"undone_at": EARLIER},
    Guard.MANUAL: {"is_manual": True},
}
FAILING: dict[Guard, dict[str, Any]] = {
    Guard.SAME_JOB: {"job_id": "another"},
    Guard.UNANSWERED: {"answered_at": EARLIER},
    Guard.NEXT_ATTEMPT: {"attempt": 2},
    Guard.OVERDUE: {"lost_at": LATER},
    Guard.NOT_OUT: {"lost_at": NOON},
    Guard.SAME_EPOCH: {"epoch": 2},
    Guard.IN_SOURCE: {"left_source_at": EARLIER},
    Guard.GONE_FROM_SOURCE: {"left_source_at": None},
    Guard.NOT_CAUGHT_UP: {"caught_up_at": EARLIER},
    Guard.NOT_SEEN_OFF: {"seen_off_at": EARLIER},
    Guard.EXCLUDED: {"remove_reason": "another reason"},
    Guard.UNDONE: {"undone_at": None},
    Guard.NOT_UNDONE: {"undone_at": EARLIER},
    Guard.AUTOMATED: {"is_manual": True},
    Guard.MANUAL: {"is_manual": False},
    Guard.NOT_REOPENED: {"reopened_at": EARLIER},
}
BROUGHT_BY_STEPS: dict[Move[Any], type[Any]] = {one.move: one for one in get_args(step_moves.StepMove)}
SAMPLES: dict[str, Any] = {
    "attempt": 2,
    "job_id": JOB,
    "function_name": "F",
    "params_json": "{}",
    "lost_at": LATER,
    "result_json": "{}",
    "missing_outputs_json": None,
    "poll_due_at": LATER,
    "error_type": "Oops",
    "error_message": "no",
    "error_fingerprint": "f" * 32,
    "retry_after": LATER,
    "retry_count": 1,
    "throttled_since": None,
}
BROUGHT: dict[Move[Any], Any] = {
    batch_moves.RESCHEDULE: lambda number: Reschedule(number, LATER),
    member_moves.RETURN: lambda number: Return(number, "{}", "h"),
    member_moves.RETURN_UNDONE: lambda number: Return(number, "{}", "h"),
    member_moves.UNDO: lambda number: UndoneMember(number, 1, 2, "anna", "why"),
    member_moves.UNDO_EXCLUDED: lambda number: UndoneMember(number, 1, 2, "anna", "why"),
    member_moves.FAIL: lambda number: MemberAt(number, 1),
    member_moves.RESTART: lambda number: Restart(number, 1, 2),
    member_moves.RESTART_UNDONE: Restart,
    member_moves.REFRESH: lambda number: Refresh(number, "{}", "h"),
    member_moves.CATCH_UP: lambda number: MemberAt(number, 1),
    member_moves.SEE_OFF: lambda number: MemberAt(number, 1),
    member_moves.KEEP_OUTPUTS: lambda number: Outputs(number, 1, '{"Id": 1}'),
    phase_moves.RESCHEDULE: lambda number: NewDueTime(number, LATER, None),
}


def make(tx: Transaction, table: Table, move: Move[Any], row: int) -> list[int]:
    """Make a move of a row, with whatever the move brings."""
    if move in BROUGHT_BY_STEPS:
        kind = BROUGHT_BY_STEPS[move]
        values = {field.name: SAMPLES[field.name] for field in fields(kind) if field.name != "id"}
        return move_steps(tx, STEP, [kind(id=row, **values)], NOON)
    if move in BROUGHT:
        return make_each(tx, table, move, [BROUGHT[move](row)], NOON)
    alike: dict[Move[Any], dict[str, Any]] = {
        batch_moves.ADVANCE: {"current_phase": "prepare"},
        member_moves.FOLLOW_START: {"source_time": LATER},
        member_moves.REMOVE: {"removed_by": "anna", "remove_reason": "why"},
    }
    if Guard.OTHER_VERSION in move.guards:
        return make_alike(tx, table, move, [row], NOON, {"runbook_id": newer(tx)})
    return make_alike(tx, table, move, [row], NOON, alike.get(move, {}))


@pytest.fixture
def rows(world: World) -> dict[str, int]:
    batch = world.batch()
    phase, (member,) = world.phase(batch), world.members(batch, 1)
    (step,) = world.steps(batch, phase, [member])
    return {"batch": batch.id, "member": member, "phase": phase.id, "step": step}


def holding(machine: Machine, move: Move[Any]) -> dict[str, Any]:
    """Say what a row has for which all guards of a move hold."""
    found = dict(machine.holding)
    for guard in move.guards:
        found |= HOLDING.get(guard, {})
    return found


def cases(machine: Machine, move: Move[Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Return rows, and whether the move can be made of them: in every state, and without each guard in turn."""
    fine = holding(machine, move)
    for status in machine.statuses:
        yield f"from {status}", {**fine, "status": status}, status in move.from_states
    for guard in move.guards:
        if guard in FAILING:
            for status in move.from_states:
                yield f"without {guard.name} from {status}", {**fine, **FAILING[guard], "status": status}, False


@pytest.mark.parametrize("name", list(MACHINES))
def test_m3_every_move_of_the_tables_from_every_state(world: World, rows: dict[str, int], name: str) -> None:
    machine, row = MACHINES[name], rows[name]
    mine = machine.table.c.id == row
    for move in machine.moves:
        for words, put, can_be_made in cases(machine, move):
            with pytest.raises(ZeroDivisionError), world.store.transaction() as tx:
                tx.execute(update(machine.table).where(mine).values(**put))
                before = tx.rows(lambda *cells: cells, select(*machine.table.c).where(mine))
                moved = make(tx, machine.table, move, row)
                after = tx.rows(lambda *cells: cells, select(*machine.table.c).where(mine))
                assert moved == ([row] if can_be_made else []), f"{move.name} {words}"
                assert (after == before) is (not moved), f"{move.name} {words}"
                if moved and move.to_state is not None:
                    assert tx.values(select(machine.table.c.status).where(mine)) == [move.to_state], move.name
                _ = 1 / 0


def test_m3_a_move_that_depends_on_the_time_is_not_made_without_it(world: World, rows: dict[str, int]) -> None:
    step = rows["step"]
    with world.store.transaction() as tx:
        for move in (
            step_moves.GiveUp(step),
            step_moves.PollLater(step, JOB, "{}", LATER),
            step_moves.Fail(step, JOB, None, "no"),
        ):
            with pytest.raises(ValueError, match="needs its time"):
                move_steps(tx, STEP, [move])
        # What a row keeps if it has it, it is given from the time of the move if not.
        with pytest.raises(ValueError, match="needs its time"):
            make_alike(tx, schema.phase_executions, phase_moves.REOPEN, [rows["phase"]])


def test_m3_every_guard_is_tried_on_a_row_for_which_it_does_not_hold() -> None:
    # Which version a batch follows takes another version; it has a test of its own.
    assert set(FAILING) == set(Guard) - {Guard.OTHER_VERSION}
    assert {guard for _, move in MOVES for guard in move.guards} == set(Guard)


def test_o16_the_failure_of_a_lost_job_is_not_counted_again_while_its_retry_waits(
    world: World, rows: dict[str, int]
) -> None:
    step = rows["step"]
    retry = step_moves.RetryLater(step, JOB, None, "no", LATER, 2)
    with world.store.transaction() as tx:
        tx.execute(update(schema.step_executions).values(status="pending", job_id=JOB, attempt=1, retry_after=LATER))
        assert move_steps(tx, STEP, [step_moves.Fail(step, JOB, None, "no")], NOON) == []
        assert move_steps(tx, STEP, [retry], NOON) == []
        assert move_steps(tx, STEP, [step_moves.Succeed(step, JOB, "{}")], NOON) == [step]


def test_o11_a_batch_that_has_not_begun_does_not_fail(world: World, rows: dict[str, int]) -> None:
    with world.store.transaction() as tx:
        tx.execute(update(schema.batches).values(status="detected"))
        assert move_batches(tx, batch_moves.FAIL, [rows["batch"]], NOON) == []


def test_o14_only_a_batch_that_failed_is_reopened_for_its_init(world: World, rows: dict[str, int]) -> None:
    with world.store.transaction() as tx:
        tx.execute(update(schema.batches).values(status="completed"))
        assert reopen_inits(tx, [rows["batch"]]) == []
        tx.execute(update(schema.batches).values(status="failed"))
        assert reopen_inits(tx, [rows["batch"]]) == [rows["batch"]]


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
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "why", "key-1", "{}")], NOON)
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "why else", "key-2", "{}")], NOON)
        assert batches_by_id(tx, [batch.id])[0].hold_count == 1, "it is one hold, whatever it stands for"
        assert approve_hold(tx, batch.id, "key-2", "anna", NOON) == [batch.id]
        assert approve_hold(tx, batch.id, "key-2", "ben", NOON) == []
        release_batches(tx, [batch.id], NOON)
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
