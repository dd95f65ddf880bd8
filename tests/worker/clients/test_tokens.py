"""Tokens: fetched once for all threads, replaced when one is refused or about to end, told to nobody."""

import base64
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
from cryptography.x509.oid import NameOID

from matoolkit.settings import WorkerSettings
from matoolkit.worker.clients import CertificateTokens, open_clients
from matoolkit.worker.clients.certificates import certificate_data
from matoolkit.worker.clients.failures import SignInFailed, TenantFailed
from tests.threads import in_threads
from tests.worker.functions.office import Concealed, SharedClock

SCOPE = "https://graph.microsoft.com/.default"


class Credential:
    """Stands in for azure-identity's, which would ask Entra."""

    made: list[tuple[Any, ...]] = []  # noqa: RUF012 - a test empties it
    fails_with: Exception | None = None
    ends_on = 0.0

    def __init__(self, tenant: str, app: str, *, certificate_data: bytes, **_: Any) -> None:
        self.made.append((tenant, app, certificate_data))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_token(self, scope: str) -> SimpleNamespace:
        if self.fails_with:
            raise self.fails_with
        return SimpleNamespace(token=f"token-{len(self.made)} for {scope}", expires_on=Credential.ends_on)


@pytest.fixture
def clock() -> SharedClock:
    return SharedClock()


@pytest.fixture
def entra(monkeypatch: pytest.MonkeyPatch, clock: SharedClock) -> type[Credential]:
    monkeypatch.setattr("azure.identity.CertificateCredential", Credential)
    Credential.made.clear()
    Credential.fails_with = None
    Credential.ends_on = clock.now().timestamp() + 3600
    return Credential


def tokens(clock: SharedClock, concealed: Concealed | None = None) -> CertificateTokens:
    return CertificateTokens("tenant", "app", lambda: b"pfx", SCOPE, clock, (concealed or Concealed()).conceal)


def test_a_token_is_fetched_once_for_all_threads_and_concealed(entra: type[Credential], clock: SharedClock) -> None:
    concealed = Concealed()
    found = tokens(clock, concealed)
    assert set(in_threads([found.token] * 8)) == {f"token-1 for {SCOPE}"}
    assert entra.made == [("tenant", "app", b"pfx")]
    assert concealed.values == [f"token-1 for {SCOPE}"]


def test_a_token_that_is_about_to_end_is_replaced(entra: type[Credential], clock: SharedClock) -> None:
    found = tokens(clock)
    found.token()
    clock.sleep(3600 - 301)
    assert found.token().startswith("token-1")
    clock.sleep(2)
    assert found.token().startswith("token-2")


def test_of_the_threads_whose_token_was_refused_one_fetches_another(
    entra: type[Credential], clock: SharedClock
) -> None:
    found = tokens(clock)
    refused = found.token()
    assert {one.split()[0] for one in in_threads([lambda: found.token(refused=refused)] * 8)} == {"token-2"}


def test_a_sign_in_that_fails_says_why_in_one_line(entra: type[Credential], clock: SharedClock) -> None:
    from azure.core.exceptions import ClientAuthenticationError

    entra.fails_with = ClientAuthenticationError("AADSTS700027: the certificate is not known\nTrace ID: 1\nstack")
    with pytest.raises(
        SignInFailed, match=r"cannot sign in to the tenant: AADSTS700027: the certificate is not known$"
    ):
        tokens(clock).token()


def test_without_the_library_the_hint_is_what_to_install(clock: SharedClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(SignInFailed, match=r"install matoolkit\[azure\]"):
        tokens(clock).token()


def test_what_is_no_pfx_is_a_failure_in_words(clock: SharedClock) -> None:
    broken = CertificateTokens("tenant", "app", lambda: b"no certificate", SCOPE, clock)
    with pytest.raises(SignInFailed, match="cannot sign in") as caught:
        broken.token()
    assert "no certificate" not in caught.value.message


def test_the_settings_decide_on_the_tenant(entra: type[Credential], clock: SharedClock) -> None:
    settings = WorkerSettings.model_validate(
        {"target_tenant_id": "t", "target_organization": "contoso.onmicrosoft.com", "app_id": "a", "cert_name": "c"}
    )
    asked: list[str] = []

    def secret(name: str) -> str:
        asked.append(name)
        return base64.b64encode(b"pfx").decode()

    clients = open_clients(settings, secret, clock, Concealed().conceal)
    assert asked == [], "nothing is fetched before it is needed"
    assert clients.graph._api.tokens.token().endswith("https://graph.microsoft.com/.default")  # noqa: SLF001
    assert clients.exchange._api.tokens.token().endswith("https://outlook.office365.com/.default")  # noqa: SLF001
    assert asked == ["c", "c"]
    assert entra.made == [("t", "a", b"pfx")] * 2
    clients.close()


def test_a_worker_without_tenant_says_what_is_missing(clock: SharedClock) -> None:
    clients = open_clients(WorkerSettings.model_validate({"app_id": "a"}), str, clock, Concealed().conceal)
    with pytest.raises(TenantFailed, match="set TARGET_TENANT_ID, CERT_NAME, or SIMULATED_TENANT_URL"):
        clients.graph.delete_user("jane@contoso.example")
    clients.close()


@pytest.fixture(scope="module")
def key_and_certificate() -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "worker")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    return key, certificate


@pytest.fixture(scope="module")
def pfx(key_and_certificate: tuple[rsa.RSAPrivateKey, x509.Certificate]) -> bytes:
    return pkcs12.serialize_key_and_certificates(b"worker", *key_and_certificate, None, NoEncryption())


@pytest.fixture(scope="module")
def pem(key_and_certificate: tuple[rsa.RSAPrivateKey, x509.Certificate]) -> str:
    key, certificate = key_and_certificate
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (private + certificate.public_bytes(Encoding.PEM)).decode()


def test_row_18_the_real_library_takes_every_form_in_which_a_certificate_is_stored(pfx: bytes, pem: str) -> None:
    from azure.identity import CertificateCredential

    forms = (
        base64.b64encode(pfx).decode(),
        base64.encodebytes(pfx).decode(),
        base64.encodebytes(pfx).decode().replace("\n", "\r\n"),
        pem,
        f"  {pem}\n",
        pem.replace("\n", "\r\n"),
        pem.replace("\n", "\\n"),
        base64.b64encode(pem.encode()).decode(),
    )
    for form in forms:
        CertificateCredential("tenant", "app", certificate_data=certificate_data(form)).close()


def test_row_18_what_is_no_certificate_with_its_key_is_refused_in_words(pem: str) -> None:
    key, _, certificate = pem.partition("-----BEGIN CERTIFICATE-----")
    cases = {
        "": "neither PEM nor a PFX file",
        "no certificate!": "neither PEM nor a PFX file",
        f"-----BEGIN CERTIFICATE-----{certificate}": "has no private key",
        key: "has no certificate",
        pem.replace("PRIVATE", "ENCRYPTED PRIVATE"): "has a password",
    }
    for text, said in cases.items():
        with pytest.raises(SignInFailed, match=said) as caught:
            certificate_data(text)
        assert "no certificate!" not in caught.value.message
