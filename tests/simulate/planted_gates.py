"""Bugs about gates, to be planted one at a time: the simulation must find each of them (rules G1 to G8)."""

from typing import Any

from sqlalchemy import update

from matoolkit.announcing import gatekeeping as announced_gates
from matoolkit.ids import Kind
from matoolkit.orchestrator import agenda as agenda_module
from matoolkit.orchestrator import dispatching
from matoolkit.orchestrator import waking as waking_module
from matoolkit.store import Transaction
from matoolkit.store.executions import TABLES
from matoolkit.store.gates import gates_in_force
from matoolkit.store.moves import move_steps
from matoolkit.store.narrow_members import active_members
from matoolkit.store.waking import members_to_wake

from .planted import Patch, Plant


def gates_are_read_before_the_lock(patch: Patch) -> None:
    """A pile decides by the gates that the pile before it has read."""
    known: list[list[Any]] = [[]]

    def of_the_pile_before(tx: Transaction, at: Any) -> Any:
        known.append(gates_in_force(tx, at))
        return known.pop(0)

    patch.setattr(agenda_module, "gates_in_force", of_the_pile_before)


def retries_polls_and_compensations_pass_the_send_door(patch: Patch) -> None:
    keeps = dispatching.Departing.keeps

    def not_again(self: Any, state: Any, definition: Any, reason: Any, key: Any) -> bool:
        is_first_of_a_step = reason == "attempt" and self._kind is Kind.STEP
        return is_first_of_a_step and keeps(self, state, definition, reason, key)

    patch.setattr(dispatching.Departing, "keeps", not_again)


def jobs_taken_back_leave_again_under_the_same_attempt(patch: Patch) -> None:
    def again(tx: Transaction, kind: Any, moves: Any, at: Any = None) -> Any:
        made = move_steps(tx, kind, moves, at)
        table = TABLES[kind]
        for move in moves:
            tx.execute(update(table).where(table.c.id == move.id).values(attempt=table.c.attempt - 1))
        return made

    patch.setattr(announced_gates, "move_steps", again)


def jobs_stay_where_workers_find_them(patch: Patch) -> None:
    """A pause shuts the gate, and leaves what has left already."""
    patch.setattr(announced_gates, "take_back", lambda *_: announced_gates.TakenBack())


def compensations_are_not_woken(patch: Patch) -> None:
    """Opening announces phases again, as the end of a hold does, and nobody who is compensated."""

    def only_active(tx: Transaction, batch_id: int, *, after: int, limit: int) -> Any:
        active = {member.id for member in active_members(tx, batch_id)}
        return [number for number in members_to_wake(tx, batch_id, after=after, limit=limit) if number in active]

    patch.setattr(waking_module, "members_to_wake", only_active)


def nothing_is_woken(patch: Patch) -> None:
    """A gate is opened, and nobody is told."""
    patch.setattr(announced_gates, "batches_behind", lambda *_: [])


GATES: tuple[Plant, ...] = (
    gates_are_read_before_the_lock,
    retries_polls_and_compensations_pass_the_send_door,
    jobs_taken_back_leave_again_under_the_same_attempt,
    jobs_stay_where_workers_find_them,
    compensations_are_not_woken,
    nothing_is_woken,
)
