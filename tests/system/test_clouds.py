"""One setting, and everything goes to another of Microsoft's clouds: seen by the servers that are asked."""

import asyncio
import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.requests import Request as Asked

from matoolkit.cli.program import run
from matoolkit.clock import SystemClock
from matoolkit.clouds import CLOUDS, Cloud
from matoolkit.errors import InvalidDatabaseUrl, InvalidSettings, NotSignedIn, SourceFailed
from matoolkit.hosting.api import sign_in_for
from matoolkit.runbook.model import DataSource
from matoolkit.settings import Settings, WorkerSettings, load_settings
from matoolkit.system import open_database, service_bus_address, source_opener
from matoolkit.worker.shell.choice import open_shell
from matoolkit.worker.shell.pool import Connection
from tests.servers.certificates import make_certificate
from tests.servers.entra import Entra
from tests.servers.http import Answer
from tests.servers.internet import Internet, reached

TENANT = "11111111-2222-4333-8444-555555555555"
SERVICE_BUS = "https://servicebus.azure.net//.default"
DATABRICKS = "2ff814a6-3304-4ab8-85cb-cd0e6f879c1d"
# Answers every script with what it was connected to.
PWSH = f"""#!{sys.executable}
import json, sys
connected = []
for line in sys.stdin:
    request = json.loads(line)
    if "connect" in request:
        connected.append([request["connect"], request["environment"]])
    print(json.dumps({{"id": request["id"], "result": connected}}), flush=True)
"""
# The identity of the process, as azure-identity finds it first.
IDENTITY = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": "the-process", "AZURE_CLIENT_SECRET": "s"}
WORKER = {
    "KEY_VAULT_NAME": "kv",
    "TARGET_TENANT_ID": TENANT,
    "APP_ID": "the-worker",
    "CERT_NAME": "certificate",
    "TARGET_ORGANIZATION": "contoso.example",
}
every_cloud = pytest.mark.parametrize("cloud", CLOUDS.values(), ids=CLOUDS)


def host(address: str) -> str:
    return address.removeprefix("https://")


def servers(cloud: Cloud) -> dict[str, str]:
    """Name a server of each kind."""
    return {
        "authority": host(cloud.authority),
        "graph": host(cloud.graph),
        "exchange": host(cloud.exchange),
        "vault": f"kv.{cloud.key_vault}",
        "sql": f"contoso.{cloud.sql}",
        "bus": f"contoso.{cloud.service_bus}",
        "dataverse": f"contoso.crm.{cloud.dataverse}",
        "databricks": f"adb-1.2.{cloud.databricks}",
    }


@pytest.fixture
def internet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Internet]:
    made = Internet({host(one.authority) for one in CLOUDS.values()}, Entra(TENANT))
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    names = {name for one in CLOUDS.values() for name in servers(one).values()}
    with reached(made, names, tmp_path):
        yield made


@pytest.fixture
def certificate(tmp_path: Path) -> str:
    """A certificate with its key as PEM, as a Key Vault holds it."""
    folder = tmp_path / "worker"
    folder.mkdir()
    return make_certificate(folder, is_rsa=True)[0].read_text()


def configure(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@every_cloud
def test_w1_a_worker_goes_to_its_cloud_and_nowhere_else(
    cloud: Cloud,
    internet: Internet,
    certificate: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = servers(cloud)
    internet.answers[there["vault"]] = lambda _: Answer({"value": certificate})
    configure(monkeypatch, MATOOLKIT_CLOUD=cloud.name, **WORKER)
    run(("worker", "check", "--json"))
    found = {(one["kind"], one["name"]): one["outcome"] for one in json.loads(capsys.readouterr().out)}
    assert found["sign-in", "Graph"] == found["sign-in", "Exchange"] == "ok"
    assert found["read", "user"] == found["read", "recipient"] == "ok"
    assert set(internet.hosts) == {there[name] for name in ("authority", "vault", "graph", "exchange")}
    assert set(internet.scopes) == {
        f"https://{cloud.key_vault}/.default",
        f"{cloud.graph}/.default",
        f"{cloud.exchange}/.default",
    }


def test_w1_the_tenant_may_be_in_another_cloud_than_the_bus_and_the_vault(
    internet: Internet, certificate: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = servers(CLOUDS["public"]), servers(CLOUDS["usgov"])
    internet.answers[here["vault"]] = lambda _: Answer({"value": certificate})
    # Where the identity of the process signs in does not say where the tenant is.
    configure(monkeypatch, TARGET_CLOUD="usgov", AZURE_AUTHORITY_HOST=CLOUDS["public"].authority, **WORKER)
    run(("worker", "check", "--json"))
    assert '"failed"' not in capsys.readouterr().out
    asked = list(dict.fromkeys(internet.hosts))
    assert asked == [here["authority"], here["vault"], there["authority"], there["graph"], there["exchange"]]


@pytest.mark.parametrize(
    ("target", "graph", "exchange"),
    [
        ("public", "Global", "O365Default"),
        ("usgov", "USGov", "O365USGovGCCHigh"),
        ("usgovdod", "USGovDoD", "O365USGovDoD"),
        ("china", "China", "O365China"),
    ],
)
def test_w5_powershell_is_told_the_name_of_the_cloud(
    target: str, graph: str, exchange: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: str
) -> None:
    program = tmp_path / "pwsh"
    program.write_text(PWSH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    settings = load_settings(WorkerSettings, {"MATOOLKIT_CLOUD": target, **WORKER})
    shell = open_shell(settings, lambda _: certificate, SystemClock())
    assert shell is not None
    try:
        assert shell.run_script(Path("any.ps1"), {}, tuple(Connection)) == [["Graph", graph], ["Exchange", exchange]]
    finally:
        shell.close()


def test_w5_the_script_of_a_session_hands_the_name_on() -> None:
    script = files("matoolkit.worker.shell").joinpath("session.ps1").read_text()
    (graph,) = [line for line in script.splitlines() if "Connect-MgGraph" in line]
    (exchange,) = [line for line in script.splitlines() if "Connect-ExchangeOnline" in line]
    assert " -Environment $request.environment " in graph
    assert " -ExchangeEnvironmentName $request.environment " in exchange


@every_cloud
def test_a2_the_api_takes_keys_and_issuers_of_its_cloud(cloud: Cloud, internet: Internet) -> None:
    key = rsa.generate_private_key(65537, 2048)
    public = {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "kid": "one", "use": "sig"}
    internet.answers[host(cloud.authority)] = lambda _: Answer({"keys": [public]})
    given = {"MATOOLKIT_ENTRA_TENANT_ID": TENANT, "MATOOLKIT_ENTRA_CLIENT_ID": "api"}
    settings = load_settings(Settings, {"MATOOLKIT_CLOUD": cloud.name, **given})
    entra = sign_in_for(settings, "0.0.0.0", SystemClock())

    def name_of(issuer: str) -> str:
        now = SystemClock().now().timestamp()
        claims = {"aud": "api", "iss": issuer, "tid": TENANT, "nbf": now - 10, "exp": now + 600}
        token = jwt.encode({**claims, "name": "Ann", "scp": "x"}, key, "RS256", headers={"kid": "one"})
        headers = [(b"authorization", f"Bearer {token}".encode())]
        return entra.identity(Asked({"type": "http", "headers": headers})).name

    assert name_of(f"{cloud.authority}/{TENANT}/v2.0") == name_of(f"{cloud.sts}/{TENANT}/") == "Ann"
    assert internet.hosts == [host(cloud.authority)]
    for other in {one.authority for one in CLOUDS.values()} - {cloud.authority}:
        with pytest.raises(NotSignedIn, match="another issuer"):
            name_of(f"{other}/{TENANT}/v2.0")


@every_cloud
def test_a3_people_and_machines_sign_in_at_the_authority_of_their_cloud(
    cloud: Cloud, internet: Internet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(
        monkeypatch, MATOOLKIT_TENANT_ID=TENANT, MATOOLKIT_CLIENT_ID="cli", MATOOLKIT_API_URL="http://127.0.0.1:1"
    )
    assert run(("config", "set", "cloud", cloud.name)) == 0
    assert run(("runbook", "list")) != 0, "nobody listens there"
    assert internet.scopes == ["cli/.default"], "the machine's identity asked for a token"
    assert run(("auth", "login")) == 0
    assert set(internet.hosts) == {host(cloud.authority)}
    capsys.readouterr()


def test_a3_an_authority_that_is_given_wins(internet: Internet, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, MATOOLKIT_TENANT_ID=TENANT, MATOOLKIT_CLIENT_ID="cli", MATOOLKIT_CLOUD="usgov")
    configure(monkeypatch, MATOOLKIT_AUTHORITY=CLOUDS["china"].authority)
    assert run(("auth", "login")) == 0
    assert set(internet.hosts) == {host(CLOUDS["china"].authority)}


@every_cloud
def test_m8_the_bus_is_signed_in_to_and_managed_in_its_cloud(
    cloud: Cloud, internet: Internet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace = servers(cloud)["bus"]
    configure(monkeypatch, MATOOLKIT_CLOUD=cloud.name, MATOOLKIT_SERVICE_BUS_NAMESPACE=namespace)

    async def signed_in() -> str:
        identity = service_bus_address(load_settings(Settings)).credential()
        assert identity is not None
        async with identity:
            return (await identity.get_token(SERVICE_BUS)).token

    assert asyncio.run(signed_in())
    assert internet.hosts == [host(cloud.authority)]
    internet.answers[namespace] = lambda _: Answer({}, 404)
    assert run(("bus", "check", "--worker", "w1")) != 0
    assert set(internet.hosts) == {host(cloud.authority), namespace}
    assert set(internet.scopes) == {SERVICE_BUS}
    capsys.readouterr()


@every_cloud
def test_r4_sources_are_asked_with_tokens_of_their_cloud(
    cloud: Cloud, internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = servers(cloud)
    internet.answers[there["databricks"]] = lambda _: Answer({}, 403)
    connections: list[str] = []

    def connect(address: str, **options: Any) -> None:
        connections.append(address)
        assert options["token_provider"].get_token("").token
        raise RuntimeError("nobody is there")

    monkeypatch.setattr("mssql_python.connect", connect)
    assert "MATOOLKIT_CLOUD is" not in read("dataverse", there["dataverse"], cloud)
    assert connections[0].startswith(f"Server={there['dataverse']},1433;")
    assert "MATOOLKIT_CLOUD is" not in read("databricks", there["databricks"], cloud)
    assert list(dict.fromkeys(internet.hosts)) == [there["authority"], there["databricks"]]
    assert internet.scopes == [f"https://{there['dataverse']}/.default", f"{DATABRICKS}/.default"]


@every_cloud
def test_the_state_is_asked_with_tokens_of_its_cloud(
    cloud: Cloud, internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def connect(address: str, **options: Any) -> None:
        opened.append(address)
        assert options["token_provider"].get_token("").token
        raise RuntimeError("nobody is there")

    monkeypatch.setattr("mssql_python.connect", connect)
    store = open_database(database(cloud, servers(cloud)["sql"]))
    with pytest.raises(Exception, match="nobody is there"), store.reading():
        pass
    store.close()
    assert servers(cloud)["sql"] in opened[0]
    assert (internet.hosts[-1], internet.scopes) == (host(cloud.authority), [f"https://{cloud.sql}/.default"])


MISPLACED = "is in the cloud usgov or usgovdod, and MATOOLKIT_CLOUD is"


@pytest.mark.parametrize("settings", [Settings, WorkerSettings])
def test_a_namespace_of_another_cloud_is_told(settings: type[Settings]) -> None:
    environ = {f"{settings.prefix}SERVICE_BUS_NAMESPACE": "contoso.servicebus.usgovcloudapi.net"}
    with pytest.raises(InvalidSettings, match=f"{settings.prefix}SERVICE_BUS_NAMESPACE {MISPLACED} public"):
        load_settings(settings, environ)
    for right in ("usgov", "usgovdod"):
        load_settings(settings, {**environ, "MATOOLKIT_CLOUD": right})
    load_settings(settings, {f"{settings.prefix}SERVICE_BUS_NAMESPACE": "bus.contoso.internal"})


def test_w1_a_worker_tells_it_under_the_name_of_its_own_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(monkeypatch, SERVICE_BUS_NAMESPACE="contoso.servicebus.usgovcloudapi.net")
    assert run(("worker", "run", "--id", "w1")) == InvalidSettings.exit_code
    assert "error: SERVICE_BUS_NAMESPACE is in the cloud usgov" in capsys.readouterr().err


def test_a_database_of_another_cloud_is_told_if_it_wants_a_token() -> None:
    with pytest.raises(InvalidDatabaseUrl, match=f"its server {MISPLACED} china"):
        open_database(database(CLOUDS["china"], "contoso.database.usgovcloudapi.net"))
    open_database(database(CLOUDS["china"], "sa:secret@contoso.database.usgovcloudapi.net")).close()


@pytest.mark.parametrize("kind", ["dataverse", "databricks"])
def test_r4_a_source_of_another_cloud_is_told(kind: str) -> None:
    said = read(kind, servers(CLOUDS["china"])[kind], CLOUDS["usgov"])
    assert said == "the source is in the cloud china, and MATOOLKIT_CLOUD is usgov"


@pytest.mark.parametrize("settings", [Settings, WorkerSettings])
def test_a_cloud_that_does_not_exist_is_told_with_those_that_do(settings: type[Settings]) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_settings(settings, {"MATOOLKIT_CLOUD": "gcchigh"})
    assert list(refused.value.problems) == ["MATOOLKIT_CLOUD should be 'public', 'usgov', 'usgovdod' or 'china'"]


def test_a3_the_command_line_tells_it_in_the_same_words(
    internet: Internet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(monkeypatch, MATOOLKIT_CLOUD="gcchigh")
    assert run(("auth", "status")) == InvalidSettings.exit_code
    assert "MATOOLKIT_CLOUD should be 'public', 'usgov', 'usgovdod' or 'china'" in " ".join(
        capsys.readouterr().err.split()
    )


def test_no_server_is_in_two_clouds_except_those_of_azure_government() -> None:
    for cloud in CLOUDS.values():
        for kind in ("vault", "sql", "bus", "dataverse", "databricks"):
            found = [one.name for one in CLOUDS.values() if one.has(servers(cloud)[kind])]
            is_shared = "usgov" in cloud.name and kind != "dataverse"
            assert found == (["usgov", "usgovdod"] if is_shared else [cloud.name])


def database(cloud: Cloud, server: str) -> Settings:
    return load_settings(
        Settings, {"MATOOLKIT_CLOUD": cloud.name, "MATOOLKIT_DATABASE_URL": f"mssql://{server}/matoolkit"}
    )


def read(kind: str, server: str, cloud: Cloud) -> str:
    """Query a source, and return what goes wrong: nobody is there."""
    source = {"type": kind, "connection": "PLACE", "query": "SELECT 1", "primary_key": "id", "batch_time": "immediate"}
    if kind == "databricks":
        source["warehouse_id"] = "WAREHOUSE"
    environ = {"MATOOLKIT_CLOUD": cloud.name, "PLACE": f"https://{server}", "WAREHOUSE": "w"}
    with pytest.raises(SourceFailed) as failed:
        next(iter(source_opener(environ)(DataSource.model_validate(source)).pieces("SELECT 1")))
    return failed.value.message
