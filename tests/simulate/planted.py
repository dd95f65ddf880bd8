"""Bugs, to be planted one at a time: the simulation must find each of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete

from matoolkit.admin import retrying, retryplan
from matoolkit.announcing import members as announced_members
from matoolkit.bus.consumer import Consumer
from matoolkit.bus.envelope import sealed
from matoolkit.bus.relay import Relay
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import WORKER_JOBS
from matoolkit.domain import progress as progress_rules
from matoolkit.domain import retrying as retry_rules
from matoolkit.domain import step as step_rules
from matoolkit.domain import transitions as version_rules
from matoolkit.domain import undoing as undo_rules
from matoolkit.domain.answers import event_of
from matoolkit.domain.gates import Gates
from matoolkit.domain.messages import PhaseDue
from matoolkit.domain.moves.step import RetryLater
from matoolkit.domain.snapshot import View
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.ids import Kind
from matoolkit.orchestrator import (
    checks,
    compensating,
    dispatching,
    endings,
    expanding,
    failures,
    init,
    joiners_and_leavers,
    moving,
    orchestrator,
    outputs,
    progress,
    results,
    sweeps,
)
from matoolkit.orchestrator.scopes import scope_of
from matoolkit.ports import Delivery, Outgoing
from matoolkit.runbook.templates import Scope
from matoolkit.scheduler import due_phases as due_phases_module
from matoolkit.scheduler import joining, snapshot
from matoolkit.scheduler import sweeps as scheduler_sweeps
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.simulate import persons
from matoolkit.store import Store, Transaction, queue
from matoolkit.store import members as stored_members
from matoolkit.store import phases as stored_phases
from matoolkit.store import steps as stored_steps
from matoolkit.store.batches import activate_batches, cancel_batches, lock_batches, unfinished_batches
from matoolkit.store.enrolments import places_of_keys
from matoolkit.store.narrow_executions import unfinished_rollbacks_of_members
from matoolkit.store.narrow_members import member_outputs, narrow_members
from matoolkit.store.phases import note_expanded, phases_by_id, phases_of_batches
from matoolkit.store.schema import bus_messages
from matoolkit.store.schema import outbox as outbox_rows

Patch = pytest.MonkeyPatch


def nothing(*_: object, **__: object) -> list[Any]:
    """Does nothing, and finds nothing."""
    return []


def _leavers_keep_their_open_steps(patch: Patch) -> None:
    """Removing a member cancels its open steps at once: while that holds, no later check matters."""
    patch.setattr(announced_members, "cancel_steps_of_members", nothing)


def members_are_not_looked_at_before_dispatch(patch: Patch) -> None:
    _leavers_keep_their_open_steps(patch)
    _patch_next(patch, member=MemberStatus.ACTIVE)


def holds_hold_nobody(patch: Patch) -> None:
    _patch_next(patch, gates=Gates())


def init_does_not_gate_phases(patch: Patch) -> None:
    def due_phases(tx: Transaction, at: Any, limit: int = 1000, runbook_name: str | None = None) -> Any:
        unheld = [batch.id for batch in unfinished_batches(tx, runbook_name or "wave") if not batch.is_held]
        pending = [phase for phase in phases_of_batches(tx, unheld) if phase.status == "pending" and phase.due_at]
        return [phase for phase in pending if phase.due_at <= at]

    patch.setattr(due_phases_module, "due_phases", due_phases)
    _patch_next(patch, batch=BatchStatus.ACTIVE)


def _patch_next(patch: Patch, **changes: Any) -> None:
    patch.setattr(progress, "next_of", lambda situation: progress_rules.next_of(replace(situation, **changes)))


def a_job_that_is_out_is_not_waited_for(patch: Patch) -> None:
    def next_of(situation: Any) -> Any:
        steps = [replace(step, lost_at=None) for step in situation.steps if step.status == "pending"]
        return progress_rules.next_of(replace(situation, steps=steps))

    patch.setattr(progress, "next_of", next_of)


def phases_are_not_gone_through_in_order(patch: Patch) -> None:
    patch.setattr(stored_phases, "phase_order", lambda version, offset, index: (version, offset, -index))


def checks_do_not_look_at_the_member(patch: Patch) -> None:
    _leavers_keep_their_open_steps(patch)
    patch.setattr(checks, "_of_members_gone", nothing)


def messages_leave_before_the_commit(patch: Patch) -> None:
    def publish(self: Any, tx: Transaction, messages: Sequence[Outgoing]) -> None:
        self._carrier.deliver(sealed(messages))

    patch.setattr(Relay, "publish", publish)


def messages_leave_after_the_commit(patch: Patch) -> None:
    def publish(self: Any, tx: Transaction, messages: Sequence[Outgoing]) -> None:
        tx.on_commit.append(lambda: self.send(messages))

    patch.setattr(SqlBus, "publish", publish)


def messages_are_done_with_before_they_are_handled(patch: Patch) -> None:
    def handle(self: Any, deliveries: Sequence[Delivery]) -> None:
        if self._bus.complete_now([one.received for one in deliveries]) < len(deliveries):
            return
        with self._store.transaction() as tx:
            self._handler(tx, deliveries)

    patch.setattr(Consumer, "_handle", handle)


def the_lease_is_not_confirmed(patch: Patch) -> None:
    patch.setattr(SchedulerLease, "confirm", nothing)


def expansion_is_not_idempotent(patch: Patch) -> None:
    def insert(tx: Transaction, phase: Any, works: Any, ids: Sequence[int], at: Any) -> Any:
        known = stored_steps.current_steps_of_members(tx, ids)
        if any(step.phase_execution_id == phase.id for step in known):
            raise ValueError("UNIQUE constraint failed")
        return stored_steps.insert_phase_steps(tx, phase, works, ids, at)

    patch.setattr(expanding, "insert_phase_steps", insert)


def only_the_first_slice_is_expanded(patch: Patch) -> None:
    original = expanding.expand_phases

    def expand(agenda: Any, dues: Any) -> None:
        before = list(agenda.messages)
        original(agenda, dues)
        left = [message for message in agenda.messages if message not in before]
        agenda.messages = before
        note_expanded(agenda.tx, [message.message.phase_execution_id for message in left], agenda.at)

    patch.setattr(orchestrator, "expand_phases", expand)


def results_are_matched_without_their_attempt(patch: Patch) -> None:
    def decided(agenda: Any, state: Any, ref: Any, result: Any, _outputs: Any) -> Any:
        event = event_of(result, ref.attempt, agenda.at, agenda.limits.throttle_limit)
        return step_rules.decide(state, event)

    original = results.apply_answers

    def apply(agenda: Any, kind: Kind, states: Mapping[int, Any], answers: Sequence[Any]) -> None:
        matched = [
            (replace(ref, attempt=states[ref.execution_id].attempt), result)
            for ref, result in answers
            if ref.execution_id in states
        ]
        return original(agenda, kind, states, matched)

    patch.setattr(results, "_decided", decided)
    patch.setattr(orchestrator, "apply_answers", apply)


def phases_end_with_open_steps(patch: Patch) -> None:
    def over(tx: Transaction, ids: Any = None, limit: int = 1000) -> Any:
        return [phase for phase in phases_by_id(tx, ids or []) if phase.status == "dispatched" and phase.expanded_at]

    patch.setattr(endings, "phases_without_open_steps", over)


def rollback_steps_are_sent_all_at_once(patch: Patch) -> None:
    """Defect O9."""

    def send(agenda: Any, kind: Kind, states: Sequence[Any], known: Any) -> None:
        if kind is Kind.ROLLBACK:
            own = {state.batch_member_id for state in states}
            states = [state for state in unfinished_rollbacks_of_members(agenda.tx, own) if state.status == "pending"]
        dispatching.send_first(agenda, kind, states, known)

    patch.setattr(progress, "send_first", send)


def cancelling_changes_only_the_status(patch: Patch) -> None:
    """Defect O12."""

    def cancel(store: Store, publisher: Any, batch_id: int, *, by: str, reason: str | None = None) -> None:
        with store.transaction() as tx:
            lock_batches(tx, [batch_id])
            cancel_batches(tx, [batch_id], tx.time())

    patch.setattr(persons, "cancel_batch", cancel)


def parameters_are_resolved_when_the_phase_is_due(patch: Patch) -> None:
    """Defect R8."""
    original = scope_of

    def scope(agenda: Any, state: Any, version: int, known: Any) -> tuple[Scope, str | None]:
        found, key = original(agenda, state, version, known)
        is_later = hasattr(state, "phase_execution_id") and state.step_index > 0
        specials, put_out, data = found.layers
        return Scope(specials, {} if is_later else put_out, data), key

    patch.setattr(dispatching, "scope_of", scope)


def who_lacks_a_variable_is_skipped(patch: Patch) -> None:
    """Defect R9."""
    patch.setattr(dispatching, "fail_unsent", nothing)


def movers_join_while_their_job_runs(patch: Patch) -> None:
    original = places_of_keys
    patch.setattr(joining, "places_of_keys", lambda *args: [replace(place, is_busy=False) for place in original(*args)])


def nobody_asks_for_retries_that_are_due(patch: Patch) -> None:
    original = moving._touch  # noqa: SLF001

    def touch(agenda: Any, kind: Kind, state: Any, move: Any) -> None:
        if not isinstance(move, RetryLater):
            original(agenda, kind, state, move)

    patch.setattr(moving, "_touch", touch)
    patch.setattr(scheduler_sweeps, "retries_due", nothing)


def nobody_asks_for_polls_that_are_due(patch: Patch) -> None:
    patch.setattr(scheduler_sweeps, "polls_due", nothing)


def lost_jobs_are_not_looked_for(patch: Patch) -> None:
    patch.setattr(sweeps, "lost_jobs", nothing)


def a_late_removal_is_not_ignored(patch: Patch) -> None:
    original = narrow_members

    def states(tx: Transaction, ids: Any) -> Any:
        return [replace(state, status=MemberStatus.REMOVED) for state in original(tx, ids)]

    removed = joiners_and_leavers.remove_members

    def remove(agenda: Any, member_ids: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(joiners_and_leavers, "narrow_members", states)
            removed(agenda, member_ids)

    patch.setattr(orchestrator, "remove_members", remove)


def leavers_are_not_waited_for(patch: Patch) -> None:
    """A member that left counts as seen off at once: its batch may end before its removal steps run."""

    def remove(tx: Transaction, ids: Any, by: str, reason: str, at: Any) -> list[int]:
        gone = stored_members.remove_members(tx, ids, by, reason, at)
        left = [stored_members.MemberAt(member.id, member.epoch) for member in narrow_members(tx, gone)]
        stored_members.note_seen_off(tx, left, at)
        return gone

    patch.setattr(announced_members, "remove_members", remove)


def failed_members_keep_their_open_steps(patch: Patch) -> None:
    patch.setattr(failures, "cancel_steps_of_members", nothing)


def outputs_are_not_kept(patch: Patch) -> None:
    patch.setattr(outputs, "keep_outputs", nothing)


def members_who_wait_for_init_are_not_woken(patch: Patch) -> None:
    patch.setattr(init, "activate_and_wake", lambda tx, _, ids: activate_batches(tx, ids))
    patch.setattr(sweeps, "members_to_catch_up", nothing)


def a_phase_is_due_and_nobody_is_told(patch: Patch) -> None:
    original = SqlBus.publish

    def publish(self: Any, tx: Transaction, messages: Sequence[Outgoing]) -> None:
        original(self, tx, [message for message in messages if not isinstance(message.message, PhaseDue)])

    patch.setattr(SqlBus, "publish", publish)


def init_steps_are_sent_all_at_once(patch: Patch) -> None:
    def next_or_end(agenda: Any, batch: Any, inits: Any) -> Any:
        waiting = [state for state in inits if state.status == "pending" and state.retry_after is None]
        return waiting or original(agenda, batch, inits)

    original = init._next_or_end  # noqa: SLF001
    patch.setattr(init, "_next_or_end", next_or_end)


def jobs_that_a_worker_has_are_taken_back(patch: Patch) -> None:
    def remove(tx: Transaction, topic: str, message_ids: Any) -> list[str]:
        named = (bus_messages.c.topic == topic, bus_messages.c.message_id.in_(message_ids))
        taken = delete(bus_messages).where(*named, bus_messages.c.delivery_count <= 1)
        return sorted(tx.values(taken.returning(bus_messages.c.message_id)))

    patch.setattr(queue, "remove_untouched", remove)


def jobs_that_may_have_been_sent_are_taken_back(patch: Patch) -> None:
    def withdraw(_: Any, tx: Transaction, job_ids: Any) -> list[str]:
        named = (outbox_rows.c.topic == WORKER_JOBS, outbox_rows.c.message_id.in_(job_ids))
        return sorted(tx.values(delete(outbox_rows).where(*named).returning(outbox_rows.c.message_id)))

    patch.setattr(Relay, "withdraw", withdraw)


def returners_cut_off_a_compensation_that_has_begun(patch: Patch) -> None:
    patch.setattr(joiners_and_leavers, "rollbacks_in_sequences", nothing)


def outputs_of_an_earlier_epoch_are_kept(patch: Patch) -> None:
    def store(agenda: Any, found: Sequence[Any]) -> None:
        now = {one.id: one.epoch for one in member_outputs(agenda.tx, {entry.state.batch_member_id for entry in found})}
        outputs.store_outputs(
            agenda,
            [replace(entry, state=replace(entry.state, epoch=now[entry.state.batch_member_id])) for entry in found],
        )

    patch.setattr(results, "store_outputs", store)


def a_retry_runs_the_version_that_failed(patch: Patch) -> None:
    def way_on(past: Any, phases: Mapping[int, Any], retried: Any) -> Any:
        met = max((phases[step.phase_execution_id].version for step in past.steps), default=retried.version)
        return retry_rules.way_on(past, phases, replace(retried, version=met))

    patch.setattr(retryplan, "way_on", way_on)


def ignore_skips_what_was_never_done(patch: Patch) -> None:
    original = version_rules._planned  # noqa: SLF001

    def planned(batch: Any, *rest: Any) -> Any:
        begun = [replace(phase, was_dispatched=True) for phase in batch.phases]
        return original(replace(batch, phases=begun), *rest)

    patch.setattr(version_rules, "_planned", planned)


def removals_are_counted_one_tick_at_a_time(patch: Patch) -> None:
    patch.setattr(View, "removed_lately", lambda *_: 0)


def a_retry_keeps_the_row_that_failed(patch: Patch) -> None:
    patch.setattr(retrying, "refresh_members", nothing)


def nobody_remembers_who_was_taken_before(patch: Patch) -> None:
    """The snapshot lacks the places in which people are done or have failed (rule T5)."""
    patch.setattr(snapshot, "places_before", nothing)


def the_source_brings_back_who_was_undone(patch: Patch) -> None:
    """Rule U2."""
    patch.setattr(View, "is_undone", lambda *_: False)


def who_is_excluded_joins(patch: Patch) -> None:
    """Rule U3."""
    for module in (snapshot, joining):
        patch.setattr(module, "excluded_keys", lambda *_: set())


def nothing_is_undone_in_a_cancelled_batch(patch: Patch) -> None:
    """Rule U2: an undo is treated as any removal is."""
    original = undo_rules.version_that_undoes

    def version(removal: Any, status: BatchStatus, followed: int) -> int | None:
        return None if status is BatchStatus.CANCELLED else original(removal, status, followed)

    patch.setattr(compensating, "version_that_undoes", version)


def an_undo_takes_the_version_that_the_batch_follows_later(patch: Patch) -> None:
    """Rule U2: what was shown must run."""
    original = undo_rules.version_that_undoes

    def version(removal: Any, status: BatchStatus, followed: int) -> int | None:
        found = original(removal, status, followed)
        return followed if removal.is_undone and found is not None else found

    patch.setattr(compensating, "version_that_undoes", version)


Plant = Callable[[Patch], None]


PLANTED: tuple[Plant, ...] = (
    holds_hold_nobody,
    init_does_not_gate_phases,
    a_job_that_is_out_is_not_waited_for,
    phases_are_not_gone_through_in_order,
    messages_leave_before_the_commit,
    messages_leave_after_the_commit,
    expansion_is_not_idempotent,
    only_the_first_slice_is_expanded,
    phases_end_with_open_steps,
    rollback_steps_are_sent_all_at_once,
    cancelling_changes_only_the_status,
    parameters_are_resolved_when_the_phase_is_due,
    who_lacks_a_variable_is_skipped,
    movers_join_while_their_job_runs,
    nobody_asks_for_retries_that_are_due,
    nobody_asks_for_polls_that_are_due,
    lost_jobs_are_not_looked_for,
    failed_members_keep_their_open_steps,
    outputs_are_not_kept,
    members_who_wait_for_init_are_not_woken,
    a_phase_is_due_and_nobody_is_told,
    init_steps_are_sent_all_at_once,
    checks_do_not_look_at_the_member,
    members_are_not_looked_at_before_dispatch,
    messages_are_done_with_before_they_are_handled,
    the_lease_is_not_confirmed,
    results_are_matched_without_their_attempt,
    a_late_removal_is_not_ignored,
    leavers_are_not_waited_for,
    jobs_that_a_worker_has_are_taken_back,
    jobs_that_may_have_been_sent_are_taken_back,
    returners_cut_off_a_compensation_that_has_begun,
    a_retry_runs_the_version_that_failed,
    ignore_skips_what_was_never_done,
    removals_are_counted_one_tick_at_a_time,
    a_retry_keeps_the_row_that_failed,
    nobody_remembers_who_was_taken_before,
    the_source_brings_back_who_was_undone,
    who_is_excluded_joins,
    nothing_is_undone_in_a_cancelled_batch,
    an_undo_takes_the_version_that_the_batch_follows_later,
)
