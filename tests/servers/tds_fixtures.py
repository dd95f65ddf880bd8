"""A server that speaks TDS, for sources and for the store."""

from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.drivers import choose_driver
from tests.servers.certificates import make_certificate
from tests.servers.tds import Organisation, Organisations


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def organisations() -> Iterator[Organisations]:
    with Organisations(ctx=get_context("spawn")) as organisations:
        yield organisations


@pytest.fixture
def organisation(
    organisations: Organisations, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Organisation]:
    choose_driver()
    server, trusted = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    organisation = organisations.organisation(server)
    yield organisation
    organisation.close()
