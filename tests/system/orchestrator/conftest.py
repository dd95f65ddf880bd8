"""A stage on each database."""

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.store import Store
from tests.stage import Stage


@pytest.fixture
def stage(store: Store, clock: VirtualClock) -> Stage:
    return Stage(store, clock)
