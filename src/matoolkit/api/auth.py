"""Who asks (rule A2): an Entra token, or, without Entra, a program on the same machine."""

import ipaddress
import logging
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import jwt
from fastapi import Request
from jwt import PyJWK, PyJWKClient, PyJWKClientError, PyJWTError

from matoolkit.clock import Clock
from matoolkit.errors import NotFromHere, NotSignedIn, RoleMissing, SignInUnavailable

ADMIN_ROLE = "Admin"
_LEEWAY_SECONDS = 60
_SECONDS_BETWEEN_FETCHES = 30
# A key that Entra has withdrawn is good for this long at most.
_SECONDS_KEPT = 24 * 60 * 60

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who may ask, and whether for changes."""

    name: str
    is_admin: bool

    def require_admin(self) -> None:
        """Refuse whoever lacks the role."""
        if not self.is_admin:
            raise RoleMissing(ADMIN_ROLE)


class SignIn(Protocol):
    """Tells who sent a request."""

    def identity(self, request: Request) -> Identity:
        """Return who sent a request, or refuse it."""


class LocalOnly:
    """Answers this machine alone: also not a web page elsewhere that a browser on it has open."""

    def identity(self, request: Request) -> Identity:
        """Return the one identity there is."""
        client = request.client.host if request.client else ""
        if not is_loopback(client):
            raise NotFromHere("the request comes from another one")
        if not is_loopback(urlsplit(f"//{request.headers.get('host', '')}").hostname or ""):
            raise NotFromHere("it was addressed under another name")
        origin = request.headers.get("origin")
        if origin is not None and not is_loopback(urlsplit(origin).hostname or ""):
            raise NotFromHere("it was sent by a page of another one")
        return Identity("local", is_admin=True)


def is_loopback(host: str) -> bool:
    """Tell whether an address or name can only mean this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


@dataclass(slots=True)
class Entra:
    """Verifies the tokens of one tenant for one application; app-only tokens are as good as a person's."""

    tenant_id: str
    client_id: str
    clock: Clock
    audience: str | None = None
    keys_url: str | None = None
    _keys: "_Keys" = field(init=False)

    def __post_init__(self) -> None:
        default = f"https://login.microsoftonline.com/{self.tenant_id}/discovery/v2.0/keys"
        self._keys = _Keys(PyJWKClient(self.keys_url or default, cache_keys=False, timeout=10), self.clock)

    def identity(self, request: Request) -> Identity:
        """Verify the token of a request."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.casefold() != "bearer" or not token.strip():
            raise NotSignedIn("there is no token")
        claims = self._claims(token.strip())
        roles = claims.get("roles")
        return Identity(_name(claims), isinstance(roles, list) and ADMIN_ROLE in roles)

    def _claims(self, token: str) -> Mapping[str, Any]:
        try:
            # The algorithm is ours to choose: a token that names another is not even compared with a key.
            header = jwt.get_unverified_header(token)
            if header.get("alg") != "RS256":
                raise NotSignedIn("the token is not signed with RS256")
            claims = jwt.decode(
                token,
                self._keys.key(str(header.get("kid"))),
                algorithms=["RS256"],
                audience=[self.audience or f"api://{self.client_id}", self.client_id],
                issuer=[
                    f"https://sts.windows.net/{self.tenant_id}/",
                    f"https://login.microsoftonline.com/{self.tenant_id}/v2.0",
                ],
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "nbf", "iss", "aud", "tid"]},
            )
        except PyJWTError as refused:
            raise NotSignedIn(_REASONS.get(type(refused), "the token is not valid")) from None
        if claims["tid"] != self.tenant_id:
            raise NotSignedIn("the token is of another tenant")
        return claims


_REASONS: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "the token has expired",
    jwt.ImmatureSignatureError: "the token is not valid yet",
    jwt.InvalidAudienceError: "the token is for another application",
    jwt.InvalidIssuerError: "the token is of another issuer",
    jwt.InvalidSignatureError: "the token's signature is wrong",
}


def _name(claims: Mapping[str, Any]) -> str:
    found = (claims.get(claim) for claim in ("preferred_username", "upn", "name", "oid"))
    return next((name for name in found if isinstance(name, str) and name.strip()), "system")


class _Keys:
    """The keys of a tenant, fetched when one is missing, but not each time somebody makes one up."""

    def __init__(self, client: PyJWKClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: Mapping[str, PyJWK] = {}
        self._fetched_at: float | None = None
        self._lock = threading.Lock()

    def key(self, name: str) -> PyJWK:
        with self._lock:
            if (name not in self._known and self._age() >= _SECONDS_BETWEEN_FETCHES) or self._age() >= _SECONDS_KEPT:
                self._fetch()
            if name not in self._known:
                raise NotSignedIn("the token is signed with an unknown key")
            return self._known[name]

    def _age(self) -> float:
        return math.inf if self._fetched_at is None else self._clock.monotonic() - self._fetched_at

    def _fetch(self) -> None:
        try:
            keys = self._client.get_jwk_set(refresh=True).keys
        except (PyJWKClientError, PyJWTError) as fault:
            log.warning("the signing keys could not be fetched: %s", fault)
            raise SignInUnavailable from None
        self._known = {key.key_id: key for key in keys if key.key_id and key.key_type == "RSA"}
        self._fetched_at = self._clock.monotonic()
