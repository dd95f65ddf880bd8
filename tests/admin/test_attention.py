"""Rule U6: what needs a person is one list; each kind appears, and disappears when somebody has seen to it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from matoolkit.admin.approving import approve
from matoolkit.admin.attention import Attention, what_needs_a_person
from matoolkit.admin.matters import Matter, MatterKind
from matoolkit.admin.reinitializing import retry_init
from matoolkit.admin.retrying import retry_members
from matoolkit.admin.undoing import undo_members
from matoolkit.admin.undoplan import Wanted
from matoolkit.admin.undoretries import retry_undo
from matoolkit.scheduler.leasing import LEASE, SchedulerLease
from matoolkit.store.batches import BatchRow
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from matoolkit.store.deadletters import NewDeadLetter, discard_dead_letters, keep_dead_letters
from matoolkit.store.runbooks import clear_error, record_error
from matoolkit.words import LOOKS
from tests.orchestrator.runbooks import ONE_STEP, TWO_PHASES, WITH_INIT, WITH_ROLLBACK
from tests.stage import Failing, Silent, Stage

LONG = ONE_STEP.replace("name: create,", "name: create, timeout: 2d,")
POLLED = """
phases:
  - name: prepare
    offset: T-5d
    steps:
      - {name: copy, worker_id: worker-01, function: Copy, poll: {interval: 5m, timeout: 2d}}
"""


def look(stage: Stage) -> Attention:
    return what_needs_a_person(stage.store)


def the_one(stage: Stage) -> Matter:
    (matter,) = look(stage).matters
    return matter


def failed(stage: Stage, members: int, name: str = "wave") -> BatchRow:
    """Let all members of a batch fail; its second phase is still to come."""
    batch = stage.batch(stage.publish(TWO_PHASES, name), members)
    stage.answers["Create"] = Failing("the mailbox is over its quota")
    stage.due(batch, "prepare")
    stage.run()
    return batch


def test_u6_where_nothing_needs_a_person_the_next_phase_is_said(stage: Stage) -> None:
    assert (look(stage).things, look(stage).next_phase, look(stage).last_tick_at) == (0, None, None)
    batch = stage.batch_at(stage.publish(TWO_PHASES), 1, days=6)
    seen = look(stage)
    assert seen.matters == []
    assert seen.next_phase is not None
    assert (seen.next_phase.batch_id, seen.next_phase.phase_name) == (batch.id, "prepare")
    assert seen.next_phase.due_at == stage.now + timedelta(days=1)


def test_u6_a_held_batch_needs_a_person_until_it_is_approved(stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 3, days=6)
    stage.hold(batch, "removals-1")
    matter = the_one(stage)
    assert (matter.kind, matter.role, matter.batch_id, matter.since) == ("held", "held", batch.id, stage.now)
    assert matter.sentence == f"Batch {batch.id} of wave is held"
    assert "too many are gone" in matter.detail
    assert matter.command == f"matoolkit hold show {batch.id}"
    approve(stage.store, stage.bus, batch.id, "removals-1", by="anna")
    assert look(stage).matters == [], "an approved hold waits for a tick, not for a person"
    stage.hold(batch, "removals-2")
    assert the_one(stage).kind == "held"
    stage.release(batch)
    assert look(stage).matters == []


def test_u6_a_phase_that_does_not_begin_needs_a_person(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    stage.clock.advance(timedelta(minutes=14))
    assert look(stage).matters == [], "the next tick lets it begin"
    stage.clock.advance(timedelta(minutes=1))
    matter = the_one(stage)
    assert (matter.kind, matter.batch_id) == ("overdue", batch.id)
    assert matter.sentence == f"prepare of batch {batch.id} is due and has not begun"
    assert matter.since == stage.now - timedelta(minutes=15)
    stage.clock.advance(timedelta(days=6))
    assert "and 2 phases after it" in the_one(stage).sentence
    stage.due(batch, "prepare", "cutover", "check")
    assert look(stage).matters == []


GATED = TWO_PHASES.replace(
    "offset: T-5d", "offset: T-5d\n    window: {days: [sat], from: '20:00', to: '21:00'}"
).replace("offset: T-0", "offset: T-0\n    approval: {until: T+9d}", 1)


def test_u6_a_phase_that_its_own_gate_keeps_is_not_overdue(stage: Stage, statements: Callable[[], list[str]]) -> None:
    runbook, counts = stage.publish(GATED), []
    for days in (5, 4, 3):
        stage.batch_at(runbook, 1, days=days)
        stage.clock.advance(timedelta(hours=1))
        statements()
        assert look(stage).matters == [], "it waits for its window, and nobody can do anything about that"
        counts.append(len(statements()))
    assert len(set(counts)) == 1, counts
    is_open = datetime(2026, 3, 7, 20, 30, tzinfo=UTC)
    stage.clock.advance(is_open - stage.now)
    assert [str(matter.kind) for matter in look(stage).matters if matter.kind != "approval"] == ["overdue"] * 3


def test_u6_no_scheduler_where_one_has_worked_needs_a_person(stage: Stage) -> None:
    lease = SchedulerLease(stage.store, "scheduler-7", timedelta(seconds=90))
    assert lease.hold()
    stage.clock.advance(timedelta(minutes=3))
    assert look(stage).matters == [], "it may only be slow"
    stage.clock.advance(timedelta(minutes=1))
    matter = the_one(stage)
    assert (matter.kind, matter.sentence) == ("scheduler", "No scheduler is at work")
    assert "scheduler-7" in matter.detail
    assert matter.since == stage.now - timedelta(minutes=4) + timedelta(seconds=90)
    assert lease.hold()
    assert look(stage).matters == []
    assert matter.kind == LEASE


def test_u6_undo_steps_that_failed_need_a_person_until_they_are_tried_again(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK), 2)
    stage.answers.update(Create={"Id": "1"}, License=Failing("no licence"), Unlicense=Failing("cannot"))
    stage.due(batch, "prepare")
    stage.run()
    undo, members = look(stage).matters
    assert (undo.kind, undo.role, undo.sentence) == ("undo_failed", "undo", f"2 undo steps failed in batch {batch.id}")
    assert undo.detail == "2 unlicense: cannot"
    assert members.sentence == f"2 members of batch {batch.id} failed"
    stage.answers["Unlicense"] = None
    retry_undo(stage.store, stage.bus, batch.id, None, by="ann", reason="it is back")
    assert [matter.kind for matter in look(stage).matters] == ["failed"]


def test_u6_members_that_failed_are_grouped_by_error_until_they_are_retried(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 5)
    answers = iter([Failing("no licence left"), *[Failing("the mailbox is over its quota")] * 3])
    stage.answers["Create"] = lambda _: next(answers, None)
    stage.due(batch, "prepare")
    stage.run()
    matter = the_one(stage)
    assert (matter.kind, matter.role) == ("failed", "fail")
    assert matter.sentence == f"4 members of batch {batch.id} failed, for 2 reasons"
    assert matter.detail == "3 create: the mailbox is over its quota · 1 create: no licence left"
    assert matter.since == stage.now
    retry_members(stage.store, stage.bus, batch.id, by="ann", reason="there are licences")
    stage.run()
    assert look(stage).matters == []


def test_u6_members_that_failed_and_were_undone_need_nobody(stage: Stage) -> None:
    batch = failed(stage, 2)
    assert the_one(stage).sentence.startswith("2 members")
    undo_members(stage.store, stage.bus, batch.id, Wanted(member_keys=["u0"]), by="ann", reason="not now")
    stage.run()
    assert the_one(stage).sentence.startswith("1 member of")
    undo_members(stage.store, stage.bus, batch.id, Wanted(), by="ann", reason="not now")
    stage.run()
    assert look(stage).matters == []


def test_u6_failures_of_a_batch_that_has_ended_are_news_for_a_week(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP), 2)
    stage.answers["Create"] = Failing("no licence")
    stage.due(batch, "prepare")
    stage.run()
    assert stage.reload(batch).completed_at is not None
    assert the_one(stage).kind == "failed"
    stage.clock.advance(timedelta(days=7, seconds=1))
    assert look(stage).matters == []


def test_u6_an_init_that_failed_needs_a_person_until_it_is_run_again(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT), 2)
    stage.answers["Domain"] = Failing("the domain is not ours")
    stage.run()
    matter = the_one(stage)
    assert matter.sentence == f"The init of batch {batch.id} failed, so no phase of it begins"
    assert matter.detail == "wave: domain: the domain is not ours"
    assert matter.command == f"matoolkit batch retry-init {batch.id}"
    stage.answers["Domain"] = None
    retry_init(stage.store, stage.bus, batch.id, by="ann")
    stage.run()
    assert look(stage).matters == []


def test_u6_a_runbook_whose_tick_failed_needs_a_person_until_one_works(stage: Stage) -> None:
    runbook = stage.publish(ONE_STEP)
    with stage.store.transaction() as tx:
        record_error(tx, runbook.id, "SC502: the source does not answer", stage.now)
    matter = the_one(stage)
    assert (matter.kind, matter.sentence) == ("source", "The last tick of wave failed")
    assert "SC502: the source does not answer" in matter.detail
    assert (matter.since, matter.runbook_name, matter.batch_id) == (stage.now, "wave", None)
    with stage.store.transaction() as tx:
        clear_error(tx, runbook.id)
    assert look(stage).matters == []


def test_u6_a_worker_that_has_jobs_and_says_nothing_needs_a_person(stage: Stage) -> None:
    batch = stage.batch(stage.publish(LONG), 3)
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    since = stage.now
    stage.clock.advance(timedelta(minutes=9))
    assert look(stage).matters == []
    stage.clock.advance(timedelta(minutes=1))
    matter = the_one(stage)
    assert (matter.kind, matter.sentence, matter.since) == ("silent", "worker-01 has jobs and says nothing", since)
    assert matter.detail.startswith("3 jobs out, each lost when its time is over")
    stage.cancel_steps(batch)
    assert the_one(stage).kind == "silent", "a job that cannot be recalled is still out"
    stage.clock.advance(timedelta(days=3))
    stage.sweep()
    stage.run()
    assert MatterKind.SILENT not in {matter.kind for matter in look(stage).matters}


def test_u6_a_worker_that_ends_other_steps_or_answers_polls_is_not_silent(stage: Stage) -> None:
    stuck, well = stage.batch(stage.publish(LONG), 1), stage.batch(stage.publish(POLLED, "polled"), 1)
    stage.answers.update(Create=Silent(), Copy=lambda _: {"complete": False})
    stage.due(stuck, "prepare")
    stage.run()
    stage.clock.advance(timedelta(minutes=7))
    stage.due(well, "prepare")
    stage.run()
    stage.clock.advance(timedelta(minutes=7))
    assert look(stage).matters == [], "seven minutes ago it answered that its work is not complete"
    stage.answers["Copy"] = None
    stage.sweep()
    stage.run()
    stage.clock.advance(timedelta(minutes=9))
    assert look(stage).matters == [], "nine minutes ago a step of it ended"
    stage.clock.advance(timedelta(minutes=1))
    assert the_one(stage).since == stage.now - timedelta(minutes=10)


@pytest.mark.on("sqlite")
def test_u6_a_worker_that_has_just_begun_is_not_silent(stage: Stage) -> None:
    batch = stage.batch(stage.publish(LONG), 1)
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    stage.clock.advance(timedelta(minutes=10))
    with stage.store.transaction() as tx:
        announce_functions(tx, "worker-01", [AnnouncedFunction("Create", "[]")], stage.now)
    assert look(stage).matters == []
    stage.clock.advance(timedelta(minutes=10))
    assert the_one(stage).kind == "silent"


def test_u6_dead_letters_need_a_person_until_they_are_resolved(stage: Stage) -> None:
    with stage.store.transaction() as tx:
        new = [
            NewDeadLetter("t", "worker-01", f"m-{n}", "worker-job", "{}", "{}", "Poison", None, 10, stage.now)
            for n in range(3)
        ]
        letters = keep_dead_letters(tx, new, stage.now)
    matter = the_one(stage)
    assert matter.sentence == "3 messages of the kind worker-job could not be handled"
    assert matter.detail == "by worker-01, delivered 10 times at most: Poison"
    with stage.store.transaction() as tx:
        discard_dead_letters(tx, [letter.id for letter in letters], "anna", stage.now)
    assert look(stage).matters == []


@pytest.mark.on("sqlite")
def test_u6_more_of_a_kind_are_counted_and_the_oldest_come_first(stage: Stage) -> None:
    runbook = stage.publish(TWO_PHASES)
    batches = []
    for day in range(6, 16):
        batches.append(stage.batch_at(runbook, 1, days=day))
        stage.hold(batches[-1])
        stage.clock.advance(timedelta(seconds=1))
    seen = look(stage)
    assert [matter.batch_id for matter in seen.matters] == [*(batch.id for batch in batches[:5]), None]
    assert seen.things == 10
    assert (seen.matters[-1].sentence, seen.matters[-1].things) == ("5 more like this", 5)
    assert seen.matters[-1].command == "matoolkit hold list"


@pytest.mark.on("sqlite")
def test_u6_the_most_urgent_kind_comes_first(stage: Stage) -> None:
    batch = failed(stage, 1)
    with stage.store.transaction() as tx:
        keep_dead_letters(tx, [NewDeadLetter("t", "s", "m", "k", "{}", "{}", "bad", None, 1, stage.now)], stage.now)
    stage.hold(batch)
    assert [matter.kind for matter in look(stage).matters] == ["held", "failed", "dead_letter"]
    assert all(kind in LOOKS for kind in MatterKind)


@pytest.mark.on("sqlite")
def test_u6_the_list_costs_as_many_statements_for_many_members_as_for_few(
    stage: Stage, statements: Callable[[], list[str]]
) -> None:
    failed(stage, 2)
    statements()
    look(stage)
    few = len(statements())
    failed(stage, 60, "other")
    statements()
    assert look(stage).things == 2
    assert len(statements()) == few
