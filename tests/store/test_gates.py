from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from matoolkit.domain.doors import Door, Work
from matoolkit.domain.gates import GateKind, Gates
from matoolkit.domain.moves.step import Dispatch, PollLater
from matoolkit.errors import RowConflict
from matoolkit.ids import Kind, Reason, job_id
from matoolkit.store import Store, Transaction
from matoolkit.store.executions import polls_due, steps_by_id
from matoolkit.store.gates import gates_in_force
from matoolkit.store.holds import Hold, hold_batches, release_batches
from matoolkit.store.moves import move_steps
from matoolkit.store.narrow_executions import step_states
from matoolkit.store.phases import due_phases
from matoolkit.store.schema import gates
from tests.databases import NOON
from tests.store.world import World

SECOND = timedelta(seconds=1)
SCOPES: list[dict[str, Any]] = [
    {},
    {"runbook_name": "wave"},
    {"runbook_name": "other"},
    {"worker_id": "worker-01"},
    {"runbook_name": "wave", "member_key_fold": "user0"},
]

OTHERS: list[dict[str, Any]] = [{"worker_id": "worker-09"}, {"runbook_name": "wave", "member_key_fold": "user9"}]


def poll(store: Store, step_id: int) -> None:
    """Let a step wait for a poll that is due."""
    job = job_id(Kind.STEP, step_id, Reason.ATTEMPT, 1)
    with store.transaction() as tx:
        move_steps(tx, Kind.STEP, [Dispatch(step_id, 1, job, "Move", "{}", NOON)], NOON)
        move_steps(tx, Kind.STEP, [PollLater(step_id, job, None, NOON)], NOON)


def shut(tx: Transaction, **other: Any) -> None:
    facts = {"kind": GateKind.PAUSE, "reach": Door.SEND, "shut_from": NOON, "shut_by": "anna", "reason": "why"}
    tx.execute(insert(gates).values({**facts, **other}))


@pytest.mark.parametrize(
    ("times", "is_shut"),
    [
        ({}, True),
        ({"shut_from": NOON + SECOND, "kind": GateKind.FREEZE}, False),
        ({"shut_from": NOON + SECOND}, True),
        ({"shut_until": NOON + SECOND}, True),
        ({"shut_until": NOON}, False),
        ({"opened_at": NOON - SECOND}, False),
    ],
    ids=["now", "written ahead", "clock put back", "until later", "no longer", "opened"],
)
def test_g3_a_gate_is_in_force_from_its_beginning_to_its_end_unless_it_is_opened(
    store: Store, world: World, times: dict[str, Any], is_shut: bool
) -> None:
    batch = world.batch()
    phase = world.phase(batch)
    with store.transaction() as tx:
        shut(tx, batch_id=batch.id, **times)
        assert [gate.batch_id for gate in gates_in_force(tx, NOON)] == ([batch.id] if is_shut else [])
        assert [due.id for due in due_phases(tx, NOON)] == ([] if is_shut else [phase.id])


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("reach", list(Door))
def test_g1_the_query_for_due_phases_and_the_rule_in_python_agree(
    store: Store, world: World, scope: dict[str, Any], reach: Door
) -> None:
    batch = world.batch()
    phase = world.phase(batch)
    with store.transaction() as tx:
        shut(tx, reach=reach, **scope)
        keeps = Gates(gates_in_force(tx, NOON)).at(Door.START, Work("wave", batch.id))
        assert [due.id for due in due_phases(tx, NOON)] == ([] if keeps else [phase.id])


@pytest.mark.parametrize("scope", [*SCOPES, *OTHERS], ids=str)
@pytest.mark.parametrize("reach", list(Door))
def test_g1_the_query_for_polls_and_the_rule_in_python_agree(
    store: Store, world: World, scope: dict[str, Any], reach: Door
) -> None:
    batch = world.batch()
    (step,) = world.steps(batch, world.phase(batch), world.members(batch, 1))
    poll(store, step)
    with store.transaction() as tx:
        shut(tx, reach=reach, **scope)
        job = Work("wave", batch.id, steps_by_id(tx, [step])[0].worker_id, "user0")
        keeps = Gates(gates_in_force(tx, NOON)).at(Door.SEND, job)
        assert [work.id for work in polls_due(tx, Kind.STEP, NOON)] == ([] if keeps else [step])


def test_g2_the_query_for_polls_leaves_out_what_has_reached_the_phase_of_a_gate(store: Store, world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 1)
    phases = [world.phase(batch, index) for index in range(3)]
    for phase in phases:
        poll(store, world.steps(batch, phase, members)[0])
    with store.transaction() as tx:
        shut(tx, batch_id=batch.id, phase_execution_id=phases[1].id)
        due = {work.id for work in polls_due(tx, Kind.STEP, NOON)}
        found = {step.phase_execution_id for step in step_states(tx, due)}
    assert found == {phases[0].id}


def test_g10_a_batch_has_one_hold_at_a_time_and_keeps_those_that_ended(store: Store, world: World) -> None:
    batch = world.batch()
    hold = Hold(batch.id, GateKind.REMOVALS, "too many would leave", "key-1", "{}")
    with store.transaction() as tx:
        assert hold_batches(tx, [hold], NOON) == [batch.id]
        assert release_batches(tx, [batch.id], NOON) == [batch.id]
        assert hold_batches(tx, [hold], NOON + SECOND) == [batch.id]
        (standing,) = gates_in_force(tx, NOON + SECOND)
        assert (standing.kind, standing.shut_from) == (GateKind.REMOVALS, NOON + SECOND)
    with pytest.raises(RowConflict), store.transaction() as tx:
        shut(tx, kind=GateKind.LATE, reach=Door.START, batch_id=batch.id, hold_key="key-2")
