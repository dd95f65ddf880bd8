"""Rules T5 and T6, on real tables."""

from datetime import timedelta

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.store import Store
from tests.conformance.scheduler.calendar import Calendar


@pytest.fixture
def calendar(store: Store, clock: VirtualClock) -> Calendar:
    made = Calendar(store, clock)
    made.publish()
    return made


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
