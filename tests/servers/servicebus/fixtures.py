"""A Service Bus for tests: one server for the whole run, as good as new for each test."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus

MISSING = "python-qpid-proton is not installed: `make unit` builds it where there is a C compiler"


@pytest.fixture(scope="session")
def service_bus_server(certificate: tuple[Path, Path]) -> Iterator["ServiceBus"]:
    pytest.importorskip("proton", reason=MISSING)
    from tests.servers.servicebus.server import ServiceBus

    with ServiceBus(certificate=certificate[0]) as server:
        yield server
    server.forget_broken()


@pytest.fixture
def service_bus(
    service_bus_server: "ServiceBus", certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> "ServiceBus":
    """An empty namespace on the machine's clock; `reset(clock)` gives it another."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[1]))  # for the administration client
    service_bus_server.reset()
    return service_bus_server
