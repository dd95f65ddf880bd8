"""Where there is nothing to look for or to write, nothing is asked of the database (rule M4)."""

from collections.abc import Callable
from functools import partial
from typing import Any

from matoolkit.ids import Kind
from matoolkit.store import (
    Store,
    Transaction,
    audit,
    batches,
    counts,
    datatables,
    deadletters,
    enrolments,
    executions,
    inclusions,
    inits,
    members,
    moves,
    narrow_executions,
    narrow_members,
    outbox,
    phases,
    queue,
    rollbacks,
    setaside,
    steps,
)
from matoolkit.store.datanames import DataTableName
from matoolkit.store.outbox import Claim
from tests.databases import NOON

PHASE = steps.PhasePlace(1, 1, 0)
STEP = executions.NewExecution(step_name="step", step_index=0, worker_id="worker-01", timeout_sec=60)
CALLS: list[Callable[[Transaction], Any]] = [
    partial(audit.record_changes, entries=[], at=NOON),
    partial(batches.insert_batches, new=[], at=NOON),
    partial(batches.lock_batches, ids=[]),
    partial(batches.batches_by_id, ids=[]),
    partial(batches.batches_at, runbook_name="wave", times=[]),
    partial(batches.cancel_batches, ids=[], at=NOON),
    partial(batches.reschedule_batches, reschedules=[]),
    partial(counts.member_counts, batch_ids=[]),
    partial(counts.active_counts, batch_ids=[]),
    partial(counts.phase_outcomes, phase_ids=[]),
    partial(datatables.current_rows_of, place=DataTableName("none", None), folds=[]),
    partial(deadletters.keep_dead_letters, letters=[], at=NOON),
    partial(enrolments.known_members, batch_ids=[]),
    partial(enrolments.places_of_keys, runbook_name="wave", keys=[]),
    partial(enrolments.places_before, runbook_name="wave", keys=[]),
    partial(enrolments.taken_keys, runbook_name="wave", folds=[]),
    partial(enrolments.first_phases_of_active, batch_ids=[]),
    partial(enrolments.latest_enrolments, runbook_name="wave", keys=[]),
    partial(enrolments.members_waiting_to_catch_up, batch_ids=[]),
    partial(executions.steps_by_id, ids=[]),
    partial(inclusions.note_let_in, runbook_name="wave", keys=[], at=NOON),
    partial(inits.insert_inits, new=[], at=NOON),
    partial(members.insert_members, new=[], at=NOON),
    partial(members.follow_new_starts, batch_ids=[]),
    partial(moves.move_steps, kind=Kind.STEP, moves=[]),
    partial(narrow_executions.batches_of_work, kind=Kind.STEP, ids=[]),
    partial(narrow_executions.next_steps_of_members, member_ids=[]),
    partial(narrow_executions.unfinished_rollbacks_of_members, member_ids=[]),
    partial(narrow_executions.unfinished_rollbacks_of_inits, batch_ids=[]),
    partial(narrow_executions.missing_outputs_of_members, member_ids=[]),
    partial(narrow_members.members_with_keys, batch_id=1, folds=[]),
    partial(outbox.add_messages, messages=[], at=NOON),
    partial(outbox.delete_sent, claim=Claim("token", NOON), ids=[]),
    partial(phases.insert_phases, new=[]),
    partial(queue.enqueue, messages=[], at=NOON, forget_before=NOON),
    partial(queue.remove_untouched, topic="worker-jobs", message_ids=[]),
    partial(rollbacks.insert_rollbacks, new=[], at=NOON),
    partial(rollbacks.open_rollbacks_of_batches, batch_ids=[]),
    partial(setaside.set_keys_aside, runbook_id=1, folds=[]),
    partial(setaside.forget_set_aside, runbook_id=1, folds=[]),
    partial(steps.insert_steps, new=[], at=NOON),
    partial(steps.insert_phase_steps, phase=PHASE, steps=[STEP], member_ids=[], at=NOON),
    partial(steps.current_steps_of_members, member_ids=[]),
    partial(steps.done_steps_of_members, member_ids=[]),
    partial(steps.members_yet_to_begin, phase_ids=[], without=1),
    partial(steps.cancel_steps_of_members, member_ids=[], at=NOON),
]


def test_m4_nothing_is_asked_of_the_database_for_nothing(store: Store, statements: Callable[[], list[str]]) -> None:
    with store.transaction() as tx:
        for call in CALLS:
            assert not call(tx), call
            assert statements() == [], call
