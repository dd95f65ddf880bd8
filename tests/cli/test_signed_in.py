"""Signing in with a code and being known by an admin API that wants real tokens (rules A2 and A3)."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.doors.entra import Entra
from matoolkit.doors.services import Services
from tests.api.conftest import DOCUMENT
from tests.api.test_auth import APP, TENANT, Keys, signed
from tests.cli.conftest import Cli, Moving
from tests.databases import NOON
from tests.servers.api import serving
from tests.servers.entra import Entra as Authority
from tests.servers.http import served

pytestmark = pytest.mark.on("sqlite")


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    service = Authority(TENANT, "anna@contoso.example", access_token=lambda _: signed(roles=["Admin"]))
    with service.served(tmp_path) as trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        monkeypatch.setenv("MATOOLKIT_AUTHORITY", service.address)
        monkeypatch.setenv("MATOOLKIT_TENANT_ID", TENANT)
        monkeypatch.setenv("MATOOLKIT_CLIENT_ID", APP)
        yield service


@pytest.fixture
def cli(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    with served(Keys()) as address:
        entra = Entra(TENANT, APP, SystemClock(), keys_url=f"{address}/keys")
        with serving(replace(services, sign_in=entra)) as api:
            monkeypatch.setenv("HOME", str(tmp_path / "home"))
            monkeypatch.setenv("MATOOLKIT_API_URL", api)
            yield Cli(capsys, Moving(VirtualClock(NOON)), tmp_path, set())


def test_a3_whoever_signs_in_is_known_by_name(cli: Cli, authority: Authority) -> None:
    cli("auth", "login")
    assert "signed in as anna@contoso.example" in cli.err
    cli("runbook", "publish", cli.file("wave.yaml", DOCUMENT))
    assert [entry["actor"] for entry in cli.json("audit", "list")] == ["anna@contoso.example"]


def test_a3_without_sign_in_the_server_refuses_and_the_hint_says_how_to_sign_in(cli: Cli) -> None:
    cli("runbook", "list", code=4)
    assert "AP401" in cli.err
    assert "matoolkit auth login" in cli.err
    cli("api", "status")


def test_a3_a_pipeline_reads_with_its_token_and_needs_the_role_for_changes(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATOOLKIT_ACCESS_TOKEN", signed(roles=[]))
    cli("runbook", "list")
    cli("runbook", "publish", cli.file("wave.yaml", DOCUMENT), code=4)
    assert "this needs the role 'Admin'" in cli.err
    monkeypatch.setenv("MATOOLKIT_ACCESS_TOKEN", expired())
    cli("runbook", "list", code=4)
    assert "AP401" in cli.err


def expired() -> Any:
    now = int(time.time())  # noqa: TID251 - tokens are of the real time
    return signed(exp=now - 1000)
