from collections.abc import Iterator

import httpx
import pytest

from matoolkit.clock import SystemClock
from matoolkit.worker.clients import open_http
from matoolkit.worker.functions import passwords
from matoolkit.worker.tenant import Tenant, TenantServer
from tests.worker.functions.office import MADE_UP, Office
from tests.worker.functions.office import office as new_office


@pytest.fixture(scope="session")
def server() -> Iterator[TenantServer]:
    """One server for all tests; each puts a tenant of its own there."""
    with TenantServer(Tenant(SystemClock())) as server:
        yield server


@pytest.fixture(scope="session")
def http() -> Iterator[httpx.Client]:
    with open_http(30, use_proxies=False) as http:
        yield http


@pytest.fixture(scope="session")
def impatient_http() -> Iterator[httpx.Client]:
    """Real time passes until it gives up: as little as a busy machine can bear."""
    with open_http(0.05, use_proxies=False) as http:
        yield http


@pytest.fixture(autouse=True)
def _known_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the password that is made up be one that a test can look for."""
    monkeypatch.setattr(passwords, "make_password", lambda: MADE_UP)


@pytest.fixture
def office(server: TenantServer, http: httpx.Client) -> Iterator[Office]:
    with new_office(server, http) as office:
        yield office
