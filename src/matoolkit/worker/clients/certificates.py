"""The certificate by which the worker signs in, in the forms in which a Key Vault or a variable holds one."""

import base64
import binascii

from matoolkit.worker.clients.failures import SignInFailed

_PEM = "-----BEGIN "
_NO_FORM = "the worker's certificate is neither PEM nor a PFX file in base64"


def certificate_data(text: str) -> bytes:
    """Read a certificate with its key: as PEM, or as PFX or PEM in base64, with line breaks anywhere."""
    # A variable that cannot hold line breaks often has them written out.
    written = text.replace("\\r", "").replace("\\n", "\n").strip().removeprefix("\ufeff")
    if _PEM in written:
        return _pem(written)
    try:
        data = base64.b64decode("".join(written.split()), validate=True)
    except (binascii.Error, ValueError):
        raise SignInFailed(_NO_FORM) from None
    if not data:
        raise SignInFailed(_NO_FORM)
    return _pem(data.decode(errors="replace")) if _PEM.encode() in data else data


def _pem(text: str) -> bytes:
    if "ENCRYPTED" in text:
        raise SignInFailed("the key of the worker's certificate has a password: store it without one")
    for part in ("PRIVATE KEY-----", "BEGIN CERTIFICATE-----"):
        if part not in text:
            missing = "private key" if "KEY" in part else "certificate"
            raise SignInFailed(f"the worker's certificate in PEM has no {missing}: store both in one text")
    return text.encode()
