import pytest
from tests.conformance.store.world import World

from matoolkit.clock import VirtualClock
from matoolkit.store import Store


@pytest.fixture
def world(store: Store, clock: VirtualClock) -> World:
    return World(store, clock)
