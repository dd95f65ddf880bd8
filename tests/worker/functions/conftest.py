from collections.abc import Iterator

import httpx
import pytest

from matoolkit.clock import SystemClock
from matoolkit.worker.clients import open_http
from matoolkit.worker.functions import passwords
from matoolkit.worker.tenant import Tenant, TenantServer
from tests.worker.functions.stage import MADE_UP, World
from tests.worker.functions.stage import world as new_world


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
def world(server: TenantServer, http: httpx.Client) -> Iterator[World]:
    with new_world(server, http) as world:
        yield world
