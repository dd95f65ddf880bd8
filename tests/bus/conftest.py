"""A bus on each database, with a virtual clock."""

import pytest

from matoolkit.bus.sql import SqlBus
from matoolkit.clock import VirtualClock
from matoolkit.store import Store


@pytest.fixture
def bus(store: Store, clock: VirtualClock) -> SqlBus:
    return SqlBus(store)
