"""Signing in to Service Bus with the identity of the process, over TLS as it is on Azure."""

from pathlib import Path

import pytest

from matoolkit.bus.servicebus import Address, ServiceBus
from matoolkit.clock import SystemClock
from matoolkit.errors import BusSignInFailed
from tests.servers.certificates import make_certificate
from tests.servers.servicebus.fixtures import MISSING

from .messages import added, ids, receive

# The SDK asks for no other port if it encrypts.
PORT = 5671
TOKEN = "the-token-of-the-process"


class Identity:
    """Stands where azure-identity looks for a managed identity."""

    scopes: set[str] = set()  # noqa: RUF012 - the SDK makes the instances
    closed = 0

    async def get_token(self, *scopes: str, **_: object) -> object:
        from azure.core.credentials import AccessToken

        Identity.scopes.update(scopes)
        return AccessToken(TOKEN, int(SystemClock().now().timestamp()) + 3600)

    async def close(self) -> None:
        Identity.closed += 1


@pytest.mark.waits
def test_m8_the_identity_of_the_process_signs_in_and_its_rights_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("proton", reason=MISSING)
    from tests.servers.servicebus.server import ServiceBus as Server
    from tests.servers.servicebus.tokens import EVERYTHING

    certificate, trusted = make_certificate(tmp_path)
    monkeypatch.setattr("certifi.where", lambda: str(trusted))
    monkeypatch.setattr("azure.identity.aio.DefaultAzureCredential", Identity)
    try:
        server = Server(PORT, certificate=certificate).__enter__()
    except OSError:
        pytest.skip(f"another program listens on port {PORT}")
    bus = ServiceBus(Address(namespace="localhost"))
    try:
        server.lay_out()
        server.tokens.identities[TOKEN] = EVERYTHING
        bus.send([added(1)])
        pile = receive(bus)
        assert ids(pile) == ["member-added-1-0"]
        assert bus.complete_now(pile) == 1
        bus.stop()
        server.tokens.identities.clear()
        with pytest.raises(BusSignInFailed, match="localhost"):
            bus.send([added(2)])
    finally:
        bus.stop()
        server.__exit__(None, None, None)
    assert {scope.replace("//.", "/.") for scope in Identity.scopes} == {"https://servicebus.azure.net/.default"}
    assert Identity.closed == 2
