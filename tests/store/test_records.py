"""Outbox, audit log, idempotency keys, dead letters, catalogue, automation, ticks, versions."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from matoolkit.domain.states import DeadLetterStatus, OverdueBehavior
from matoolkit.store import Store
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
from matoolkit.store.automation import (
    TickRow,
    automated_runbooks,
    automation_of,
    disable_automation,
    enable_automation,
    last_tick,
    last_ticks,
    record_tick,
)
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions, known_functions
from matoolkit.store.deadletters import (
    NewDeadLetter,
    Resend,
    dead_letters_by_id,
    dead_letters_page,
    discard_dead_letters,
    keep_dead_letters,
    open_dead_letters,
    resend_dead_letters,
)
from matoolkit.store.idempotency import begin_request, finish_request, forget_requests
from matoolkit.store.outbox import (
    Claim,
    NewMessage,
    add_messages,
    claim_messages,
    delete_sent,
    waiting_count,
)
from matoolkit.store.runbooks import (
    NewVersion,
    active_runbook,
    active_runbooks,
    clear_error,
    deactivate_version,
    note_transition_done,
    publish_version,
    record_error,
    runbook_version,
    runbook_versions,
    runbooks_by_id,
)
from tests.databases import full_name
from tests.store.world import World

pytestmark = pytest.mark.both_executions

MINUTE = timedelta(minutes=1)


def message(number: int, topic: str = "worker-jobs") -> NewMessage:
    return NewMessage(topic, f"job-{number}", "worker-job", '{"n": 1}')


def test_m1_messages_wait_in_the_order_in_which_they_were_written(store: Store, world: World) -> None:
    later = replace(message(0), not_before=world.now + MINUTE)
    with store.transaction() as tx:
        written = add_messages(tx, [message(3), message(1), message(2), message(1), later], world.now)
        assert {row.tries for row in written} == {0}, "nobody has tried to send them"
        assert [row.message_id for row in written] == ["job-3", "job-1", "job-2", "job-0"]
        assert [row.not_before for row in written][2:] == [world.now, world.now + MINUTE]
        assert add_messages(tx, [message(1)], world.now) == []
        assert len(add_messages(tx, [message(1, topic="other")], world.now)) == 1
        assert waiting_count(tx) == 5


def test_m1_what_a_process_sends_itself_is_left_to_it_until_its_claim_runs_out(store: Store, world: World) -> None:
    mine, other = Claim("mine", world.now + MINUTE), Claim("other", world.now + 2 * MINUTE)
    with store.transaction() as tx:
        add_messages(tx, [message(1), message(2)], world.now, mine)
        assert claim_messages(tx, other, world.now) == []
        world.clock.advance(MINUTE)
        taken = claim_messages(tx, other, world.now, limit=1)
        assert [(row.message_id, row.tries) for row in taken] == [("job-1", 2)]
        assert delete_sent(tx, mine, [row.id for row in taken]) == []
        assert delete_sent(tx, other, [row.id for row in taken]) == [taken[0].id]
        assert [row.message_id for row in claim_messages(tx, other, world.now)] == ["job-2"]


def test_a5_the_audit_log_is_read_newest_first_and_by_subject(store: Store, world: World) -> None:
    cancel = NewAuditEntry("anna", "batch.cancel", "batch", "42", "wave", 42, "{}", "{}", "wrong date")
    publish = NewAuditEntry("ben", "runbook.publish", "runbook", "wave", "wave")
    with store.transaction() as tx:
        first, second = record_changes(tx, [cancel, publish], world.now)
        assert [entry.id for entry in audit_page(tx)] == [second, first]
        assert [entry.reason for entry in audit_page(tx, batch_id=42)] == ["wrong date"]
        assert [entry.id for entry in audit_page(tx, runbook_name="wave", before=second)] == [first]
        assert [entry.actor for entry in audit_page(tx, subject_type="runbook", subject_id="wave")] == ["ben"]


def test_a_request_with_a_used_key_gets_the_first_answer(store: Store, world: World) -> None:
    day = world.now + timedelta(days=1)
    with store.transaction() as tx:
        assert begin_request(tx, "anna", "key", "hash", world.now, day) is None
        assert begin_request(tx, "ben", "key", "hash", world.now, day) is None
        at_work = begin_request(tx, "anna", "key", "hash", world.now, day)
        assert at_work is not None
        assert at_work.response_status is None
        assert finish_request(tx, "anna", "key", 201, '{"id": 1}')
        assert not finish_request(tx, "anna", "key", 500, "{}")
        done = begin_request(tx, "anna", "key", "other hash", world.now, day)
        assert done is not None
        assert (done.request_hash, done.response_status, done.response_json) == ("hash", 201, '{"id": 1}')


def test_an_answer_belongs_to_one_key_of_one_person(store: Store, world: World) -> None:
    day = world.now + timedelta(days=1)
    mine, others = [("anna", "key")], [("anna", "other"), ("ben", "key"), ("zoe", "key")]
    with store.transaction() as tx:
        for actor, key in sorted([*mine, *others]):
            assert begin_request(tx, actor, key, f"{actor} {key}", world.now, day) is None
        assert finish_request(tx, "anna", "key", 201, "{}")
        for actor, key in (*mine, *others):
            found = begin_request(tx, actor, key, "again", world.now, day)
            assert found is not None
            assert found.request_hash == f"{actor} {key}"
            assert found.response_status == (201 if (actor, key) in mine else None)


def test_a_key_is_forgotten_when_it_has_run_out(store: Store, world: World) -> None:
    with store.transaction() as tx:
        begin_request(tx, "anna", "old", "hash", world.now, world.now + MINUTE)
        begin_request(tx, "anna", "reused", "hash", world.now, world.now + MINUTE)
        world.clock.advance(MINUTE)
        assert begin_request(tx, "anna", "reused", "new", world.now, world.now + MINUTE) is None
        assert forget_requests(tx, world.now) == 1


def test_m7_dead_letters_are_kept_until_somebody_resolves_them(store: Store, world: World) -> None:
    letters = [
        NewDeadLetter("worker-jobs", "worker-1", f"job-{n}", "worker-job", "{}", "{}", "expired", None, 10, world.now)
        for n in range(3)
    ]
    with store.transaction() as tx:
        first, second, third = keep_dead_letters(tx, letters, world.now)
        assert keep_dead_letters(tx, letters, world.now) == []
        assert dead_letters_by_id(tx, [second.id]) == [second]
        assert resend_dead_letters(tx, [Resend(first.id, "job-0-s1")], "anna", world.now) == [first.id]
        assert discard_dead_letters(tx, [first.id, second.id], "anna", world.now) == [second.id]
        again = [Resend(first.id, "job-0-s2"), Resend(second.id, "job-1-s1")]
        assert resend_dead_letters(tx, again, "ben", world.now) == [], "somebody has resolved both"
        assert dead_letters_page(tx) == [third]
        (resent,) = dead_letters_page(tx, status=DeadLetterStatus.RESENT)
        assert (resent.resent_message_id, resent.resolved_by) == ("job-0-s1", "anna")
        assert dead_letters_page(tx, before=third.id) == []


def test_m7_open_dead_letters_are_found_slice_by_slice(store: Store, world: World) -> None:
    letters = [
        NewDeadLetter("worker-jobs", "worker-1", f"job-{n}", "worker-job", "{}", "{}", "expired", None, 10, world.now)
        for n in range(4)
    ]
    with store.transaction() as tx:
        first, second, third, fourth = (letter.id for letter in keep_dead_letters(tx, letters, world.now))
        discard_dead_letters(tx, [third], "anna", world.now)
        assert [letter.id for letter in open_dead_letters(tx)] == [first, second, fourth]
        assert [letter.id for letter in open_dead_letters(tx, after=first, limit=1)] == [second]
        assert [letter.id for letter in dead_letters_page(tx, limit=2)] == [fourth, second]


def test_m7_a_letter_that_is_drained_again_after_a_crash_is_kept_once(store: Store, world: World) -> None:
    letter = NewDeadLetter("orchestrator", "all", "m-1", "worker-result", "{}", "{}", "poison", None, 10, world.now)
    published_again = replace(letter, enqueued_at=world.now + MINUTE)
    with store.transaction() as tx:
        assert len(keep_dead_letters(tx, [letter], world.now)) == 1
        assert keep_dead_letters(tx, [letter], world.now + MINUTE) == []
        assert len(keep_dead_letters(tx, [published_again, published_again], world.now + MINUTE)) == 1


def test_w6_a_worker_that_announces_itself_again_replaces_what_it_said(store: Store, world: World) -> None:
    with store.transaction() as tx:
        announce_functions(tx, "w1", [AnnouncedFunction("A", "[]"), AnnouncedFunction("B", "[]")], world.now)
        announce_functions(tx, "w2", [AnnouncedFunction("A", "[]")], world.now)
        announce_functions(tx, "w1", [AnnouncedFunction("C", "[1]"), AnnouncedFunction("C", "[2]")], world.now)
        assert [(row.worker_id, row.function_name) for row in known_functions(tx)] == [
            ("w1", "C"),
            ("w2", "A"),
        ]
        announce_functions(tx, "w1", [], world.now)
        assert len(known_functions(tx)) == 1


def test_t1_automation_is_off_until_somebody_enables_it(store: Store, world: World) -> None:
    with store.transaction() as tx:
        assert automation_of(tx, "wave") is None
        enable_automation(tx, "wave", "anna", world.now)
        assert automated_runbooks(tx) == ["wave"]
        world.clock.advance(MINUTE)
        disable_automation(tx, "WAVE", "ben", world.now)
        row = automation_of(tx, "Wave")
        assert row is not None
        assert (row.automation_enabled, row.enabled_by, row.disabled_by) == (False, "anna", "ben")
        assert automated_runbooks(tx) == []


def test_the_last_tick_of_a_runbook_replaces_the_one_before(store: Store, world: World) -> None:
    tick = TickRow("wave", 1, world.now, world.now, queried=True, rows_read=100, set_aside_json='{"a": 1}')
    with store.transaction() as tx:
        record_tick(tx, tick)
        record_tick(tx, replace(tick, rows_read=101))
        record_tick(tx, replace(tick, runbook_name="other"))
        assert [(row.runbook_name, row.rows_read) for row in last_ticks(tx)] == [
            ("other", 100),
            ("wave", 101),
        ]
        assert last_tick(tx, "WAVE") == replace(tick, rows_read=101)
        assert last_tick(tx, "unknown") is None


def test_v1_the_newest_version_is_the_active_one_and_older_ones_stay(store: Store, world: World) -> None:
    first = world.runbook("Wave-A")
    second = world.runbook("wave-a")
    assert (second.name, second.version, second.data_table_name) == ("Wave-A", 2, "runbook_wave_a_v2")
    with store.transaction() as tx:
        assert active_runbook(tx, "WAVE-A") == second
        assert [row.version for row in runbook_versions(tx, "wave-a")] == [2, 1]
        old = runbook_version(tx, "wave-a", 1)
        assert old is not None
        assert not old.is_active
        assert runbooks_by_id(tx, [first.id, second.id]) == [old, second]
        assert deactivate_version(tx, "wave-a", 1) is False
        assert deactivate_version(tx, "wave-a", 2) is True
        assert active_runbook(tx, "wave-a") is None
        assert active_runbooks(tx) == []
        assert note_transition_done(tx, second.id)


def test_v7_a_version_is_deactivated_of_one_runbook_only(store: Store, world: World) -> None:
    stays, goes = world.runbook("wave-a"), world.runbook("wave-b")
    with store.transaction() as tx:
        assert (stays.version, goes.version) == (1, 1)
        assert deactivate_version(tx, "Wave-B", 1)
        assert active_runbooks(tx) == [stays]


@pytest.mark.parametrize("other", ["wave_a", "wave.a", "x" * 100])
def test_d2_runbooks_whose_names_collide_get_tables_of_their_own(store: Store, world: World, other: str) -> None:
    world.runbook("wave-a")
    world.runbook("x" * 99 + "y")
    name = world.runbook(other).data_table_name
    with store.reading() as tx:
        names = [row.data_table_name for row in active_runbooks(tx)]
    assert len(set(names)) == 3
    assert name.endswith("_2_v1")
    assert all(len(name) <= 63 for name in names)


def test_d2_a_hostile_runbook_name_is_stored_and_never_executed(store: Store, world: World) -> None:
    name = 'x"; DROP TABLE batches; --'
    new = NewVersion(name, "", "", OverdueBehavior.RERUN, False, "mallory")
    with store.transaction() as tx:
        row = publish_version(tx, new, world.now)
        assert (row.name, row.data_table_name) == (name, "runbook_x_drop_table_batches_v1")
        assert active_runbook(tx, name.upper()) == row


def test_t1_an_error_is_recorded_and_cleared(store: Store, world: World) -> None:
    runbook = world.runbook()
    with store.transaction() as tx:
        assert record_error(tx, runbook.id, "the source is down", world.now)
        found = active_runbook(tx, "wave")
        assert found is not None
        assert (found.last_error, found.last_error_at) == ("the source is down", world.now)
        assert clear_error(tx, runbook.id)
        assert not clear_error(tx, runbook.id)


@pytest.mark.parametrize("error", ["a\0b", "a\ud800b"])
def test_t1_an_error_that_no_database_stores_is_recorded_all_the_same(store: Store, world: World, error: str) -> None:
    runbook = world.runbook(f"wave {error}")
    with store.transaction() as tx:
        assert record_error(tx, runbook.id, error, world.now)
        found = active_runbook(tx, f"wave {error}")
        assert found is not None
        assert (found.name, found.last_error) == ("wave a\ufffdb", "a\ufffdb")


def test_d2_a_table_of_somebody_else_is_not_taken_for_a_data_table(store: Store, world: World) -> None:
    with store.engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE {full_name(store, 'runbook_wave_v1')} (theirs INTEGER)"))
    assert world.runbook("wave").data_table_name == "runbook_wave_2_v1"
