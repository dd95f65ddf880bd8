import pytest

from matoolkit.clock import VirtualClock
from matoolkit.store import Store
from tests.store.world import World


@pytest.fixture
def world(store: Store, clock: VirtualClock) -> World:
    return World(store, clock)
