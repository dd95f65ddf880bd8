"""Rule T5, on real tables: batches that wait for a person before they begin, and people who are kept outside."""

from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from matoolkit.admin.including import include_member
from matoolkit.admin.late_batches import approve_late, cancel_late, late_batches
from matoolkit.admin.manual import create_manual_batch
from matoolkit.admin.publishing import publish
from matoolkit.admin.queries import hold_of
from matoolkit.clock import VirtualClock
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.states import BatchStatus
from matoolkit.errors import NotIncluded, UnknownRow
from matoolkit.store import Store
from tests.scheduler.calendar import TICK, Calendar, immediate, runbook, with_init

DAY, WEEK, YEAR = timedelta(days=1), timedelta(days=7), timedelta(days=365)


@pytest.fixture
def late(calendar: Calendar) -> Calendar:
    """A batch whose year was mistyped."""
    calendar.start -= YEAR
    calendar.in_source("Ada", "Bob")
    assert calendar.tick().batches_held == 1
    calendar.messages()
    return calendar


def remarks(calendar: Calendar) -> dict[str, Any]:
    """What the last tick saw and left as it is, by the first words, with the keys."""
    return {one["seen"].partition(":")[0]: one["samples"] for one in orjson.loads(calendar.last().remarks_json)}


def include(calendar: Calendar, key: str) -> Any:
    return include_member(calendar.store, "wave", key, by="ann", reason="it is meant", now=calendar.clock.now())


def test_t5_a_batch_first_seen_after_its_t_is_created_and_waits_for_a_person(late: Calendar) -> None:
    batch = late.batch()
    assert (batch.status, batch.hold_kind) == (BatchStatus.DETECTED, HoldKind.LATE)
    assert batch.hold_reason == f"{late.start:%Y-%m-%d %H:%M} UTC had passed when the batch was first seen"
    assert late.members() == {"Ada": "active", "Bob": "active"}
    assert set(late.phases().values()) == {"pending"}
    for later in (TICK, DAY):
        assert late.tick(later).phases_dispatched == 0
    assert late.batch() == batch
    assert late.messages() == []


@pytest.mark.parametrize(("content", "messages"), [(runbook(), 3), (with_init(), 1)])
def test_t5_a_late_batch_begins_when_it_is_approved(
    store: Store, clock: VirtualClock, content: str, messages: int
) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(content)
    calendar.start -= YEAR
    calendar.in_source("Ada")
    calendar.tick()
    assert calendar.messages() == []
    calendar.approve()
    assert calendar.tick(TICK).batches_released == 1
    batch = calendar.batch()
    assert (batch.held_at, batch.init_count) == (None, 1 if messages == 1 else 0)
    assert batch.status is (BatchStatus.INIT_DISPATCHED if messages == 1 else BatchStatus.ACTIVE)
    assert len(calendar.messages()) == messages
    assert calendar.tick(TICK).batches_released == 0
    assert calendar.messages() == []


def test_t5_members_join_and_leave_a_late_batch_freely_and_are_there_from_the_beginning(late: Calendar) -> None:
    late.gone("Ada")
    late.in_source("Cid")
    tally = late.tick(TICK)
    assert (tally.members_added, tally.members_removed) == (1, 1)
    assert late.members() == {"Ada": "removed", "Bob": "active", "Cid": "active"}
    assert late.member("Ada").remove_reason == "the source no longer returned it, and its batch had not begun"
    assert late.member("Cid").caught_up_at == late.clock.now()
    late.in_source("Ada")
    assert late.tick(TICK).members_returned == 1


def test_t5_a_late_batch_without_members_is_cancelled(late: Calendar) -> None:
    late.gone("Ada", "Bob")
    late.tick(TICK)
    assert (late.batch().status, late.batch().held_at) == (BatchStatus.CANCELLED, None)
    assert set(late.phases().values()) == {"cancelled"}


def test_t5_a_late_batch_begins_when_its_t_is_ahead_again(late: Calendar) -> None:
    old, late.start = late.start, late.start + YEAR
    late.in_source("Ada", "Bob")
    tally = late.tick(TICK)
    assert (tally.batches_rescheduled, tally.batches_released) == (1, 1)
    assert late.batch().status is BatchStatus.ACTIVE
    assert not [batch for batch in late.batches() if batch.batch_start_time == old]


def test_t5_one_member_re_dated_into_the_past_is_not_cut_over(calendar: Calendar) -> None:
    people = [f"m{number}" for number in range(8)]
    calendar.in_source(*people)
    calendar.tick(timedelta(days=4))
    past = calendar.start - timedelta(days=200)
    calendar.in_source("m3", at=past)
    calendar.tick(TICK)
    assert calendar.batch(past).hold_kind is HoldKind.LATE
    assert calendar.phases(past) == {"prepare": "pending", "warn": "pending", "cutover": "pending"}
    calendar.in_source("m3")
    assert calendar.tick(TICK).members_returned == 1
    assert calendar.batch(past).status is BatchStatus.CANCELLED


def test_t5_a_date_is_late_only_after_its_day_has_ended(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(runbook(data_source={"batch_time_zone": "Europe/Zurich"}))
    today, yesterday = (f"{clock.now() - days:%Y-%m-%d}" for days in (timedelta(), DAY))
    calendar.in_source("Ada", at=today)
    calendar.in_source("Bob", at=yesterday)
    calendar.tick()
    kinds = {batch.batch_start_time: batch.hold_kind for batch in calendar.batches()}
    midnight = clock.now().replace(hour=23, minute=0, second=0, microsecond=0) - DAY
    assert kinds == {midnight: None, midnight - DAY: HoldKind.LATE}


def test_t5_a_late_batch_follows_the_version_that_is_active_when_it_begins(late: Calendar) -> None:
    done = publish(late.store, with_init(description="second"), by="ann", now=late.clock.now())
    assert done.impacts == ()
    late.tick(TICK)
    assert {phase.runbook_version for phase in late.phase_rows()} == {1}
    late.approve()
    late.tick(TICK)
    assert late.batch().status is BatchStatus.INIT_DISPATCHED
    assert [one for one in late.messages() if one.startswith("batch-init")] == [f"batch-init-{late.batch().id}-v2-1"]


def test_v1_another_primary_key_is_no_matter_to_a_late_batch(late: Calendar) -> None:
    late.publish(runbook(data_source={"primary_key": "city"}))
    late.people.rows = [("x", late.start.isoformat(), "Bern")]
    late.tick(TICK)
    assert late.members() == {"Ada": "removed", "Bob": "removed", "Bern": "active"}


def test_t5_an_approved_late_batch_begins_under_a_version_whose_members_start_at_once(late: Calendar) -> None:
    late.publish(immediate())
    late.approve()
    late.tick(TICK)
    assert (late.batch().held_at, late.batch().status) == (None, BatchStatus.ACTIVE)


def test_t5_many_late_batches_are_approved_or_cancelled_at_once(calendar: Calendar) -> None:
    starts = [calendar.start - YEAR - WEEK * number for number in range(3)]
    for number, start in enumerate(starts):
        calendar.in_source(f"m{number}", f"n{number}", at=start)
    calendar.tick()
    store, bus = calendar.store, calendar.bus
    assert late_batches(store, starts[0]).member_count == 4
    done = approve_late(store, bus, starts[1], "WAVE", by="ann", reason="they are meant")
    assert (list(done.batch_ids), done.member_count) == ([calendar.batch(starts[2]).id], 2)
    assert list(late_batches(store, starts[0]).batch_ids) == [calendar.batch(starts[1]).id]
    cancelled = cancel_late(store, bus, calendar.clock.now(), None, by="ann", reason="mistyped")
    assert len(cancelled.batch_ids) == 2
    calendar.tick(TICK)
    assert [calendar.batch(start).status.value for start in starts] == ["cancelled", "cancelled", "active"]
    assert len(calendar.sql("SELECT id FROM audit_log WHERE action = 'batch.approve_hold'")) == 1
    assert len(calendar.sql("SELECT id FROM audit_log WHERE action = 'batch.cancel'")) == 2


def done_at(calendar: Calendar, start: datetime, *keys: str) -> None:
    calendar.in_source(*keys, at=start)
    calendar.tick()
    calendar.end(BatchStatus.COMPLETED, start)


def test_t5_a_corrected_time_zone_migrates_no_finished_people_again(calendar: Calendar) -> None:
    done_at(calendar, calendar.start, "Ada", "Bob")
    corrected = calendar.start + timedelta(hours=2)
    calendar.in_source("Ada", "Bob", "New", at=corrected)
    calendar.tick(TICK)
    batch = calendar.batch(corrected)
    assert (batch.status, batch.hold_kind) == (BatchStatus.DETECTED, HoldKind.REPEAT)
    assert batch.hold_reason == "2 of its 3 members are done or have failed in other batches"
    assert orjson.loads(batch.hold_json or "")["memberKeys"] == ["ada", "bob"]
    calendar.in_source("Ada", "Bob")
    calendar.tick(TICK)
    assert calendar.members(corrected) == {"Ada": "removed", "Bob": "removed", "New": "active"}
    assert calendar.batch(corrected).status is BatchStatus.ACTIVE


def test_t5_a_row_set_aside_lets_nobody_repeat(calendar: Calendar) -> None:
    done_at(calendar, calendar.start, "Ada")
    new = calendar.start + WEEK
    calendar.in_source("Ada", "Bob", at=new)
    calendar.tick(TICK)
    calendar.people.rows.append(("ada", new.isoformat(), "twice"))
    calendar.tick(TICK)
    assert calendar.batch(new).hold_kind is HoldKind.REPEAT


def test_t5_who_repeats_does_so_when_a_person_approves_exactly_those(calendar: Calendar) -> None:
    done_at(calendar, calendar.start, "Ada", "Bob")
    new = calendar.start + WEEK
    calendar.in_source("Ada", at=new)
    calendar.tick(TICK)
    calendar.approve(new)
    calendar.in_source("Bob", at=new)
    calendar.tick(TICK)
    assert calendar.batch(new).is_held
    calendar.approve(new)
    calendar.tick(TICK)
    assert (calendar.batch(new).held_at, calendar.members(new)) == (None, {"Ada": "active", "Bob": "active"})


@pytest.fixture
def emptied(calendar: Calendar) -> Calendar:
    """A batch ahead whose repeat was approved just before its only member left the source."""
    done_at(calendar, calendar.start, "Ada")
    calendar.start += WEEK
    calendar.in_source("Ada")
    calendar.tick(TICK)
    calendar.approve()
    calendar.gone("Ada")
    calendar.tick(TICK)
    assert calendar.members() == {"Ada": "removed"}
    return calendar


def test_t5_an_approval_waits_for_exactly_those_who_were_approved(emptied: Calendar) -> None:
    assert emptied.batch().is_held
    hold = hold_of(emptied.store, emptied.batch().id)
    assert hold.waits_for == "nobody is in the batch: it begins when they return, and is cancelled after T"
    emptied.in_source("Ada")
    emptied.tick(TICK)
    assert (emptied.batch().status, emptied.batch().held_at) == (BatchStatus.ACTIVE, None)
    assert emptied.members() == {"Ada": "active"}


def test_t5_an_approved_batch_to_which_nobody_returns_ends_after_t(emptied: Calendar) -> None:
    emptied.tick(emptied.start - emptied.clock.now() + TICK)
    assert emptied.batch().is_held
    emptied.tick(TICK)
    assert (emptied.batch().status, emptied.batch().held_at) == (BatchStatus.CANCELLED, None)


def test_t5_a_batch_rescheduled_around_a_failed_member_leaves_it_failed(calendar: Calendar) -> None:
    old = calendar.start
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.fail("Bob")
    calendar.start = old + WEEK
    calendar.in_source("Ada")
    assert calendar.tick(TICK).batches_rescheduled == 1
    for _ in range(2):
        assert calendar.tick(TICK).batches_created == 0
        assert remarks(calendar) == {"are done, have failed or were undone at this very time": ["bob"]}
    calendar.end(BatchStatus.COMPLETED)
    assert calendar.tick(TICK).batches_created == 0
    assert include(calendar, "BOB").batch_time == old
    assert calendar.tick(TICK).batches_created == 1
    assert calendar.members(old) == {"Bob": "active"}
    assert calendar.batch(old).held_at is None


def test_t5_who_is_done_does_not_join_another_batch_by_itself(calendar: Calendar) -> None:
    done_at(calendar, calendar.start, "Ada")
    other = calendar.start + WEEK
    calendar.in_source("Bob", at=other)
    calendar.tick(TICK)
    calendar.in_source("Ada", at=other)
    assert calendar.tick(TICK).members_added == 0
    assert remarks(calendar) == {"are done in another batch": ["ada"]}
    include(calendar, "Ada")
    assert calendar.tick(TICK).members_added == 1
    assert calendar.members(other) == {"Ada": "active", "Bob": "active"}
    assert calendar.sql("SELECT applied_at FROM member_inclusions WHERE applied_at IS NULL") == []


def test_t5_who_is_done_in_a_manual_batch_is_done_too(calendar: Calendar) -> None:
    create_manual_batch(calendar.store, "wave", [{"id": "Ada"}], by="ann")
    calendar.change("UPDATE batches SET status = 'completed'")
    calendar.in_source("Ada", "Bob")
    calendar.tick(TICK)
    assert calendar.batch().hold_kind is HoldKind.REPEAT


def test_t5_after_t_nobody_joins_by_itself_and_member_include_lets_it_in(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    calendar.in_source("Bob", "Cid")
    assert calendar.tick(timedelta(days=10) + TICK * 2).members_added == 0
    assert remarks(calendar) == {"belong to a batch whose T has passed": ["bob", "cid"]}
    done = include(calendar, "bob")
    assert (done.member_key, done.batch_id) == ("Bob", calendar.batch().id)
    assert calendar.tick(TICK).members_added == 1
    assert calendar.members() == {"Ada": "active", "Bob": "active"}
    ((action, reason),) = calendar.sql("SELECT action, reason FROM audit_log WHERE subject_type = 'member'")
    assert (action, reason) == ("member.include", "it is meant")


def test_t5_a_runbook_may_allow_late_joiners(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(runbook(safeguards={"late_joiners": "allow"}))
    calendar.in_source("Ada")
    calendar.tick()
    calendar.in_source("Bob")
    assert calendar.tick(timedelta(days=11)).members_added == 1


def test_u3_what_no_tick_would_do_is_refused(calendar: Calendar) -> None:
    with pytest.raises(UnknownRow, match="has no row with a time for Ada"):
        include(calendar, "Ada")
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    with pytest.raises(NotIncluded, match="it is in batch 1 already"):
        include(calendar, "Ada")
    calendar.fail("Bob")
    with pytest.raises(NotIncluded, match="it has failed in batch 1"):
        include(calendar, "Bob")
    later = calendar.start + WEEK
    calendar.in_source("Ada", at=later)
    calendar.tick(timedelta(days=10) + TICK)
    with pytest.raises(NotIncluded, match="its batch 1 has started"):
        include(calendar, "Ada")
    calendar.in_source("Ada")
    calendar.end(BatchStatus.COMPLETED)
    calendar.tick(TICK)
    with pytest.raises(NotIncluded, match="batch 1 of its time has ended"):
        include(calendar, "Ada")
    assert calendar.sql("SELECT applied_at FROM member_inclusions") == []
