"""Tokens, from Entra by way of a server that plays the managed identity of an Azure host."""

import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.errors import SourceFailed
from matoolkit.sources.databricks import ENTRA_SCOPE
from matoolkit.sources.tokens import GivenToken, entra_tokens
from tests.databases import NOON
from tests.servers.entra import ManagedIdentity
from tests.servers.http import served

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch, clock: VirtualClock) -> Iterator[ManagedIdentity]:
    identity = ManagedIdentity(expires_on=int((clock.now() + HOUR).timestamp()))
    with served(identity) as address:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{address}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "header-secret")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        yield identity


def test_r4_a_token_is_asked_for_once_and_for_the_sources_own_scope(
    identity: ManagedIdentity, clock: VirtualClock
) -> None:
    tokens = entra_tokens("https://org.crm4.dynamics.com/.default", clock)
    assert [tokens.token(), tokens.token()] == ["token-1", "token-1"]
    assert identity.resources == ["https://org.crm4.dynamics.com"]


def test_r4_databricks_tokens_are_for_its_application(identity: ManagedIdentity, clock: VirtualClock) -> None:
    entra_tokens(ENTRA_SCOPE, clock).token()
    assert identity.resources == ["2ff814a6-3304-4ab8-85cb-cd0e6f879c1d"]


def test_a_token_that_is_about_to_end_or_was_refused_is_replaced(
    identity: ManagedIdentity, clock: VirtualClock
) -> None:
    tokens = entra_tokens("https://org/.default", clock)
    assert tokens.token() == "token-1"
    assert tokens.token(refused="token-1") == "token-2"
    clock.advance(timedelta(minutes=54))
    assert tokens.token() == "token-2"
    clock.advance(timedelta(minutes=2))
    assert tokens.token() == "token-3"


def test_a_process_without_identity_is_told_so_with_a_hint(identity: ManagedIdentity, clock: VirtualClock) -> None:
    identity.is_unknown = True
    with pytest.raises(SourceFailed, match=r"no token for https://org/\.default") as failed:
        entra_tokens("https://org/.default", clock).token()
    assert "managed identity" in str(failed.value.hint)
    assert "header-secret" not in str(failed.getrepr(chain=True))


def test_without_the_library_the_hint_names_it(monkeypatch: pytest.MonkeyPatch, clock: VirtualClock) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(SourceFailed) as failed:
        entra_tokens("https://org/.default", clock).token()
    assert failed.value.hint == "install matoolkit[azure]"


def test_a_given_token_has_no_fresher_one() -> None:
    assert GivenToken("x").token(refused="x") == "x"
