"""Rule T7, on real tables."""

from datetime import timedelta

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.states import BatchStatus
from matoolkit.store import Store
from tests.scheduler.calendar import TICK, Calendar, immediate


@pytest.fixture
def at_once(store: Store, clock: VirtualClock) -> Calendar:
    """A scheduler with a runbook whose members start at once."""
    calendar = Calendar(store, clock)
    calendar.publish(immediate())
    calendar.start = clock.now()
    return calendar


def test_t7_whoever_is_found_starts_in_the_interval_of_the_tick(at_once: Calendar) -> None:
    at_once.in_source("Ada", "Bob")
    tally = at_once.tick(timedelta(minutes=3))
    assert (tally.batches_created, tally.members_added, tally.phases_dispatched) == (1, 2, 1)
    assert at_once.members() == {"Ada": "active", "Bob": "active"}
    at_once.in_source("Cid")
    assert at_once.tick(timedelta(minutes=1)).members_added == 1
    assert "Cid" in at_once.members()
    at_once.in_source("Dan")
    at_once.tick(timedelta(minutes=1))
    assert at_once.members(at_once.start + TICK) == {"Dan": "active"}


def test_t7_absence_is_not_removal_and_data_is_refreshed(at_once: Calendar) -> None:
    at_once.in_source("Ada", "Bob")
    at_once.tick()
    at_once.gone("Ada")
    at_once.in_source("Bob", city="Rome")
    tally = at_once.tick(TICK)
    assert (tally.members_removed, tally.members_refreshed, tally.batches_held) == (0, 1, 0)
    assert at_once.members() == {"Ada": "active", "Bob": "active"}
    assert len(at_once.batches()) == 1


def test_t7_neither_a_lagging_source_nor_a_failure_loops(at_once: Calendar) -> None:
    at_once.in_source("Ada", "Bob")
    at_once.tick()
    at_once.fail("Bob")
    at_once.end(BatchStatus.COMPLETED)
    for _ in range(3):
        assert at_once.tick(TICK).batches_created == 0
    at_once.tick(timedelta(hours=24))
    assert at_once.members(at_once.clock.now()) == {"Ada": "active"}
    assert at_once.tick(timedelta(hours=48)).batches_created == 0


def test_t7_a_changed_row_is_taken_again(at_once: Calendar) -> None:
    at_once.in_source("Ada", "Bob")
    at_once.tick()
    at_once.fail("Bob")
    at_once.in_source("Bob", city="Rome")
    assert at_once.tick(TICK).members_added == 0
    at_once.end(BatchStatus.COMPLETED)
    at_once.tick(TICK)
    assert at_once.members(at_once.clock.now()) == {"Bob": "active"}


def test_t7_the_runbook_sets_the_cooldown(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(immediate(cooldown="1h"))
    calendar.start = clock.now()
    calendar.in_source("Ada")
    calendar.tick()
    calendar.end(BatchStatus.COMPLETED)
    assert calendar.tick(timedelta(minutes=55)).batches_created == 0
    assert calendar.tick(TICK).batches_created == 1


def test_t7_a_failed_batch_is_not_taken_again_until_the_row_changes(at_once: Calendar) -> None:
    at_once.in_source("Ada")
    at_once.tick()
    at_once.end(BatchStatus.FAILED)
    assert at_once.tick(timedelta(days=30)).batches_created == 0
    at_once.in_source("Ada", city="Rome")
    assert at_once.tick(TICK).batches_created == 1
