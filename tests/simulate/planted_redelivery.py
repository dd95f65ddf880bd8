"""Handlers without what makes them safe when a message comes again: the simulation with the bus apart finds each.

A handler mostly has two guards: it looks at the state, and its statement names what the row must still be. Both are
dropped where one of them alone is enough.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from sqlalchemy import Table, insert

from matoolkit.bus.relay import Relay
from matoolkit.domain import step as step_rules
from matoolkit.domain.moves import Guard, Move
from matoolkit.domain.moves import member as member_moves
from matoolkit.domain.moves import step as step_moves
from matoolkit.domain.states import PhaseStatus, StepStatus
from matoolkit.orchestrator import catalogue, checks, compensating, expanding, init, joiners_and_leavers, results
from matoolkit.store import Transaction, outbox
from matoolkit.store import inits as stored_inits
from matoolkit.store import moves as stored_moves
from matoolkit.store import rollbacks as stored_rollbacks
from matoolkit.store import steps as stored_steps
from matoolkit.store.catalogue import AnnouncedFunction
from matoolkit.store.schema import worker_functions
from tests.simulate.planted import nothing, outputs_of_an_earlier_epoch_are_kept

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def _without_guards(patch: Patch, moves: Collection[Move[Any]]) -> None:
    """Let statements make these moves whatever the row is."""
    original = stored_moves._form  # noqa: SLF001

    @cache
    def form(table: Table, move: Move[Any]) -> Any:
        made = original(table, move)
        if move not in moves:
            return made
        return replace(made, guards=(), compared=dict.fromkeys(made.compared, ()))

    patch.setattr(stored_moves, "_form", form)


def answers_count_as_often_as_they_come(patch: Patch) -> None:
    """An answer to the latest attempt is applied, whatever the step has become since."""

    def decide(state: Any, event: Any) -> Any:
        waiting = replace(state, status=StepStatus.DISPATCHED, answered_at=None)
        return step_rules.decide(waiting if event.attempt == state.attempt else state, event)

    patch.setattr(results, "decide", decide)
    _without_guards(patch, [move for move in step_moves.MOVES if Guard.UNANSWERED in move.guards])


def checks_send_as_often_as_they_come(patch: Patch) -> None:
    patch.setattr(checks, "why_not_sent_again", lambda *_: None)
    _without_guards(patch, [step_moves.DISPATCH])


def an_init_is_created_by_every_request(patch: Patch) -> None:
    def insert_inits(tx: Transaction, new: Sequence[stored_inits.NewInit], at: Any) -> Any:
        known = {
            (one.batch_id, one.runbook_version, one.step_index)
            for one in stored_inits.inits_of_batches(tx, {one.batch_id for one in new})
        }
        if known & {(one.batch_id, one.runbook_version, one.step_index) for one in new}:
            raise ValueError("UNIQUE constraint failed")
        return original(tx, new, at)

    original = stored_inits.insert_inits
    patch.setattr(init, "insert_inits", insert_inits)


def leavers_are_seen_off_as_often_as_it_is_said(patch: Patch) -> None:
    """Removal steps are created by every message, and not known by their sequence."""

    def why_not(agenda: Any, member: Any) -> str | None:
        return original(agenda, replace(member, seen_off_at=None))

    def again(tx: Transaction, new: Sequence[stored_rollbacks.NewRollback], at: Any) -> Any:
        known = stored_rollbacks.rollbacks_in_sequences(tx, {one.sequence_key for one in new})
        times = {one.sequence_key for one in known}
        return inserted(tx, [_renamed(one, times) for one in new], at)

    original, inserted = joiners_and_leavers._why_not_removed, stored_rollbacks.insert_rollbacks  # noqa: SLF001
    patch.setattr(compensating, "insert_rollbacks", again)
    patch.setattr(joiners_and_leavers, "_why_not_removed", why_not)
    _without_guards(patch, [member_moves.SEE_OFF])


def _renamed(new: stored_rollbacks.NewRollback, known: Collection[str]) -> stored_rollbacks.NewRollback:
    return replace(new, sequence_key=f"{new.sequence_key}-again") if new.sequence_key in known else new


def joiners_are_caught_up_as_often_as_it_is_said(patch: Patch) -> None:
    """A member that has caught up is given its steps once more, under no key that would know them."""

    def why_not(agenda: Any, member: Any) -> str | None:
        return original(agenda, replace(member, caught_up_at=None))

    def insert_steps(tx: Transaction, new: Sequence[stored_steps.NewStep], at: Any) -> Any:
        known = stored_steps.current_steps_of_members(tx, [one.batch_member_id for one in new])
        places = {(one.batch_member_id, one.phase_execution_id) for one in known}
        if places & {(one.batch_member_id, one.phase_execution_id) for one in new}:
            raise ValueError("UNIQUE constraint failed")
        return inserted(tx, new, at)

    inserted = stored_steps.insert_steps
    patch.setattr(joiners_and_leavers, "insert_steps", insert_steps)
    original = joiners_and_leavers._why_not_added  # noqa: SLF001
    patch.setattr(joiners_and_leavers, "_why_not_added", why_not)
    _without_guards(patch, [member_moves.CATCH_UP])


def phases_begin_as_often_as_it_is_said(patch: Patch) -> None:
    """A phase that is over gives its members steps again."""

    def is_wanted(agenda: Any, due: Any) -> bool:
        number = due.message.phase_execution_id
        if number not in agenda.phases:
            return False
        agenda.phases[number] = replace(agenda.phases[number], status=PhaseStatus.DISPATCHED, expanded_at=None)
        return True

    patch.setattr(expanding, "_is_wanted", is_wanted)


def old_announcements_replace_newer_ones(patch: Patch) -> None:
    def announce(tx: Transaction, worker_id: str, functions: Sequence[AnnouncedFunction], at: Any) -> bool:
        tx.execute(worker_functions.delete().where(worker_functions.c.worker_id == worker_id))
        rows = [
            {"worker_id": worker_id, "announced_at": at, "function_name": one.function_name, "parameters_json": "[]"}
            for one in functions
        ]
        for row in rows:
            tx.execute(insert(worker_functions).values(**row))
        return True

    patch.setattr(catalogue, "announce_functions", announce)


def messages_leave_the_outbox_before_they_are_sent(patch: Patch) -> None:
    original = Relay._send  # noqa: SLF001

    def send(self: Any, batch: Any) -> None:
        with self._store.transaction() as tx:
            outbox.delete_sent(tx, batch.claim, [row.id for row in batch.rows])
        original(self, batch)

    patch.setattr(Relay, "_send", send)


def nobody_sends_what_a_dead_process_left(patch: Patch) -> None:
    patch.setattr(Relay, "sweep", nothing)


REDELIVERY: tuple[Plant, ...] = (
    answers_count_as_often_as_they_come,
    checks_send_as_often_as_they_come,
    an_init_is_created_by_every_request,
    leavers_are_seen_off_as_often_as_it_is_said,
    joiners_are_caught_up_as_often_as_it_is_said,
    phases_begin_as_often_as_it_is_said,
    old_announcements_replace_newer_ones,
    messages_leave_the_outbox_before_they_are_sent,
    nobody_sends_what_a_dead_process_left,
    outputs_of_an_earlier_epoch_are_kept,
)
