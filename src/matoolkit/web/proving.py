"""How the pages prove to Entra which application they are: a certificate or a federated identity, never a secret."""

import base64
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from matoolkit.clock import Clock
from matoolkit.clouds import Cloud
from matoolkit.errors import EntryBroken, EntryUnavailable
from matoolkit.tokens import KeptToken, NoToken, NoTokenNow, token_of_process

# Returns an assertion for the address to which it is sent.
Proof = Callable[[str], str]

_LASTING = timedelta(minutes=5)
# The clock of the authority may be a little behind ours.
_SKEW = timedelta(minutes=1)


class CertificateProof:
    """Signs with the key of a certificate; the file is read each time, so a new one needs no restart."""

    def __init__(self, file: Path, client_id: str, clock: Clock) -> None:
        self._file = file
        self._client_id = client_id
        self._clock = clock

    def __call__(self, audience: str) -> str:
        """Return a signed assertion."""
        key, thumbprint = self.read()
        now = self._clock.now()
        claims = {
            "aud": audience,
            "iss": self._client_id,
            "sub": self._client_id,
            "jti": str(uuid.uuid4()),
            "nbf": int((now - _SKEW).timestamp()),
            "exp": int((now + _LASTING).timestamp()),
        }
        return jwt.encode(claims, key, "PS256", headers={"x5t#S256": thumbprint})

    def read(self) -> tuple[RSAPrivateKey, str]:
        """Return the key and the thumbprint of its certificate."""
        try:
            content = self._file.read_bytes()
        except OSError as fault:
            raise EntryBroken(f"{self._file} cannot be read: {fault.strerror}") from None
        try:
            certificate = load_pem_x509_certificate(content)
            key = load_pem_private_key(content, password=None)
        except (ValueError, TypeError):
            # Their texts may show a part of the file.
            raise EntryBroken(
                f"{self._file} does not hold a certificate and its key as PEM, without password"
            ) from None
        if not isinstance(key, RSAPrivateKey) or key.public_key() != certificate.public_key():
            raise EntryBroken(f"{self._file} does not hold an RSA key and the certificate of that key")
        digest = certificate.fingerprint(hashes.SHA256())
        return key, base64.urlsafe_b64encode(digest).decode().rstrip("=")


def file_proof(file: Path) -> Proof:
    """Return what reads the token that a platform such as Kubernetes keeps in a file, and renews there."""

    def proof(_: str) -> str:
        try:
            return file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise EntryBroken(f"the token in {file} cannot be read") from None

    return proof


def identity_proof(client_id: str, cloud: Cloud, clock: Clock) -> Proof:
    """Return what asks for a token of a managed identity that the application's registration trusts."""
    kept = KeptToken(lambda: token_of_process(f"{cloud.federation}/.default", cloud, client_id), clock)

    def proof(_: str) -> str:
        try:
            return kept.token()
        except NoTokenNow as away:
            raise EntryUnavailable(f"the managed identity gets no token: {away}") from None
        except NoToken as none:
            raise EntryBroken(f"the managed identity gets no token: {none}") from None

    return proof
