"""Which records a question finds or changes: for each of its conditions there is one that it must leave out."""

from datetime import timedelta

from matoolkit.store import Store
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
from matoolkit.store.automation import automation_of, enable_automation
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions, known_functions
from matoolkit.store.counts import member_counts, phase_outcomes
from matoolkit.store.executions import NewExecution
from matoolkit.store.failures import failures_by_error, members_that_failed
from matoolkit.store.idempotency import begin_request, have_requests_run_out
from matoolkit.store.runbooks import (
    active_runbook,
    clear_error,
    content_hashes,
    last_read,
    latest_version,
    note_read,
    note_transition_done,
    record_error,
    runbook_names,
    runbook_version,
    runbook_versions,
)
from matoolkit.store.schema import batch_members, step_executions
from matoolkit.store.setaside import forget_set_aside, keys_set_aside, set_keys_aside
from matoolkit.store.steps import PhasePlace, current_steps_of_members, insert_phase_steps
from tests.databases import NOON
from tests.store.world import World, put

EARLIER, LATER = NOON - timedelta(days=1), NOON + timedelta(days=1)
STEP = NewExecution(step_name="step-0", step_index=0, worker_id="worker-01", timeout_sec=60)


def test_v1_a_version_is_found_by_its_runbook_and_its_number(store: Store, world: World) -> None:
    other, first, second = world.runbook("other"), world.runbook(), world.runbook()
    world.runbook("later")
    with store.reading() as tx:
        assert [latest_version(tx, name) for name in ("wave", "other")] == [second, other]
        assert [active_runbook(tx, name) for name in ("wave", "other")] == [second, other]
        assert runbook_version(tx, "wave", 2) == second
        assert [row.id for number in (1, 2, 3) if (row := runbook_version(tx, "wave", number))] == [first.id, second.id]
        assert [row.id for row in runbook_versions(tx, "wave")] == [second.id, first.id]
        assert set(content_hashes(tx, "wave")) == {first.id, second.id}
        assert runbook_names(tx) == ["later", "other", "wave"]


def test_t1_what_is_noted_about_a_version_is_noted_about_no_other(store: Store, world: World) -> None:
    first, second, other = world.runbook(), world.runbook(), world.runbook("other")
    with store.transaction() as tx:
        assert last_read(tx, "wave") is None
        note_read(tx, other.id, LATER)
        note_read(tx, first.id, NOON)
        note_transition_done(tx, first.id)
        for row in (first, second):
            record_error(tx, row.id, "odd", NOON)
        assert clear_error(tx, first.id)
        assert not clear_error(tx, other.id), "it had none"
        now = {row.id: row for name in ("wave", "other") for row in runbook_versions(tx, name)}
        assert {number for number, row in now.items() if row.last_error} == {second.id}
        assert {number for number, row in now.items() if row.ignore_overdue_applied} == {first.id}
        read = last_read(tx, "wave")
        assert read is not None
        assert read.id == first.id


def test_t3_keys_are_set_aside_for_one_version(store: Store, world: World) -> None:
    first, other = world.runbook(), world.runbook("other")
    with store.transaction() as tx:
        for runbook in (first, other):
            set_keys_aside(tx, runbook.id, ["anna", "ben", "carl"])
        forget_set_aside(tx, first.id, ["anna", "dora"])
        assert keys_set_aside(tx, first.id) == {"ben", "carl"}
        assert keys_set_aside(tx, first.id, ["anna", "ben"]) == {"ben"}
        assert keys_set_aside(tx, other.id) == {"anna", "ben", "carl"}


def test_t1_what_was_decided_for_a_runbook_is_not_said_of_another(store: Store) -> None:
    with store.transaction() as tx:
        enable_automation(tx, "other", "ben", NOON)
        enable_automation(tx, "wave", "anna", NOON)
        found = automation_of(tx, "wave")
        assert found is not None
        assert (found.runbook_name, found.enabled_by) == ("wave", "anna")


def test_a_key_is_there_to_be_forgotten_when_it_has_run_out(store: Store) -> None:
    with store.transaction() as tx:
        begin_request(tx, "anna", "key", "hash", NOON, LATER)
        assert not have_requests_run_out(tx, NOON)
        assert have_requests_run_out(tx, LATER)


def test_w6_a_worker_keeps_what_it_announced_last_whatever_others_announce(store: Store) -> None:
    with store.transaction() as tx:
        for worker, name, at, is_taken in (
            ("a", "New", NOON, True),
            ("a", "Old", EARLIER, False),
            ("b", "Other", EARLIER, True),
        ):
            assert announce_functions(tx, worker, [AnnouncedFunction(name, "[]")], at) is is_taken
        assert [(row.worker_id, row.function_name) for row in known_functions(tx)] == [("a", "New"), ("b", "Other")]


def test_a5_a_page_of_the_audit_log_is_no_longer_than_asked_for(store: Store) -> None:
    entry = NewAuditEntry("anna", "cancel", "batch", "1")
    with store.transaction() as tx:
        _, second = record_changes(tx, [entry, entry], NOON)
        assert [found.id for found in audit_page(tx, limit=1)] == [second]


def test_o11_outcomes_and_failures_are_those_of_a_members_present_epoch(store: Store, world: World) -> None:
    batch = world.batch()
    phase, other_phase, elsewhere = world.phase(batch), world.phase(batch, 1), world.another(batch)
    again, failing = world.members(batch, 2)
    before, failed = world.steps(batch, phase, [again, failing])
    (others,) = world.steps(elsewhere, world.phase(elsewhere), world.members(elsewhere, 1))
    (unlike,) = world.steps(batch, other_phase, [again])
    with store.transaction() as tx:
        for step in (before, failed, others, unlike):
            put(tx, step_executions, step, status="failed", error_type="Oops")
        put(tx, batch_members, again, epoch=2)
        put(tx, step_executions, unlike, epoch=2)
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), [STEP], [again], NOON)
        (new,) = (step for step in current_steps_of_members(tx, [again]) if step.phase_execution_id == phase.id)
        put(tx, step_executions, new.id, status="succeeded")
        (outcome,) = phase_outcomes(tx, [phase.id])
        assert (outcome.members, outcome.members_through) == (2, 1)
        assert members_that_failed(tx, batch.id) == [again, failing]
        assert members_that_failed(tx, batch.id, phase_name="phase-0") == [failing]
        assert sorted((group.phase_name, group.members) for group in failures_by_error(tx, batch.id)) == [
            ("phase-0", 1),
            ("phase-1", 1),
        ]
        counted = [(one.batch_id, one.count) for one in member_counts(tx, [batch.id, elsewhere.id])]
        assert counted == [(batch.id, 2), (elsewhere.id, 1)]
