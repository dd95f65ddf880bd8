"""Entra's tokens, verified: a person's, or an application's (rule A2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jwt
from jwt import PyJWTError
from starlette.requests import Request

from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC, Cloud
from matoolkit.domain.signoff import Caller
from matoolkit.doors.identity import ADMIN_ROLE, Identity
from matoolkit.doors.signingkeys import SigningKeys
from matoolkit.errors import NotSignedIn

_LEEWAY_SECONDS = 60


@dataclass(slots=True)
class Entra:
    """Verifies the tokens of one tenant for one application; app-only tokens do all that a person's do but sign off."""

    tenant_id: str
    client_id: str
    clock: Clock
    audience: str | None = None
    keys_url: str | None = None
    cloud: Cloud = PUBLIC
    _keys: SigningKeys = field(init=False)

    def __post_init__(self) -> None:
        # Tokens write ids in small letters, but people copy them in any case.
        self.tenant_id, self.client_id = self.tenant_id.lower(), self.client_id.lower()
        default = f"{self.cloud.authority}/{self.tenant_id}/discovery/v2.0/keys"
        self._keys = SigningKeys(self.keys_url or default, self.clock)

    def identity(self, request: Request) -> Identity:
        """Verify the token of a request."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.casefold() != "bearer" or not token.strip():
            raise NotSignedIn("there is no token")
        claims = self._claims(token.strip(), [self.audience or f"api://{self.client_id}", self.client_id])
        roles = _roles(claims)
        if not roles and not claims.get("scp"):
            # An ID token says who a person is, not that the person may use this API; an application may have no role.
            raise NotSignedIn("the token has neither a scope nor a role")
        # A name for display is no other name: two people may share it.
        others = frozenset(_names(claims, (*_USERNAMES, "oid")))
        return Identity(_name(claims), ADMIN_ROLE in roles, _named(roles), _caller(claims), others)

    def person(self, id_token: str, nonce: str) -> Identity:
        """Verify the ID token with which Entra answers the sign-in of this nonce."""
        claims = self._claims(id_token, [self.client_id], "nonce")
        if claims["nonce"] != nonce:
            raise NotSignedIn("the token answers another sign-in")
        roles = _roles(claims)
        return Identity(_name(claims), ADMIN_ROLE in roles, _named(roles))

    def _claims(self, token: str, audiences: Sequence[str], *needed: str) -> Mapping[str, Any]:
        try:
            # We choose the algorithm: a token that names another is refused before any key is used.
            header = jwt.get_unverified_header(token)
            if header.get("alg") != "RS256":
                raise NotSignedIn("the token is not signed with RS256")
            claims = jwt.decode(
                token,
                self._keys.key(str(header.get("kid"))),
                algorithms=["RS256"],
                audience=audiences,
                issuer=[
                    f"{self.cloud.sts}/{self.tenant_id}/",
                    f"{self.cloud.authority}/{self.tenant_id}/v2.0",
                ],
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "nbf", "iss", "aud", "tid", *needed]},
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


def _roles(claims: Mapping[str, Any]) -> Sequence[Any]:
    roles = claims.get("roles")
    return roles if isinstance(roles, list) else []


def _named(roles: Sequence[Any]) -> frozenset[str]:
    # A runbook may name any app role of the tenant under `by`, not only ours.
    return frozenset(role for role in roles if isinstance(role, str))


def _caller(claims: Mapping[str, Any]) -> Caller:
    """Say whether a person signed in: only then a token says what the application may do for it (`scp`)."""
    if not claims.get("scp") or claims.get("idtyp") == "app":
        return Caller.APPLICATION
    # Who asks for a token without `profile` would be known by another name, and count once more (rule S4).
    return Caller.PERSON if _names(claims, _USERNAMES) else Caller.UNNAMED


_USERNAMES = ("preferred_username", "upn")


def _name(claims: Mapping[str, Any]) -> str:
    return next(iter(_names(claims)), "system")


def _names(claims: Mapping[str, Any], wanted: Sequence[str] = (*_USERNAMES, "name", "oid")) -> list[str]:
    found = (claims.get(claim) for claim in wanted)
    return [name for name in found if isinstance(name, str) and name.strip()]
