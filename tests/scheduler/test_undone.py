"""Rules U2 and U3, on real tables: ticks after somebody was undone, excluded or included again."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from matoolkit.admin.excluding import exclude_member
from matoolkit.admin.including import include_member
from matoolkit.admin.undoing import undo_members
from matoolkit.admin.undoplan import Wanted
from matoolkit.clock import VirtualClock
from matoolkit.domain.states import BatchStatus
from matoolkit.scheduler import enrolling
from matoolkit.scheduler.packing import packed
from matoolkit.store import Store
from tests.scheduler.calendar import TICK, Calendar, immediate

WEEK = timedelta(days=7)


def undo(calendar: Calendar, *keys: str) -> None:
    wanted = Wanted(member_keys=keys)
    batch = calendar.batch().id
    undo_members(calendar.store, calendar.bus, batch, wanted, by="ann", reason="wrong wave")


def exclude(calendar: Calendar, key: str, *, undo: bool = False) -> None:
    exclude_member(calendar.store, calendar.bus, "wave", key, by="ann", reason="on leave", undo=undo)


def include(calendar: Calendar, key: str) -> Any:
    return include_member(calendar.store, "wave", key, by="ann", reason=None, now=calendar.clock.now())


def seen_off(calendar: Calendar) -> None:
    """Let the orchestrator have done its part."""
    calendar.change("UPDATE batch_members SET seen_off_at = removed_at WHERE removed_at IS NOT NULL")


def samples(calendar: Calendar) -> dict[str, list[str]]:
    return {remark.seen.name: list(remark.samples) for remark in calendar.tick(TICK).remarks}


def test_u2_who_was_undone_does_not_return_and_does_not_count_in_the_guard(calendar: Calendar) -> None:
    people = [f"u{number}" for number in range(10)]
    calendar.in_source(*people)
    calendar.tick()
    undo(calendar, *people[:5])
    assert samples(calendar) == {"UNDONE": people[:5]}
    calendar.gone(*people[5:7])
    tally = calendar.tick(TICK)
    assert (tally.members_removed, tally.members_returned, tally.batches_held) == (2, 0, 0)


def test_u2_a_new_time_joins_afresh_once_the_undo_is_over(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.change("UPDATE batch_members SET worker_data_json = '{\"Id\": 1}'")
    undo(calendar, "Bob")
    later = calendar.start + WEEK
    calendar.in_source("Bob", at=later)
    assert samples(calendar) == {"WAITS_FOR_ITS_JOBS": ["bob"]}
    seen_off(calendar)
    assert calendar.tick(TICK).members_added == 1
    assert calendar.member("Bob", later).worker_data_json == "{}"
    assert calendar.batch(later).held_at is None, "it is not a repeat"


def test_u2_include_lets_it_in_again_without_its_outputs_once_the_undo_is_over(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.change("UPDATE batch_members SET worker_data_json = '{\"Id\": 1}'")
    undo(calendar, "Bob")
    calendar.tick(TICK)
    include(calendar, "Bob")
    assert samples(calendar) == {"WAITS_FOR_ITS_JOBS": ["bob"]}
    assert calendar.member("Bob").worker_data_json == '{"Id": 1}', "the steps that undo may need them"
    seen_off(calendar)
    assert calendar.tick(TICK).members_returned == 1
    member = calendar.member("Bob")
    assert (member.status, member.epoch, member.worker_data_json) == ("active", 2, "{}")
    assert member.undone_at is None


def test_u2_who_was_undone_stays_out_when_its_batch_moves_on(calendar: Calendar) -> None:
    old = calendar.start
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    undo(calendar, "Bob")
    calendar.start = old + WEEK
    calendar.in_source("Ada")
    assert calendar.tick(TICK).batches_rescheduled == 1
    assert samples(calendar) == {"TAKEN_BEFORE": ["bob"]}
    assert len(calendar.batches()) == 1


def test_u2_a_row_of_an_ended_batch_is_ignored(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.end(BatchStatus.COMPLETED)
    undo(calendar, "Bob")
    assert "TIME_HAS_ENDED" in samples(calendar)
    assert len(calendar.batches()) == 1


def test_u3_who_is_excluded_is_neither_added_nor_missed(calendar: Calendar) -> None:
    exclude(calendar, "bob")
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    assert calendar.members() == {"Ada": "active"}
    assert samples(calendar) == {"EXCLUDED": ["bob"]}
    include(calendar, "BOB")
    assert calendar.tick(TICK).members_added == 1


def test_u3_exclusion_outlives_versions_and_times(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    exclude(calendar, "Bob")
    later = calendar.start + WEEK
    calendar.in_source("Bob", at=later)
    calendar.publish()
    assert samples(calendar) == {"EXCLUDED": ["bob"]}
    assert calendar.members() == {"Ada": "active", "Bob": "removed"}
    assert len(calendar.batches()) == 1
    seen_off(calendar)
    calendar.change("UPDATE batch_members SET worker_data_json = '{\"Id\": 1}'")
    include(calendar, "Bob")
    assert calendar.tick(TICK).members_added == 1
    assert calendar.member("Bob", later).worker_data_json == '{"Id": 1}', "what was done stayed"


def test_u3_included_again_it_goes_on_in_its_batch(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    exclude(calendar, "Bob")
    done = include(calendar, "Bob")
    assert (done.was_excluded, done.batch_id) == (True, calendar.batch().id)
    assert calendar.tick(TICK).members_returned == 1
    assert calendar.member("Bob").epoch == 2


@contextmanager
def between_reading_and_writing(monkeypatch: pytest.MonkeyPatch, act: Any) -> Iterator[None]:
    """Let a person act after a tick has decided and before it writes."""

    def late(*given: Any) -> Any:
        act()
        return packed(*given)

    with monkeypatch.context() as patch:
        patch.setattr(enrolling, "packed", late)
        yield


def test_u3_nobody_joins_who_is_excluded_at_that_moment(calendar: Calendar, monkeypatch: pytest.MonkeyPatch) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    calendar.in_source("Bob")
    with between_reading_and_writing(monkeypatch, lambda: exclude(calendar, "Bob")):
        calendar.tick(TICK)
    assert calendar.members() == {"Ada": "active"}


def test_u2_nobody_moves_who_is_undone_at_that_moment(calendar: Calendar, monkeypatch: pytest.MonkeyPatch) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.in_source("Bob", at=calendar.start + WEEK)
    with between_reading_and_writing(monkeypatch, lambda: undo(calendar, "Bob")):
        calendar.tick(TICK)
    assert calendar.members() == {"Ada": "active", "Bob": "removed"}
    assert len(calendar.batches()) == 1


def test_t7_u2_who_was_undone_starts_again_when_its_row_changes(store: Store, clock: VirtualClock) -> None:
    at_once = Calendar(store, clock)
    at_once.publish(immediate())
    at_once.start = clock.now()
    at_once.in_source("Ada", "Bob")
    at_once.tick()
    undo(at_once, "Bob")
    seen_off(at_once)
    for _ in range(2):
        assert at_once.tick(TICK).members_added == 0
    at_once.in_source("Bob", city="Rome")
    assert at_once.tick(TICK).members_added == 1


def test_t7_u3_who_was_excluded_goes_on_when_it_is_included_again(store: Store, clock: VirtualClock) -> None:
    at_once = Calendar(store, clock)
    at_once.publish(immediate())
    at_once.start = clock.now()
    at_once.in_source("Ada", "Bob")
    at_once.tick()
    exclude(at_once, "Bob")
    seen_off(at_once)
    assert samples(at_once) == {"EXCLUDED": ["bob"]}
    include(at_once, "Bob")
    assert at_once.tick(TICK).members_added == 1
