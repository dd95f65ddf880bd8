"""How people come to the pages: with Entra by signing in, without it as this machine (rule A2)."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from matoolkit.clock import Clock
from matoolkit.clouds import CLOUDS
from matoolkit.doors.entra import Entra
from matoolkit.doors.identity import SignIn
from matoolkit.errors import EntryBroken, InvalidSettings
from matoolkit.privacy import private_file
from matoolkit.settings import Settings, keys_in
from matoolkit.web.entrance import Entrance
from matoolkit.web.keeping import Keeping
from matoolkit.web.proving import CertificateProof, Proof, file_proof, identity_proof
from matoolkit.web.sealing import Seal
from matoolkit.web.sessions import Closed, Sessions

_TOKEN_FILE = "AZURE_FEDERATED_TOKEN_FILE"  # noqa: S105 - the name of a variable
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class WayToPages:
    """What a site needs to know of who comes to it."""

    sign_in: SignIn
    seal: Seal
    entrance: Entrance | None = None
    is_https: bool = False


def way_to_pages(
    settings: Settings,
    sign_in: SignIn,
    clock: Clock,
    environ: Mapping[str, str] = os.environ,
    key_file: Path | None = None,
) -> WayToPages:
    """Return how people come to the pages of an API with this sign-in.

    The clock has to be the machine's, not a calendar that runs faster. Without a key in the settings it is kept in a
    file, if one is named, and otherwise forgotten with the process.
    """
    keys = keys_in(settings.web_key) or [_kept_key(key_file) if key_file else secrets.token_bytes(_KEY_BYTES)]
    seal = Seal(keys, clock)
    if not isinstance(sign_in, Entra):
        return WayToPages(sign_in, seal)
    if settings.web_address is None:
        return WayToPages(Closed(), seal)
    is_https = settings.web_address.startswith("https://")
    keeping = Keeping(seal, is_https)
    sessions = Sessions(keeping, clock, settings.web_session)
    proof = _proof(settings, sign_in.client_id, clock, environ)
    entrance = Entrance(sign_in, settings.web_address, proof, sessions, keeping, clock)
    return WayToPages(sessions, seal, entrance, is_https)


def _proof(settings: Settings, client_id: str, clock: Clock, environ: Mapping[str, str]) -> Proof:
    """Return how the pages prove which application they are; what cannot work at all is told at once."""
    if settings.web_certificate is not None:
        proof = CertificateProof(settings.web_certificate, client_id, clock)
        try:
            proof.read()
        except EntryBroken as broken:
            raise InvalidSettings([f"MATOOLKIT_WEB_CERTIFICATE: {broken.message}"]) from None
        return proof
    if settings.web_identity is not None:
        if find_spec("azure.identity") is None:
            problem = "MATOOLKIT_WEB_IDENTITY needs a library that is not installed"
            raise InvalidSettings([problem], hint="pip install 'matoolkit[azure]'")
        return identity_proof(settings.web_identity, CLOUDS[settings.cloud], clock)
    if file := environ.get(_TOKEN_FILE):
        return file_proof(Path(file))
    problem = "MATOOLKIT_WEB_ADDRESS is set, and nothing proves to Entra which application the pages are"
    hint = f"set MATOOLKIT_WEB_CERTIFICATE or MATOOLKIT_WEB_IDENTITY, or run where {_TOKEN_FILE} is set"
    raise InvalidSettings([problem], hint=hint)


def _kept_key(file: Path) -> bytes:
    """Return the key in a file, which is made if there is none."""
    private_file(file)
    key = file.read_bytes()
    if len(key) < _KEY_BYTES:
        key = secrets.token_bytes(_KEY_BYTES)
        file.write_bytes(key)
    return key
