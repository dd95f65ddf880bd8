"""How people come to the pages: what has to be set, what proves which application it is, and without Entra."""

import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.doors.entra import Entra
from matoolkit.doors.identity import LocalOnly
from matoolkit.doors.services import Services
from matoolkit.errors import InvalidSettings
from matoolkit.hosting.entrance import way_to_pages
from matoolkit.hosting.folder import KEY, forget_all
from matoolkit.settings import Settings, keys_in, load_settings
from tests.servers.certificates import make_certificate
from tests.servers.entra import ManagedIdentity
from tests.servers.entra_for_pages import APP, TENANT
from tests.servers.http import served
from tests.web.signing import Place, place, settings_of

pytestmark = pytest.mark.on("sqlite")

HOME = "https://migrate.contoso.example"
TOKEN_FILE = "AZURE_FEDERATED_TOKEN_FILE"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(SystemClock().now())


@pytest.fixture
def pages(services: Services, clock: VirtualClock, tmp_path: Path) -> Iterator[Place]:
    with place(services, clock, tmp_path) as found:
        yield found


def test_a_certificate_proves_it_and_may_be_replaced_while_the_pages_are_served(pages: Place, tmp_path: Path) -> None:
    pages.signed_in()
    (tmp_path / "new").mkdir()
    both, alone = make_certificate(tmp_path / "new", is_rsa=True)
    pages.entra.certificate = alone
    answer = pages.browser().go("/preferences")
    assert (answer.status_code, "WB500" in answer.text, "AADSTS700027" in answer.text) == (500, True, True)
    pages.certificate.write_bytes(both.read_bytes())
    pages.signed_in()


def test_a_certificate_that_is_gone_is_told_to_administrators_and_by_its_code_to_people(
    pages: Place, caplog: pytest.LogCaptureFixture
) -> None:
    pages.certificate.write_bytes(b"-----BEGIN PRIVATE KEY-----\nhunter2")
    answer = pages.browser().go("/preferences")
    assert (answer.status_code, "WB500" in answer.text) == (500, True)
    assert "hunter2" not in answer.text + caplog.text
    assert str(pages.certificate) in caplog.text
    assert pages.entra.asked("/token") == []


def test_a_token_in_a_file_proves_it_and_is_read_each_time(
    services: Services, clock: VirtualClock, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    environ = {TOKEN_FILE: str(file)}
    with place(services, clock, tmp_path, environ, MATOOLKIT_WEB_CERTIFICATE="") as pages:
        assert "WB500" in pages.browser().go("/preferences").text
        file.write_text("first\n")
        pages.entra.federated = {"first"}
        pages.signed_in()
        file.write_text("second\n")
        assert "AADSTS7" in pages.browser().go("/preferences").text
        pages.entra.federated = {"second"}
        pages.signed_in()


def test_a_managed_identity_proves_it(
    services: Services, clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = ManagedIdentity(expires_on=2_000_000_000)
    with (
        served(identity) as address,
        place(services, clock, tmp_path, MATOOLKIT_WEB_CERTIFICATE="", MATOOLKIT_WEB_IDENTITY="i-1") as pages,
    ):
        monkeypatch.setenv("IDENTITY_ENDPOINT", address)
        monkeypatch.setenv("IDENTITY_HEADER", "x")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        pages.entra.federated = {"token-1"}
        for _ in range(3):
            pages.signed_in()
        assert identity.resources == ["api://AzureADTokenExchange"], "one token is enough for many people"
        assert identity.client_ids == ["i-1"]


def test_an_identity_that_is_not_there_is_no_crash(
    services: Services, clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        served(ManagedIdentity(0, is_unknown=True)) as address,
        place(services, clock, tmp_path, MATOOLKIT_WEB_CERTIFICATE="", MATOOLKIT_WEB_IDENTITY="i-1") as pages,
    ):
        monkeypatch.setenv("IDENTITY_ENDPOINT", address)
        monkeypatch.setenv("IDENTITY_HEADER", "x")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        answer = pages.browser().go("/preferences")
        assert (answer.status_code, "WB500" in answer.text) == (500, True)


def _way(settings: Settings, **environ: str) -> object:
    return way_to_pages(settings, Entra(TENANT, APP, SystemClock()), SystemClock(), environ)


def _encrypted(folder: Path) -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))


def _of_two_pairs(folder: Path) -> bytes:
    _, alone = make_certificate(folder, is_rsa=True)
    key = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key + alone.read_bytes()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda _: b"", "as PEM"),
        (lambda folder: make_certificate(folder, is_rsa=True)[1].read_bytes(), "as PEM"),
        (lambda folder: _encrypted(folder) + make_certificate(folder, is_rsa=True)[1].read_bytes(), "without password"),
        (lambda folder: make_certificate(folder)[0].read_bytes(), "RSA"),
        (_of_two_pairs, "the certificate of that key"),
    ],
    ids=["empty", "no key", "password", "EC", "another key"],
)
def test_a_certificate_that_cannot_work_is_told_at_the_start(tmp_path: Path, content: object, why: str) -> None:
    assert callable(content)
    file = tmp_path / "app.pem"
    file.write_bytes(content(tmp_path))
    with pytest.raises(InvalidSettings, match="MATOOLKIT_WEB_CERTIFICATE") as refused:
        _way(settings_of(HOME, MATOOLKIT_WEB_CERTIFICATE=str(file)))
    assert why in refused.value.message


def test_a_certificate_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot be read"):
        _way(settings_of(HOME, MATOOLKIT_WEB_CERTIFICATE=str(tmp_path / "none.pem")))


def test_without_anything_that_proves_it_the_start_says_what_there_is() -> None:
    with pytest.raises(InvalidSettings) as refused:
        _way(settings_of(HOME))
    assert TOKEN_FILE in str(refused.value.hint)
    assert "MATOOLKIT_WEB_CERTIFICATE" in str(refused.value.hint)


def test_a_managed_identity_needs_a_library_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(InvalidSettings) as refused:
        _way(settings_of(HOME, MATOOLKIT_WEB_IDENTITY="i-1"))
    assert refused.value.hint == "pip install 'matoolkit[azure]'"


def test_without_an_address_the_api_is_served_and_the_pages_say_what_is_missing(
    services: Services, clock: VirtualClock, tmp_path: Path
) -> None:
    """An installation of before knows people by tokens, and goes on as it was."""
    with place(services, clock, tmp_path, MATOOLKIT_WEB_ADDRESS="", MATOOLKIT_WEB_KEY="") as pages:
        browser = pages.browser()
        answer = browser.look("/batches")
        assert (answer.status_code, "MATOOLKIT_WEB_ADDRESS" in answer.text) == (404, True)
        assert browser.send("/change").status_code == 404
        assert browser.look("/signin").status_code == 303
        assert browser.look("/healthz").status_code == 200
        assert browser.look("/api/runbooks").status_code == 401


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("ADDRESS", "http://migrate.contoso.example", "https://"),
        ("ADDRESS", "https://migrate.contoso.example/pages", "without a path"),
        ("ADDRESS", "https://ann@migrate.contoso.example", "without a name"),
        ("ADDRESS", "migrate.contoso.example", "begins with https://"),
        ("KEY", "", "needs MATOOLKIT_WEB_KEY"),
        ("KEY", "c2hvcnQ=", "32 random bytes"),
        ("KEY", "hunter2" * 9 + "é", "32 random bytes"),
        ("KEY", "a" * 43 + ",", "32 random bytes"),
        ("SESSION", "2d", "1 day"),
        ("SESSION", "0h", "no time at all"),
    ],
)
def test_settings_that_cannot_be_used_are_told_and_never_repeated(name: str, value: str, why: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        settings_of(HOME, **{f"MATOOLKIT_WEB_{name}": value})
    assert why in str(refused.value)
    assert f"MATOOLKIT_WEB_{name}" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8080", "http://localhost:8080/", "https://migrate.example:444"])
def test_on_this_machine_the_address_needs_no_tls(address: str) -> None:
    assert settings_of(address).web_address == address.rstrip("/")


def test_there_are_two_ways_to_prove_it_and_not_both() -> None:
    with pytest.raises(InvalidSettings, match="two ways"):
        settings_of(HOME, MATOOLKIT_WEB_IDENTITY="i-1", MATOOLKIT_WEB_CERTIFICATE="x.pem")


def test_pages_need_entra_before_they_have_an_address() -> None:
    with pytest.raises(InvalidSettings, match="MATOOLKIT_ENTRA_TENANT_ID"):
        load_settings(Settings, {"MATOOLKIT_WEB_ADDRESS": HOME, "MATOOLKIT_WEB_KEY": "a" * 43})


def test_keys_are_read_in_both_spellings_of_base64() -> None:
    for written in ("-_" * 21 + "8=", "+/" * 21 + "8", f" {'-_' * 21}8 ,\n{'+/' * 22}"):
        keys = keys_in(settings_of(HOME, MATOOLKIT_WEB_KEY=written).web_key)
        assert {len(key) for key in keys} <= {32, 33}
        assert len({key[:31] for key in keys}) == 1
    assert "a" * 43 not in repr(settings_of(HOME))


def test_without_entra_the_key_is_kept_beside_the_database_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    KEY.parent.mkdir()
    clock = SystemClock()

    def mark() -> str:
        return way_to_pages(Settings(), LocalOnly(), clock, {}, KEY).seal.mark("form", "x")

    first = mark()
    assert mark() == first, "a form is still good after a restart"
    assert stat.S_IMODE(KEY.stat().st_mode) == 0o600
    KEY.write_bytes(b"half")
    assert mark() != first
    assert len(KEY.read_bytes()) == 32
    second = mark()
    forget_all()
    assert mark() != second, "a form of before --fresh is not good for what began anew"


def test_without_entra_there_is_nothing_to_sign_in_to(services: Services) -> None:
    way = way_to_pages(Settings(), services.sign_in, SystemClock(), {})
    assert way.sign_in is services.sign_in
    assert way.entrance is None
