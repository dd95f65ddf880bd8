"""A Service Bus for tests: one server for the whole run, as good as new for each test."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus

MISSING = "python-qpid-proton is not installed: `make unit` builds it where there is a C compiler"


@pytest.fixture(scope="session")
def service_bus_server() -> Iterator["ServiceBus"]:
    pytest.importorskip("proton", reason=MISSING)
    from tests.servers.servicebus.server import ServiceBus

    with ServiceBus() as server:
        yield server


@pytest.fixture
def service_bus(service_bus_server: "ServiceBus") -> "ServiceBus":
    """An empty namespace on the machine's clock; `reset(clock)` gives it another."""
    service_bus_server.reset()
    return service_bus_server
