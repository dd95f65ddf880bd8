"""Every query that runs in a loop finds its rows by an index.

SQL Server has no EXPLAIN, so its plans are not looked at.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from matoolkit.clock import VirtualClock
from matoolkit.domain.doors import Door
from matoolkit.domain.gates import GateKind
from matoolkit.domain.moves import phase as phase_moves
from matoolkit.domain.moves.step import Dispatch, Succeed
from matoolkit.domain.states import BatchStatus, MemberState, MemberStatus, PhaseStatus, StepStatus
from matoolkit.ids import Kind
from matoolkit.ports import Subscription
from matoolkit.store import Store, Transaction
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
from matoolkit.store.batches import NewBatch, batches_at, insert_batches, unfinished_batches
from matoolkit.store.cohorts import (
    budget_gates_of,
    data_of_active_members,
    failures_in,
    first_active_members,
    phases_after_pilots,
    pilot_tallies,
)
from matoolkit.store.counting import changes_of
from matoolkit.store.counts import MemberCount, member_counts, step_counts
from matoolkit.store.deadletters import dead_letter_counts, open_dead_letters
from matoolkit.store.enrolments import (
    count_members,
    known_members,
    latest_enrolments,
    members_page,
    members_waiting_to_catch_up,
)
from matoolkit.store.exclusions import excluded_keys
from matoolkit.store.executions import lost_jobs, polls_due, retries_due
from matoolkit.store.failures import failures_by_error
from matoolkit.store.gatekeeping import GateRow, NewGate, batches_behind, gates_by_id, shut_gate
from matoolkit.store.idempotency import forget_requests, have_requests_run_out
from matoolkit.store.inits import batches_before_init, begun_inits, latest_init_versions
from matoolkit.store.jobsout import jobs_out
from matoolkit.store.joins import active_members
from matoolkit.store.lateness import count_anew, late_gates_opened_by_people
from matoolkit.store.matrix import members_of_matrix, packed_steps_of_phase
from matoolkit.store.members import NewMember, insert_members, remove_members
from matoolkit.store.memberstates import last_completed_phases, states_of_members
from matoolkit.store.moves import cancel, move_steps
from matoolkit.store.narrow_executions import next_steps_of_members, unfinished_rollbacks_of_members
from matoolkit.store.narrow_members import caught_up_members, members_to_catch_up, members_to_see_off
from matoolkit.store.outbox import Claim, NewMessage, add_messages, claim_messages
from matoolkit.store.people import enrolments_of_key
from matoolkit.store.phases import (
    NewPhase,
    batches_without_open_phases,
    due_phases,
    insert_phases,
    move_phases,
    phases_of_batches,
    phases_without_open_steps,
)
from matoolkit.store.places import candidates, first_steps_of, give_back_places, places_taken
from matoolkit.store.pulse import count_jobs_out, endings_by_minute, last_answers, last_endings, oldest_jobs_out
from matoolkit.store.queue import NewQueued, bury_expired, bury_undeliverable, enqueue, forget_ids, lock_due
from matoolkit.store.reporting import ReportFilter, failed_people, phase_tallies, report_page, tried_steps
from matoolkit.store.rollbacks import open_rollbacks_of_batches, rollbacks_of_members
from matoolkit.store.signoffs import signatures_of_batches
from matoolkit.store.statecounts import state_counts
from matoolkit.store.steps import (
    cancel_steps_of_members,
    current_steps_of_members,
    insert_steps,
    steps_in_state_page,
    steps_page,
)
from matoolkit.store.undofailures import (
    count_undo_failures,
    undo_causes,
    undo_failures_by_cause,
    undo_failures_of_members,
    undo_failures_page,
    undo_steps_like,
)
from matoolkit.store.undoing import known_places, undoable_members
from matoolkit.store.waking import jobs_out_of, members_to_wake
from matoolkit.store.windows import running_phases
from tests.databases import NOON
from tests.store.world import World

pytestmark = pytest.mark.on("sqlite", "postgresql")

LATER = NOON + timedelta(days=1)

# SQLite names the index of a unique constraint by itself.
SQLITE_NAMES = {
    "sqlite_autoindex_step_executions_1": "uq_step_executions_member_step",
    "sqlite_autoindex_batch_members_1": "uq_batch_members_batch_id_member_key_fold",
    "sqlite_autoindex_phase_executions_1": "uq_phase_executions_batch_id_runbook_version_phase_index",
    "sqlite_autoindex_step_counts_1": "pk_step_counts",
    "sqlite_autoindex_init_executions_1": "uq_init_executions_step",
    "sqlite_autoindex_member_counts_1": "pk_member_counts",
}


def a_gate_of(tx: Transaction, key: str) -> GateRow:
    """Shut a gate of a person."""
    pause = NewGate(
        *(GateKind.PAUSE, Door.SEND, None, "wave", None, None, key, key),
        shut_from=NOON,
        shut_until=None,
        shut_by="ann",
        reason="legal hold",
    )
    return gates_by_id(tx, [shut_gate(tx, pause)])[0]


def _counts_at_work(tx: Transaction, batch_id: int) -> None:
    """Count by state while phases overlap, and somebody joins, leaves and is being undone."""
    phases = [phase.id for phase in phases_of_batches(tx, [batch_id])[:2]]
    members = [member.id for member in members_page(tx, batch_id)]
    move_phases(tx, phase_moves.REOPEN, phases, NOON)
    remove_members(tx, members[:1], "anna", "gone", NOON)
    move_steps(tx, Kind.STEP, [Dispatch(1, 1, "job", "Create", "{}", LATER)], NOON)
    state_counts(tx, member_counts(tx, [batch_id]))


# What is called, and the index that each of its tables must be found by.
LOOPS: dict[str, tuple[Callable[[Transaction], Any], set[str]]] = {
    "due phases": (lambda tx: due_phases(tx, LATER), {"ix_phase_executions_"}),
    "phases under way, for their windows": (running_phases, {"_phase_executions_"}),
    "limits of phases that a person lets begin": (
        lambda tx: count_anew(tx, [7, 8], LATER, LATER),
        {"_phase_executions_"},
    ),
    "phases whose pilots have ended them": (phases_after_pilots, {"_phase_executions_"}),
    "how far pilots are": (
        lambda tx: pilot_tallies(tx, [7, 8]),
        {"ix_batch_members_pilots", "step_executions_"},
    ),
    "who failed in phases": (lambda tx: failures_in(tx, [7, 8]), {"ix_step_executions_phase_status"}),
    "who becomes a pilot": (lambda tx: first_active_members(tx, 7, limit=3), {"ix_batch_members_"}),
    "rows that may name pilots": (lambda tx: data_of_active_members(tx, 7, limit=3), {"ix_batch_members_"}),
    "places that are taken": (lambda tx: places_taken(tx, [7, 8]), {"ix_step_executions_places"}),
    "places that are given back": (
        lambda tx: give_back_places(tx, [7, 8]),
        {"ix_step_executions_places", "uq_step_executions_member_step"},
    ),
    "who has a place": (lambda tx: first_steps_of(tx, [7, 8], [7, 8]), {"uq_step_executions_member_step"}),
    "who is woken": (
        lambda tx: members_to_wake(tx, 7, after=0, limit=50),
        {"batch_members_", "uq_step_executions_member_step", "ix_rollback_executions_member"},
    ),
    "jobs that a gate takes back": (
        lambda tx: [jobs_out_of(tx, kind, 7) for kind in Kind],
        {"ix_step_executions_", "_init_executions_", "ix_rollback_executions_"},
    ),
    "batches behind a gate of a person": (
        lambda tx: batches_behind(tx, a_gate_of(tx, "u7")),
        {"batch_members_"},
    ),
    "what was signed": (lambda tx: signatures_of_batches(tx, [7, 8]), {"ix_approvals_batch_id"}),
    "who is shown for sign-off": (lambda tx: active_members(tx, 7), {"ix_batch_members_"}),
    "inits that have begun": (lambda tx: begun_inits(tx, [7, 8]), {"uq_init_executions_"}),
    "versions of inits": (lambda tx: latest_init_versions(tx, [7, 8]), {"uq_init_executions_"}),
    "batches whose init has not ended": (batches_before_init, {"ix_batches_"}),
    "late phases that people let begin": (
        lambda tx: late_gates_opened_by_people(tx, [7, 8]),
        {"ix_gates_"},
    ),
    "gates of spent budgets": (lambda tx: budget_gates_of(tx, [7, 8]), {"ix_gates_"}),
    "running phases": (phases_without_open_steps, {"ix_phase_executions_running"}),
    "phases of batches": (lambda tx: phases_of_batches(tx, [7]), {"uq_phase_executions_batch_id_runbook"}),
    "polls": (
        lambda tx: [polls_due(tx, kind, LATER) for kind in Kind],
        {"ix_step_executions_poll", "ix_init_executions_poll", "ix_rollback_executions_poll"},
    ),
    "retries": (
        lambda tx: [retries_due(tx, kind, LATER) for kind in Kind],
        {"ix_step_executions_retry", "ix_init_executions_retry", "ix_rollback_executions_retry"},
    ),
    "lost jobs": (
        lambda tx: [lost_jobs(tx, kind, LATER) for kind in Kind],
        {"ix_step_executions_lost", "ix_init_executions_lost", "ix_rollback_executions_lost"},
    ),
    "a member's next step": (
        lambda tx: current_steps_of_members(tx, [7, 8]),
        {"uq_step_executions_member_step"},
    ),
    "what members have open": (
        lambda tx: next_steps_of_members(tx, [7, 8]),
        {"uq_step_executions_member_step"},
    ),
    "what undoes members' work": (
        lambda tx: unfinished_rollbacks_of_members(tx, [7, 8]),
        {"ix_rollback_executions_member"},
    ),
    "a slice of members": (lambda tx: caught_up_members(tx, 7, after=0, limit=10), {"ix_batch_members_status"}),
    "whether phases are over": (
        lambda tx: phases_without_open_steps(tx, [7, 8]),
        {"ix_step_executions_phase_status"},
    ),
    "who waits to catch up": (members_to_catch_up, {"ix_batch_members_waiting"}),
    "who left and was not seen off": (lambda tx: members_to_see_off(tx, LATER), {"ix_batch_members_leaving"}),
    "open dead letters": (open_dead_letters, {"ix_dead_letters_status"}),
    "cancelling": (lambda tx: cancel_steps_of_members(tx, [7], NOON), {"uq_step_executions_member_step"}),
    "steps of a phase": (lambda tx: step_counts(tx, [7]), {"pk_step_counts"}),
    "cells of a phase": (lambda tx: packed_steps_of_phase(tx, 7, 1), {"ix_step_executions_phase_status"}),
    "members of a matrix": (lambda tx: members_of_matrix(tx, 7), {"ix_batch_members_batch_id"}),
    "page of steps": (lambda tx: steps_page(tx, 7), {"ix_step_executions_batch_id"}),
    "page of failed steps": (
        lambda tx: steps_in_state_page(tx, [7, 8], StepStatus.FAILED),
        {"ix_step_executions_phase_status"},
    ),
    "failures": (lambda tx: failures_by_error(tx, 7), {"ix_step_executions_phase_status"}),
    "unfinished batches": (lambda tx: unfinished_batches(tx, "wave"), {"ix_batches_"}),
    "batches at times": (lambda tx: batches_at(tx, "wave", [LATER]), {"uq_batches_start_time"}),
    "known members": (lambda tx: known_members(tx, [7]), {"batch_members_"}),
    "page of members": (lambda tx: members_page(tx, 7), {"ix_batch_members_batch_id"}),
    "page of failed members": (
        lambda tx: members_page(tx, 7, status=MemberStatus.FAILED),
        {"ix_batch_members_status"},
    ),
    "who can be undone": (
        lambda tx: undoable_members(tx, 7),
        {"batch_members_", "uq_step_executions_member_step", "ix_rollback_executions_member"},
    ),
    "who was where": (
        lambda tx: known_places(tx, "wave", ["u7"]),
        {"ix_batch_members_member_key_fold", "uq_step_executions_member_step"},
    ),
    "who is excluded": (lambda tx: excluded_keys(tx, "wave"), {"member_exclusions_"}),
    "member counts": (lambda tx: member_counts(tx, [7]), {"pk_member_counts"}),
    "states of members": (
        lambda tx: states_of_members(tx, [7, 8]),
        {"uq_step_executions_member_step", "ix_rollback_executions_member"},
    ),
    "page of members that are done": (
        lambda tx: members_page(tx, 7, state=MemberState.DONE),
        {"ix_batch_members_status", "uq_step_executions_member_step"},
    ),
    "members of a runbook, with states": (
        lambda tx: report_page(tx, ReportFilter(runbook_name="wave")),
        {"batch_members_", "uq_step_executions_member_step"},
    ),
    "report of a batch": (
        lambda tx: report_page(tx, ReportFilter(batch_id=7, error_part="x"), after=9),
        {"ix_batch_members_batch_id", "uq_step_executions_member_step"},
    ),
    "steps that were tried": (lambda tx: tried_steps(tx, [7, 8]), set()),
    "who is through with phases": (lambda tx: phase_tallies(tx, [7, 8]), {"ix_step_executions_phase_status"}),
    "who failed, by error": (
        lambda tx: failed_people(tx, [7]),
        {"ix_batch_members_status", "uq_step_executions_member_step"},
    ),
    "what members have completed": (
        lambda tx: last_completed_phases(tx, [7, 8]),
        {"uq_step_executions_member_step"},
    ),
    "counts by state": (
        lambda tx: state_counts(tx, [MemberCount(7, MemberStatus.ACTIVE, 20)]),
        {"pk_member_counts", "_phase_executions_"},
    ),
    "counts by state of a batch at work": (
        lambda tx: _counts_at_work(tx, 7),
        {"pk_step_counts", "ix_batch_members_waiting", "ix_batch_members_leaving", "ix_rollback_executions_"},
    ),
    "what changed": (lambda tx: changes_of(tx, [7]), {"batch_changes"}),
    "failed undo steps": (undo_failures_page, {"ix_rollback_executions_failed"}),
    "what could not be undone for members": (
        lambda tx: undo_failures_of_members(tx, [1, 2]),
        {"ix_rollback_executions_member"},
    ),
    "what could not be undone, by cause": (
        lambda tx: undo_failures_by_cause(tx, [7]),
        # Which of its indexes over the status is the best depends on how many rows there are.
        {"ix_rollback_executions_"},
    ),
    "causes of failed undo steps": (undo_causes, {"ix_rollback_executions_"}),
    "undo steps that failed alike": (lambda tx: undo_steps_like(tx, 7), {"ix_rollback_executions_"}),
    "jobs that are out": (jobs_out, {f"ix_{kind}_executions_lost" for kind in ("step", "rollback")}),
    "jobs that will be given up first": (oldest_jobs_out, {"ix_step_executions_lost"}),
    "how many jobs are out": (count_jobs_out, {"ix_step_executions_lost"}),
    "who answered polls last": (last_answers, {"ix_step_executions_poll"}),
    "what ended in the last hour": (
        lambda tx: endings_by_minute(tx, ["worker-01"], [LATER]),
        {"ix_step_executions_ended"},
    ),
    "when a step of workers last ended": (
        lambda tx: last_endings(tx, ["worker-01"]),
        {"ix_step_executions_ended"},
    ),
    "failed undo steps of a batch": (
        lambda tx: count_undo_failures(tx, batch_id=7),
        {"ix_rollback_executions_"},
    ),
    "waiting members": (lambda tx: members_waiting_to_catch_up(tx, [7]), {"ix_batch_members_waiting"}),
    "a key in all batches": (lambda tx: enrolments_of_key(tx, "u7"), {"ix_batch_members_member_key_fold"}),
    "latest places of keys": (
        lambda tx: latest_enrolments(tx, "wave", ["u7"]),
        {"ix_batch_members_member_key_fold"},
    ),
    "rollbacks of members": (lambda tx: rollbacks_of_members(tx, [7]), {"ix_rollback_executions_member"}),
    "open rollbacks": (
        lambda tx: open_rollbacks_of_batches(tx, [7]),
        {"ix_rollback_executions_batch_status"},
    ),
    "outbox": (lambda tx: claim_messages(tx, Claim("me", LATER), NOON), {"ix_outbox_unclaimed"}),
    "queue": (
        lambda tx: lock_due(tx, Subscription("t", "s0"), "me", LATER, until=LATER, most=100),
        {"ix_bus_messages_visible"},
    ),
    "undeliverable": (lambda tx: bury_undeliverable(tx, LATER, 100), {"ix_bus_messages_"}),
    "batches to end": (batches_without_open_phases, {"ix_phase_executions_open"}),
    "audit of a batch": (lambda tx: audit_page(tx, batch_id=7), {"ix_audit_log_batch_id"}),
    "whether keys expired": (lambda tx: have_requests_run_out(tx, NOON), {"ix_idempotency_keys_expires_at"}),
    "members by a part of their key": (lambda tx: count_members(tx, 7, key_part="u1"), {"batch_members_"}),
    "failed members by a part of their key": (
        lambda tx: members_page(tx, 7, status=MemberStatus.FAILED, key_part="u1"),
        {"ix_batch_members_status"},
    ),
    "dead letters by status": (dead_letter_counts, {"ix_dead_letters_status"}),
    "expired keys": (lambda tx: forget_requests(tx, NOON), {"ix_idempotency_keys_expires_at"}),
}


@pytest.fixture
def busy(store: Store, world: World, clock: VirtualClock) -> Store:
    """A store with enough in it that a plan matters."""
    runbook = world.runbook()
    new = [
        NewBatch(
            runbook.id,
            "wave",
            NOON + timedelta(hours=n),
            BatchStatus.ACTIVE if n < 5 else BatchStatus.COMPLETED,
        )
        for n in range(200)
    ]
    with store.transaction() as tx:
        batches = insert_batches(tx, new, NOON)
        members = insert_members(
            tx,
            [NewMember(b.id, f"u{n}-{b.id}", "{}", "", caught_up_at=NOON) for b in batches for n in range(20)],
            NOON,
        )
        done, far = PhaseStatus.COMPLETED, NOON + timedelta(days=30)
        finished = [NewPhase(b.id, 1, f"p{n}", n, 0, NOON, done, NOON) for b in batches for n in range(8)]
        ahead = [NewPhase(b.id, 1, f"p{n}", n, 0, far) for b in batches for n in range(8, 10)]
        phases = insert_phases(tx, finished + ahead)
        first_phase = {phase.batch_id: phase for phase in reversed(phases)}
        insert_steps(
            tx,
            [world.new_step(m.batch_id, first_phase[m.batch_id].id, m.id, n) for m in members for n in range(2)],
            NOON,
        )
        claimed = Claim("other", LATER)
        add_messages(tx, [NewMessage("t", f"m{n}", "x", "{}") for n in range(3000)], NOON, claimed)
        queued = [NewQueued("t", f"s{n % 60}", f"m{n}", "x", "{}", "{}", NOON, far) for n in range(3000)]
        enqueue(tx, queued, NOON, forget_before=NOON)
        record_changes(tx, [NewAuditEntry("a", "b", "batch", str(n), batch_id=n) for n in range(2000)], NOON)
    with store.transaction() as tx:
        tx.execute(text("ANALYZE"))
    store.close()  # the next connection knows only what is on the disk
    return store


@pytest.fixture
def explained(busy: Store) -> Callable[..., str]:
    sent: list[tuple[str, Any]] = []

    def note(statement: str, parameters: Any) -> None:
        sent.append((statement, parameters))

    def explain(call: Callable[[Transaction], Any], *, allow_scans: bool = False) -> str:
        busy.watchers.append(note)
        with busy.transaction() as tx:
            call(tx)
        busy.watchers.remove(note)
        is_sqlite = busy.dialect.name == "sqlite"
        keyword = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN"
        with busy.engine.begin() as connection:
            if not is_sqlite and not allow_scans:
                # Tables with a row or two are read whole otherwise, whatever indexes they have.
                connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            found = [
                str(row)
                for statement, parameters in sent
                for row in connection.exec_driver_sql(f"{keyword} {statement}", parameters)
            ]
        sent.clear()
        plan = "\n".join(found)
        for own, ours in SQLITE_NAMES.items():
            plan = plan.replace(own, ours)
        return plan

    return explain


def test_every_query_that_runs_in_a_loop_uses_an_index(
    explained: Callable[..., str],
) -> None:
    wrong = {}
    for name, (call, indexes) in LOOPS.items():
        plan = explained(call)
        if not all(index in plan for index in indexes):
            wrong[name] = plan
        if _scans_a_large_table(honest := explained(call, allow_scans=True)):
            wrong[f"{name}, as planned"] = honest
    assert not wrong, "\n\n".join(f"{name}:\n{plan}" for name, plan in wrong.items())


@pytest.mark.parametrize("rows", [4, 500])
def test_bulk_moves_find_their_rows_by_the_primary_key(explained: Callable[..., str], rows: int) -> None:
    """The defect: statistics from before a phase began let PostgreSQL hold all its steps against every id."""
    numbers = range(1, rows + 1)
    answers = [Succeed(number, f"job-{number}", "{}") for number in numbers]
    jobs = [Dispatch(number, 1, f"job-{number}", "Create", "{}", LATER) for number in numbers]
    for move in (
        lambda tx: move_steps(tx, Kind.STEP, answers, NOON),
        lambda tx: cancel(tx, Kind.STEP, numbers, NOON),
        lambda tx: move_steps(tx, Kind.STEP, jobs, NOON),
    ):
        plan = explained(move)
        assert "INTEGER PRIMARY KEY" in plan or "pk_step_executions" in plan, plan
        assert "BLOOM FILTER" not in plan, plan  # SQLite makes one of a whole table
        assert "ix_step_executions" not in plan, plan


def test_who_waits_for_a_place_is_found_without_reading_all_steps(explained: Callable[..., str]) -> None:
    """The defect: for two conditions in one, PostgreSQL read all steps of all batches, at the end of every pile."""

    def line(tx: Transaction) -> Any:
        return candidates(tx, 7, [6], after=0, limit=50, may_begin=True, pilots_only=False)

    plan = explained(line, allow_scans=True)
    assert "Seq Scan on step_executions" not in plan, plan
    assert "SCAN step_executions" not in plan, plan
    assert "ix_step_executions_phase_status" in plan, plan


def test_what_is_old_is_found_by_its_number(explained: Callable[..., str]) -> None:
    """Old messages come first, and looking for them ends at the first young one: there is no index of times."""
    for table, look in {
        "bus_messages": lambda tx: bury_expired(tx, LATER, 100, published_by=NOON),
        "bus_recent_ids": lambda tx: forget_ids(tx, LATER, published_before=NOON),
    }.items():
        plan = explained(look)
        assert "INTEGER PRIMARY KEY (rowid<?)" in plan or f"using pk_{table}" in plan, plan
        assert "Sort" not in plan, plan
        assert "TEMP B-TREE" not in plan, plan


def _scans_a_large_table(plan: str) -> bool:
    large = ("step_executions", "batch_members", "phase_executions", "outbox", "audit_log")
    scans = [f"SCAN {table}" for table in large] + [f"Seq Scan on {table}" for table in large]
    lines = [line for line in plan.splitlines() if "USING" not in line]
    return any(f"{scan}'" in line or f"{scan} " in line for line in lines for scan in scans)
