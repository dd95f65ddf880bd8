"""Signing in to Service Bus with the identity of the process, over TLS as it is on Azure."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.servicebus import Address, ServiceBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.clock import SystemClock
from matoolkit.errors import BusSignInFailed
from tests.servers.certificates import make_certificate
from tests.servers.entra import ManagedIdentity
from tests.servers.http import served
from tests.servers.servicebus.fixtures import MISSING

from .messages import added, ids, receive

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus as Server

pytestmark = pytest.mark.waits

# The SDK asks for no other port if it encrypts.
PORT = 5671
TOKEN = "the-token-of-the-process"


class Identity:
    """Stands where azure-identity looks for a managed identity."""

    scopes: set[str] = set()  # noqa: RUF012 - the SDK makes the instances
    closed = 0

    def __init__(self, *, authority: str) -> None:
        assert authority == "https://login.microsoftonline.com"

    async def get_token(self, *scopes: str, **_: object) -> object:
        from azure.core.credentials import AccessToken

        Identity.scopes.update(scopes)
        return AccessToken(TOKEN, int(SystemClock().now().timestamp()) + 3600)

    async def close(self) -> None:
        Identity.closed += 1


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Server]":
    pytest.importorskip("proton", reason=MISSING)
    from tests.servers.servicebus.server import ServiceBus as Server

    certificate, trusted = make_certificate(tmp_path)
    monkeypatch.setattr("certifi.where", lambda: str(trusted))
    try:
        server = Server(PORT, certificate=certificate).__enter__()
    except OSError:
        pytest.skip(f"another program listens on port {PORT}")
    server.lay_out()
    yield server
    server.__exit__(None, None, None)
    server.forget_broken()


@pytest.fixture
def bus(server: "Server") -> Iterator[ServiceBus]:
    bus = ServiceBus(Address(namespace="localhost"))
    yield bus
    bus.stop()


def test_m8_the_identity_of_the_process_signs_in_and_its_rights_decide(
    server: "Server", bus: ServiceBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.servers.servicebus.tokens import EVERYTHING

    monkeypatch.setattr("azure.identity.aio.DefaultAzureCredential", Identity)
    server.tokens.identities[TOKEN] = EVERYTHING
    bus.send([added(1)])
    pile = receive(bus)
    assert ids(pile) == ["member-added-1-0"]
    assert bus.complete_now(pile) == 1
    bus.stop()
    server.tokens.identities.clear()
    with pytest.raises(BusSignInFailed, match="localhost"):
        bus.send([added(2)])
    bus.stop()
    assert {scope.replace("//.", "/.") for scope in Identity.scopes} == {"https://servicebus.azure.net/.default"}
    assert Identity.closed == 2


def test_an_identity_that_gets_no_token_is_told_with_its_reason_and_what_to_do(
    bus: ServiceBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: the SDK wraps the refusal of Entra, and it was told as a bus that cannot be reached."""
    with served(ManagedIdentity(0, is_unknown=True)) as address:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{address}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "h")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        uses: list[Callable[[], object]] = [
            lambda: bus.send([added(1)]),
            lambda: bus.receive(EVENTS_OF_ORCHESTRATOR, 1),
        ]
        for use in uses:
            with pytest.raises(
                BusSignInFailed, match=r"localhost does not let this process in: .*not found"
            ) as refused:
                use()
            assert refused.value.transient
            assert "managed identity" in (refused.value.hint or "")
