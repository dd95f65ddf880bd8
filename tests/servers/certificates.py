"""A certificate that nobody else trusts, for this machine or for names that lead to it."""

from collections.abc import Collection
from datetime import UTC, datetime
from functools import cache
from itertools import cycle
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

# Making such a key takes a tenth of a second, so a few serve all certificates; two in a row never have the same one.
_RSA_KEYS = cycle(range(4))


@cache
def _rsa_key(_number: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def make_certificate(
    folder: Path, names: Collection[str] = ("localhost",), *, is_rsa: bool = False
) -> tuple[Path, Path]:
    """Write a key with its certificate, for a server, and the certificate alone, for those who are to trust it."""
    key = _rsa_key(next(_RSA_KEYS)) if is_rsa else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    both, alone = folder / "server.pem", folder / "trusted.pem"
    both.write_bytes(private + public)
    alone.write_bytes(public)
    return both, alone
