"""Rule T5, on real tables: what changes, and the messages that say so."""

from datetime import datetime, timedelta

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.remarks import Seen
from matoolkit.domain.states import BatchStatus
from matoolkit.store import Store
from tests.scheduler.calendar import TICK, Calendar, runbook, step, with_init

DAY, WEEK = timedelta(days=1), timedelta(days=7)


def shown(calendar: Calendar) -> dict[Seen, list[str]]:
    """What the last tick shows without changing it, with examples."""
    return {remark.seen: list(remark.samples) for remark in calendar.tick().remarks}


def test_t5_a_new_time_is_a_new_batch_with_its_members_and_phases(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    tally = calendar.tick()
    assert (tally.rows_read, tally.batches_created, tally.members_added) == (2, 1, 2)
    assert calendar.members() == {"Ada": "active", "Bob": "active"}
    assert calendar.phases() == {"prepare": "pending", "warn": "pending", "cutover": "pending"}
    assert [phase.due_at for phase in calendar.phase_rows()] == [
        calendar.start - timedelta(days=7),
        calendar.start - timedelta(hours=1),
        calendar.start,
    ]
    assert calendar.batch().status == "active"
    assert calendar.messages() == []


def test_t5_a_new_batch_of_a_runbook_with_init_asks_for_it(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(with_init())
    calendar.in_source("Ada")
    calendar.tick()
    batch = calendar.batch()
    assert batch.status == "init_dispatched"
    assert (batch.init_count, batch.init_dispatched_at) == (1, clock.now())
    assert calendar.messages() == [f"batch-init-{batch.id}-v1-1"]
    calendar.tick(TICK)
    assert calendar.messages() == []


def test_t5_defect_members_present_at_the_beginning_are_not_announced_on_the_next_tick(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    tally = calendar.tick(TICK)
    assert tally.members_added == 0
    assert calendar.messages() == []
    assert all(member.caught_up_at for member in calendar.member_rows(calendar.batch().id))


def test_t5_whoever_joins_later_is_announced_once_and_has_to_catch_up(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    calendar.in_source("Bob", city="Rome")
    assert calendar.tick(TICK).members_added == 1
    bob = calendar.member("Bob")
    assert calendar.messages() == [f"member-added-{bob.id}-1"]
    assert (bob.add_dispatched_at, bob.caught_up_at) == (calendar.clock.now(), None)
    assert '"city":"Rome"' in bob.data_json
    calendar.tick(TICK)
    assert calendar.messages() == []


def test_t5_whoever_is_gone_before_t_is_removed_with_who_and_why(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.gone("Bob")
    assert calendar.tick(TICK).members_removed == 1
    bob = calendar.member("Bob")
    assert (bob.status, bob.removed_by, bob.removed_at) == ("removed", "scheduler", calendar.clock.now())
    assert bob.remove_reason == "the source no longer returns it"
    assert bob.remove_dispatched_at == calendar.clock.now()
    assert calendar.messages() == [f"member-removed-{bob.id}-1"]
    assert calendar.tick(TICK).members_removed == 0
    assert calendar.messages() == []


def test_t5_after_t_absence_is_noted_and_nothing_more(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.gone("Bob")
    calendar.tick(timedelta(days=10))
    left_at = calendar.clock.now()
    calendar.messages()
    calendar.tick(TICK)
    assert (calendar.member("Bob").status, calendar.member("Bob").left_source_at) == ("active", left_at)
    calendar.in_source("Bob")
    calendar.tick(TICK)
    assert calendar.member("Bob").left_source_at is None
    assert calendar.messages() == []


def test_t5_whoever_is_back_is_active_in_the_same_row_in_a_new_epoch(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.gone("Bob")
    calendar.tick(TICK)
    before = calendar.member("Bob")
    calendar.messages()
    calendar.in_source("Bob", city="Oslo")
    assert calendar.tick(TICK).members_returned == 1
    bob = calendar.member("Bob")
    assert (bob.id, bob.status, bob.epoch, bob.caught_up_at) == (before.id, "active", 2, None)
    assert (bob.removed_at, bob.removed_by, bob.remove_reason) == (None, None, None)
    assert '"city":"Oslo"' in bob.data_json
    assert calendar.messages() == [f"member-added-{bob.id}-2"]


def test_t5_defect_failed_members_that_are_still_in_the_source_stay_failed(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.fail("Bob")
    for _ in range(2):
        assert shown(calendar) == {Seen.FAILED_THERE: ["bob"]}
        assert calendar.error() is None
    assert calendar.members() == {"Ada": "active", "Bob": "failed"}
    assert calendar.messages() == []


def test_t5_failed_members_with_a_new_time_join_that_batch_afresh(calendar: Calendar) -> None:
    later = calendar.start + DAY
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.work("Bob", received=True)
    calendar.change("UPDATE step_executions SET status = 'failed', lost_at = NULL")
    calendar.fail("Bob")
    calendar.in_source("Bob", at=later)
    calendar.tick(TICK)
    assert calendar.members() == {"Ada": "active", "Bob": "failed"}
    assert calendar.members(later) == {"Bob": "active"}
    assert calendar.member("Bob", later).worker_data_json == "{}"


@pytest.mark.parametrize("status", [BatchStatus.COMPLETED, BatchStatus.FAILED, BatchStatus.CANCELLED])
def test_t5_defect_rows_of_an_ended_batch_are_ignored_and_counted(calendar: Calendar, status: BatchStatus) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.end(status)
    calendar.in_source("New")
    for _ in range(2):
        tally = calendar.tick(TICK)
        assert (tally.error, tally.rows_ignored, tally.batches_created) == (None, 3, 0)
    assert calendar.last().rows_ignored == 3
    assert len(calendar.batches()) == 1
    assert calendar.members() == {"Ada": "active", "Bob": "active"}


def test_t5_changed_data_is_refreshed_for_active_members_alone(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob", "Cid")
    calendar.tick()
    calendar.fail("Bob")
    calendar.in_source("Ada", "Bob", city="Rome")
    assert calendar.tick(TICK).members_refreshed == 1
    assert ['"city":"Rome"' in calendar.member(key).data_json for key in ("Ada", "Bob", "Cid")] == [True, False, False]
    assert calendar.tick(TICK).members_refreshed == 0


def test_t5_a_member_of_a_manual_batch_is_not_taken_into_another(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    calendar.change("UPDATE batches SET is_manual = TRUE, batch_start_time = NULL")
    assert shown(calendar) == {Seen.IN_MANUAL_BATCH: ["ada"]}
    assert len(calendar.batches()) == 1


def test_t5_a_reopened_batch_is_passed_by(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.change("UPDATE batches SET reopened_at = detected_at")
    calendar.gone("Ada")
    calendar.in_source("Bob", at=calendar.start + DAY)
    calendar.in_source("Cid")
    assert shown(calendar) == {Seen.BATCH_WAS_REOPENED: ["cid"]}
    assert calendar.members() == {"Ada": "active", "Bob": "active"}


# Moves


def test_t5_defect_when_a_whole_batch_moves_the_old_wave_does_not_run_beside_the_new_one(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick(timedelta(days=4))
    phase = calendar.phase_rows()[0]
    assert calendar.messages() == [f"phase-due-{phase.id}-1"]
    old, new = calendar.start, calendar.start + WEEK
    before = calendar.batch()
    calendar.in_source("Ada", "Bob", at=new)
    assert calendar.tick(TICK).batches_rescheduled == 1
    (batch,) = calendar.batches()
    assert (batch.id, batch.batch_start_time) == (before.id, new)
    assert calendar.members(new) == {"Ada": "active", "Bob": "active"}
    due = {row.phase_name: (row.status.value, row.due_at) for row in calendar.phase_rows(new)}
    assert due == {
        "prepare": ("dispatched", old - WEEK),
        "warn": ("pending", new - timedelta(hours=1)),
        "cutover": ("pending", new),
    }
    assert calendar.messages() == []
    calendar.tick(old - calendar.clock.now() + TICK)
    assert calendar.messages() == []
    calendar.tick(new - calendar.clock.now())
    assert len(calendar.messages()) == 2


def test_t5_a_whole_calendar_can_slip_by_a_week(calendar: Calendar) -> None:
    starts = [calendar.start + WEEK * number for number in range(4)]
    for number, start in enumerate(starts[:3]):
        calendar.in_source(f"m{number}", at=start)
    calendar.tick()
    before = {batch.id: batch.batch_start_time for batch in calendar.batches()}
    for number, start in enumerate(starts[1:]):
        calendar.in_source(f"m{number}", at=start)
    assert calendar.tick(TICK).batches_rescheduled == 3
    assert {batch.id: batch.batch_start_time - WEEK for batch in calendar.batches() if batch.batch_start_time} == before
    assert calendar.messages() == []


def test_t5_a_batch_goes_from_not_yet_to_a_time_and_back(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    after = {"name": "after", "offset": "T+2h", "steps": [step("look")]}
    calendar.publish(runbook(phases=[after]))
    never = datetime.fromisoformat("9999-12-31T23:59:00+00:00")
    calendar.in_source("Ada", at=never)
    calendar.tick()
    calendar.in_source("Ada")
    assert calendar.tick(TICK).error is None
    assert [phase.due_at for phase in calendar.phase_rows()] == [calendar.start + timedelta(hours=2)]
    calendar.in_source("Ada", at=never)
    assert calendar.tick(TICK).error is None
    assert calendar.members(never) == {"Ada": "active"}


def test_t5_a_mover_leaves_at_once_and_joins_with_its_outputs_when_its_job_has_answered(calendar: Calendar) -> None:
    later = calendar.start + DAY
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    work = calendar.work("Bob", received=True)
    calendar.messages()
    calendar.in_source("Bob", at=later)
    tally = calendar.tick(TICK)
    assert (tally.members_moved, tally.members_added, tally.batches_created) == (1, 0, 0)
    bob = calendar.member("Bob")
    assert (bob.status, bob.removed_by, bob.remove_reason) == ("removed", "scheduler", "moved")
    assert calendar.messages() == [f"member-removed-{bob.id}-1"]
    assert calendar.step_row(work.id).status == "cancelled"
    assert shown(calendar) == {Seen.WAITS_FOR_ITS_JOBS: ["bob"]}
    assert len(calendar.batches()) == 1
    calendar.answer(work, '{"MailboxId":"m-1"}')
    assert calendar.tick(TICK).members_added == 1
    assert calendar.member("Bob", later).worker_data_json == '{"MailboxId":"m-1"}'
    assert calendar.member("Bob", later).epoch == 1
    assert calendar.messages() == []


def test_t5_a_mover_whose_job_nobody_has_seen_takes_it_back_and_moves_in_the_same_tick(calendar: Calendar) -> None:
    later = calendar.start + DAY
    calendar.in_source("Ada", "Bob")
    calendar.in_source("Cid", at=later)
    calendar.tick()
    work = calendar.work("Bob")
    calendar.in_source("Bob", at=later)
    tally = calendar.tick(TICK)
    assert (tally.members_moved, tally.members_added) == (1, 1)
    old, new = calendar.member("Bob"), calendar.member("Bob", later)
    assert calendar.messages() == [f"member-removed-{old.id}-1", f"member-added-{new.id}-1"]
    assert (calendar.step_row(work.id).status, calendar.step_row(work.id).lost_at) == ("cancelled", None)
    assert new.worker_data_json == '{"from":"Bob"}'


def test_t5_a_mover_waits_for_its_rollback(calendar: Calendar) -> None:
    later = calendar.start + DAY
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    bob = calendar.member("Bob")
    calendar.change(
        "INSERT INTO rollback_executions (batch_id, batch_member_id, epoch, runbook_version, cause, sequence_name,"
        " sequence_key, step_name, step_index, worker_id, status, attempt, timeout_sec, is_poll_step, poll_count,"
        f" retry_count, max_retries, created_at) SELECT {bob.batch_id}, {bob.id}, 1, 1, 'step_failed', 'undo', 'k',"
        " 'undo', 0, 'worker-01', 'pending', 0, 60, FALSE, 0, 0, 0, detected_at FROM batches"
    )
    calendar.in_source("Bob", at=later)
    assert calendar.tick(TICK).members_moved == 1
    assert shown(calendar) == {Seen.WAITS_FOR_ITS_JOBS: ["bob"]}
    calendar.change("UPDATE rollback_executions SET status = 'succeeded'")
    assert calendar.tick(TICK).batches_created == 1


def test_t5_who_left_joins_another_batch_only_once_its_removal_steps_had_their_chance(calendar: Calendar) -> None:
    later = calendar.start + DAY
    calendar.in_source("Ada", "Bob")
    calendar.in_source("Cid", at=later)
    calendar.tick()
    calendar.gone("Bob")
    assert calendar.tick(TICK).members_removed == 1
    calendar.in_source("Bob", at=later)
    assert calendar.tick(TICK).members_added == 0
    assert shown(calendar) == {Seen.WAITS_FOR_ITS_JOBS: ["bob"]}
    calendar.change("UPDATE batch_members SET seen_off_at = removed_at WHERE member_key = 'Bob'")
    assert calendar.tick(TICK).members_added == 1


@pytest.mark.parametrize("waits", [False, True])
def test_t5_whoever_moves_back_returns_in_its_old_row_with_what_it_got_meanwhile(
    calendar: Calendar, waits: bool
) -> None:
    later = calendar.start + DAY
    calendar.in_source("Ada", "Bob")
    calendar.in_source("Cid", at=later)
    calendar.tick()
    calendar.in_source("Bob", at=later)
    calendar.tick(TICK)
    work = calendar.work("Bob", later, received=waits)
    calendar.in_source("Bob")
    calendar.tick(TICK)
    if waits:
        assert calendar.member("Bob").status == "removed"
        calendar.answer(work, '{"from":"Bob"}')
        calendar.tick(TICK)
    bob = calendar.member("Bob")
    assert (bob.status, bob.epoch, bob.worker_data_json) == ("active", 2, '{"from":"Bob"}')
    assert calendar.member("Bob", later).remove_reason == "moved"


def test_t5_a_returner_keeps_its_own_outputs(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.work("Bob")
    calendar.gone("Bob")
    calendar.tick(TICK)
    calendar.in_source("Bob")
    calendar.tick(TICK)
    assert (calendar.member("Bob").epoch, calendar.member("Bob").worker_data_json) == (2, '{"from":"Bob"}')


def test_t5_after_t_nobody_moves(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.tick(timedelta(days=10))
    calendar.in_source("Bob", at=calendar.start + WEEK)
    assert shown(calendar) == {Seen.MOVED_AFTER_START: ["bob"]}
    calendar.in_source("Ada", at=calendar.start + WEEK)
    assert shown(calendar) == {Seen.MOVED_AFTER_START: ["ada", "bob"]}
    assert calendar.members() == {"Ada": "active", "Bob": "active"}
    assert len(calendar.batches()) == 1


def test_t5_a_key_in_another_case_is_the_same_member(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.gone("Ada")
    calendar.in_source("ADA ")
    tally = calendar.tick(TICK)
    assert (tally.members_added, tally.members_removed, tally.members_refreshed) == (0, 0, 1)
    assert calendar.members() == {"Ada": "active", "Bob": "active"}


def test_t5_r2_a_version_that_spells_the_runbook_in_another_case_has_the_same_batches(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.publish(runbook("WAVE", description="second"))
    calendar.in_source("Cid")
    tally = calendar.tick(TICK)
    assert (tally.error, tally.batches_created, tally.members_added) == (None, 0, 1)
    assert calendar.members() == {"Ada": "active", "Bob": "active", "Cid": "active"}
