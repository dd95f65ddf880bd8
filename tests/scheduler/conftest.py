"""What the tests of ticks share."""

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.store import Store
from tests.scheduler.calendar import Calendar


@pytest.fixture
def calendar(store: Store, clock: VirtualClock) -> Calendar:
    """A scheduler with one automated runbook."""
    made = Calendar(store, clock)
    made.publish()
    return made
