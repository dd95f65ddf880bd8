"""A worker on each database, with a virtual clock."""

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.store import Store
from tests.workshop import Workshop


@pytest.fixture
def workshop(store: Store, clock: VirtualClock) -> Workshop:
    return Workshop(store, clock)
