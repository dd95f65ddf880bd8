"""Servers that play services which sources ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from matoolkit.clock import VirtualClock
from tests.drivers import choose_driver
from tests.servers import http, tds
from tests.servers.certificates import make_certificate
from tests.servers.databricks import Workspace
from tests.servers.tds import Organisation


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def organisation(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Organisation:
    choose_driver()
    server, trusted = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    return Organisation(server)


@pytest.fixture
def port(organisation: Organisation) -> Iterator[int]:
    with tds.served(organisation) as port:
        yield port


@pytest.fixture
def workspace(clock: VirtualClock) -> Iterator[Workspace]:
    workspace = Workspace(clock)
    with http.served(workspace) as workspace.address:
        yield workspace
