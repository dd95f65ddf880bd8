"""A bus on each database, and one on Service Bus, with a virtual clock."""

from collections.abc import Iterator

import pytest

from matoolkit.bus.servicebus import ServiceBus
from matoolkit.bus.sql import SqlBus
from matoolkit.clock import VirtualClock
from matoolkit.store import Store
from tests.databases import SERVICE_BUS
from tests.servers.servicebus.fixtures import MISSING

from .namespace import Namespace


@pytest.fixture(scope="session")
def shared_namespace() -> Iterator[Namespace]:
    pytest.importorskip("proton", reason=MISSING)
    from tests.servers.servicebus.server import ServiceBus as Server

    with Server() as server:
        namespace = Namespace(server)
        yield namespace
        namespace.bus.stop()
    server.forget_broken()


@pytest.fixture
def namespace(shared_namespace: Namespace, clock: VirtualClock) -> Namespace:
    """Every entity that the tests need, and no message."""
    shared_namespace.emptied(clock)
    return shared_namespace


@pytest.fixture
def bus(request: pytest.FixtureRequest, store: Store, clock: VirtualClock) -> SqlBus | ServiceBus:
    if request.node.callspec.params["database"] == SERVICE_BUS:
        found: Namespace = request.getfixturevalue("namespace")
        return found.bus
    return SqlBus(store)
