"""Signing in to Azure SQL by token, over TDS, against a server that checks what a token is for and when it ends.

The tokens come from servers that play Entra, and the managed identity of an Azure host. None of this has met a real
Azure.
"""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from matoolkit.clock import VirtualClock
from matoolkit.errors import InvalidDatabaseUrl, SignInRefused, StoreError, StoreUnavailable
from matoolkit.store import Store, open_store
from tests.databases import NOON
from tests.servers.entra import Entra, ManagedIdentity, token_for
from tests.servers.http import served
from tests.servers.tds import Organisation, Result

AUDIENCE = "https://database.windows.net"
CLIENT_ID = "11111111-2222-3333-4444-555555555555"
VERSION = "Microsoft SQL Azure (RTM) - 12.0.2000.8"
HOUR = timedelta(hours=1)

Opening = Callable[..., Store]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture(autouse=True)
def _no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def azure(organisation: Organisation, clock: VirtualClock) -> Iterator[Opening]:
    """A server that takes tokens for Azure SQL only, and what opens a store on it."""
    organisation.answer_all_else(Result([("", "nvarchar")], [("READ COMMITTED",)]))
    for question in ("select @@version", "SELECT @@VERSION"):
        organisation.answer(question, Result([("", "nvarchar")], [(VERSION,)]))
    at(organisation, clock)
    opened: list[Store] = []

    def open_azure(name: str = "", options: str = "") -> Store:
        url = f"mssql://{name}localhost:{organisation.port()}/state{options}"
        opened.append(open_store(url, clock=clock))
        return opened[-1]

    yield open_azure
    for store in opened:
        store.close()


def at(organisation: Organisation, clock: VirtualClock) -> None:
    organisation.accept_tokens_for(AUDIENCE, clock.now().timestamp())


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch, clock: VirtualClock) -> Iterator[ManagedIdentity]:
    identity = ManagedIdentity(int((clock.now() + HOUR).timestamp()), make=token_for)
    with served(identity) as address:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{address}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "header-secret")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        yield identity


def work(store: Store) -> None:
    with store.transaction() as tx:
        tx.values(text("SELECT 1 AS work"))


def test_a_managed_identity_signs_in_with_a_token_for_azure_sql(
    organisation: Organisation, azure: Opening, identity: ManagedIdentity
) -> None:
    work(azure())
    assert (identity.resources, identity.client_ids) == ([AUDIENCE], [None])
    assert len(organisation.tokens_shown()) == 1


def test_a_client_id_chooses_one_of_several_managed_identities(azure: Opening, identity: ManagedIdentity) -> None:
    work(azure(name=f"{CLIENT_ID}@"))
    assert identity.client_ids == [CLIENT_ID]


def be_a_workload(monkeypatch: pytest.MonkeyPatch, entra: Entra, folder: Path, trusted: Path, *, tenant: str) -> None:
    """Let this process have a workload identity of a tenant."""
    (folder / "federated").write_text("assertion")
    for name, value in {
        "AZURE_TENANT_ID": tenant,
        "AZURE_CLIENT_ID": CLIENT_ID,
        "AZURE_FEDERATED_TOKEN_FILE": str(folder / "federated"),
        "AZURE_AUTHORITY_HOST": entra.address,
        "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential",
        "REQUESTS_CA_BUNDLE": str(trusted),
    }.items():
        monkeypatch.setenv(name, value)


def test_a_workload_identity_signs_in(azure: Opening, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ends_at = int((NOON + HOUR).timestamp())
    entra = Entra(access_token=lambda number: token_for(AUDIENCE, number, ends_at))
    with entra.served(tmp_path) as trusted:
        be_a_workload(monkeypatch, entra, tmp_path, trusted, tenant="contoso")
        work(azure())
    (asked,) = entra.asked("/token")
    assert (asked["scope"], asked["client_id"]) == ([f"{AUDIENCE}/.default"], [CLIENT_ID])
    assert asked["client_assertion"] == ["assertion"]


def test_the_account_of_the_azure_cli_signs_in(
    azure: Opening, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: VirtualClock
) -> None:
    ends_at = int((clock.now() + HOUR).timestamp())
    said = {
        "accessToken": token_for(AUDIENCE, 1, ends_at),
        "expires_on": ends_at,
        "expiresOn": "2030-01-01 12:00:00.000000",
    }
    program = tmp_path / "az"
    program.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\necho '{json.dumps(said)}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    work(azure())
    assert AUDIENCE in (tmp_path / "asked").read_text()


def test_connections_share_a_token_until_shortly_before_it_ends(
    organisation: Organisation, azure: Opening, identity: ManagedIdentity
) -> None:
    store = azure()
    with store.transaction(), store.transaction():
        pass
    assert len(organisation.tokens_shown()) == 2
    assert len(identity.resources) == 1


def test_a_pool_renews_its_token_and_replaces_connections_whose_token_has_ended(
    organisation: Organisation, azure: Opening, identity: ManagedIdentity, clock: VirtualClock
) -> None:
    store = azure()
    work(store)
    for hours in range(1, 6):
        clock.advance(HOUR - timedelta(seconds=1))
        at(organisation, clock)
        work(store)
        assert len(organisation.tokens_shown()) == hours, "its token has not ended"
        clock.advance(timedelta(seconds=1))
        at(organisation, clock)
        identity.expires_on = int((clock.now() + HOUR).timestamp())
        work(store)
        assert len(organisation.tokens_shown()) == len(set(organisation.tokens_shown())) == hours + 1
    assert organisation.open_connections() == 1


def test_a_token_that_the_server_refused_is_not_shown_again(
    organisation: Organisation, azure: Opening, identity: ManagedIdentity, clock: VirtualClock
) -> None:
    store = azure()
    organisation.accept_tokens_for("https://other", clock.now().timestamp())
    with pytest.raises(SignInRefused):
        work(store)
    at(organisation, clock)
    work(store)
    assert len(set(organisation.tokens_shown())) == len(organisation.tokens_shown()) == 2


def failure(store: Store, kind: type[StoreError], caplog: pytest.LogCaptureFixture, secrets: list[str]) -> StoreError:
    with caplog.at_level(logging.DEBUG), pytest.raises(kind) as failed:
        work(store)
    said = f"{failed.value} {failed.value.hint} {failed.getrepr(chain=True)} {caplog.text}"
    assert not [secret for secret in secrets if secret in said]
    return failed.value


def test_m6_a_refused_token_is_no_passing_error_says_what_to_do_and_does_not_show_it(
    organisation: Organisation,
    azure: Opening,
    identity: ManagedIdentity,
    clock: VirtualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    organisation.accept_tokens_for("https://other", clock.now().timestamp())
    shown = token_for(AUDIENCE, 1, identity.expires_on)
    error = failure(azure(), SignInRefused, caplog, [shown, "header-secret"])
    assert organisation.tokens_shown() == [shown]
    assert (error.code, error.transient, error.spares_work) == ("DB401", False, True)
    assert "Login failed" in error.message
    assert "has a user for it" in str(error.hint)


def test_an_identity_that_entra_does_not_know_is_no_passing_error(
    organisation: Organisation, azure: Opening, identity: ManagedIdentity, caplog: pytest.LogCaptureFixture
) -> None:
    identity.is_unknown = True
    error = failure(azure(), SignInRefused, caplog, ["header-secret"])
    assert error.message.startswith(f"no token for {AUDIENCE}/.default: ManagedIdentityCredential")
    assert "managed identity" in str(error.hint)
    assert not organisation.tokens_shown()


def test_a_wrong_tenant_is_no_passing_error(azure: Opening, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entra = Entra()
    with entra.served(tmp_path) as trusted:
        be_a_workload(monkeypatch, entra, tmp_path, trusted, tenant="fabrikam")
        with pytest.raises(SignInRefused, match="AADSTS90002"):
            work(azure())


@pytest.mark.parametrize("status", [429, 503])
def test_m6_an_endpoint_that_is_busy_or_broken_is_a_passing_error(
    azure: Opening, identity: ManagedIdentity, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azure.core.pipeline.transport.RequestsTransport.sleep", lambda *_: None)
    store, identity.status = azure(), status
    with pytest.raises(StoreUnavailable, match="no token for") as failed:
        work(store)
    assert failed.value.transient
    assert "work resumes" in str(failed.value.hint)
    identity.status = 200
    work(store)


def test_m6_an_endpoint_that_cannot_be_reached_is_a_passing_error(
    azure: Opening, identity: ManagedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azure.core.pipeline.transport.RequestsTransport.sleep", lambda *_: None)
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:9/msi/token")
    with pytest.raises(StoreUnavailable, match="no token for") as failed:
        work(azure())
    assert failed.value.transient


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mssql://host/state?Authentication=ActiveDirectoryMSI", "leave Authentication out"),
        (f"mssql://{CLIENT_ID}@host/state?authentication=ActiveDirectoryDefault", "leave Authentication out"),
        ("mssql://matoolkit@host/state", "CLIENT-ID"),
        ("mssql://host/state?Encrypt=no", "leave out Encrypt"),
        ("mssql://host/state?TrustServerCertificate=Yes", "leave out Encrypt"),
    ],
)
def test_an_address_that_would_sign_in_wrongly_is_refused(url: str, said: str) -> None:
    with pytest.raises(InvalidDatabaseUrl) as refused:
        open_store(url)
    assert said in str(refused.value.hint)


@pytest.mark.parametrize(
    "url", ["mssql://me:hunter2@host/state?Encrypt=no", "mssql://host/state?Trusted_Connection=yes"]
)
def test_an_address_with_another_sign_in_is_left_to_the_driver(url: str) -> None:
    store = open_store(url)
    assert store.url == make_url(url).set(drivername="mssql+mssqlpython")
    store.close()
