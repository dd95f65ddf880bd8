"""Entra as pages meet it: it sends people back with a code, and redeems it for the application that proves itself."""

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import load_pem_x509_certificate

from matoolkit.clock import Clock, SystemClock
from tests.servers.entra import ANN
from tests.servers.http import Answer, Request

TENANT = "11111111-2222-3333-4444-55555555abcd"
APP = "99999999-8888-7777-6666-55555555abcd"
KEY = rsa.generate_private_key(65537, 2048)
STRANGER = rsa.generate_private_key(65537, 2048)
_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Refused(Exception):
    """Entra does not do what was asked; its words are error and description."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(error)
        self.answer = Answer({"error": error, "error_description": f"{description}\r\nTrace ID: 1"}, 400)


def claims_of(**other: Any) -> dict[str, Any]:
    """Return what an ID token says, besides what depends on the sign-in; durations are counted from now."""
    now = SystemClock().now()
    claims = {
        "aud": APP,
        "tid": TENANT,
        "iat": timedelta(),
        "nbf": timedelta(minutes=-5),
        "exp": timedelta(hours=1),
        "preferred_username": ANN,
        "name": "Ann",
        "oid": "0aa0",
        "roles": ["Admin"],
        **other,
    }
    return {
        name: int((now + value).timestamp()) if isinstance(value, timedelta) else value
        for name, value in claims.items()
        if value is not None
    }


def signed(claims: Mapping[str, Any]) -> str:
    return jwt.encode(dict(claims), KEY, "RS256", headers={"kid": "one"})


@dataclass
class EntraForPages:
    """One tenant with one application, whose redirect address and certificate are registered."""

    clock: Clock
    certificate: Path
    federated: set[str] = field(default_factory=set)
    home: str = ""
    address: str = ""
    other: dict[str, Any] = field(default_factory=dict)
    sign: Callable[[Mapping[str, Any]], str] = signed
    sends_back: dict[str, str] | None = None
    instead: Answer | None = None
    requests: list[Request] = field(default_factory=list)
    issued: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _assertions: set[str] = field(default_factory=set)

    def asked(self, end: str) -> list[dict[str, str]]:
        """Return what was sent to an endpoint."""
        return [_asked(one) for one in self.requests if urlsplit(one.path).path.endswith(end)]

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        path = urlsplit(request.path).path
        ends = {"authorize": self._authorize, "token": self._token, "logout": self._log_out}
        if path == f"/{TENANT}/discovery/v2.0/keys":
            key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
            return Answer({"keys": [{**key, "kid": "one", "use": "sig"}]})
        try:
            return ends[path.removeprefix(f"/{TENANT}/oauth2/v2.0/")](_asked(request))
        except Refused as refused:
            return refused.answer

    def _authorize(self, asked: dict[str, str]) -> Answer:
        if asked["client_id"] != APP or asked["redirect_uri"] != f"{self.home}/signin/done":
            raise Refused("invalid_request", "AADSTS50011: the redirect address is not registered")
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert len(asked["code_challenge"]) == 43
        if self.sends_back:
            return _elsewhere(asked["redirect_uri"], {**self.sends_back, "state": asked["state"]})
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return _elsewhere(asked["redirect_uri"], {"code": code, "state": asked["state"], "session_state": "s"})

    def _token(self, asked: dict[str, str]) -> Answer:
        if self.instead:
            return self.instead
        self._require_application(asked)
        begun = self.codes.pop(asked["code"], None)
        if begun is None:
            raise Refused("invalid_grant", "AADSTS54005: the code was already redeemed")
        digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != begun["code_challenge"]:
            raise Refused("invalid_grant", "AADSTS501481: the verifier is not that of the challenge")
        if (asked["grant_type"], asked["redirect_uri"]) != ("authorization_code", begun["redirect_uri"]):
            raise Refused("invalid_grant", "AADSTS50011: another redirect address")
        about = {"iss": f"{self.address}/{TENANT}/v2.0", "nonce": begun["nonce"]}
        id_token = self.sign(claims_of(**{**about, **self.other}))
        self.issued += [id_token, "access-1"]
        return Answer({"token_type": "Bearer", "expires_in": 3600, "access_token": "access-1", "id_token": id_token})

    def _require_application(self, asked: dict[str, str]) -> None:
        """Refuse a stranger to the application, and a proof that was shown before."""
        assert "client_secret" not in asked
        assert asked["client_assertion_type"] == _BEARER
        assertion = asked["client_assertion"]
        if assertion in self.federated:
            return
        if assertion.count(".") != 2:
            raise Refused("invalid_client", "AADSTS700213: no matching federated identity record found")
        known = load_pem_x509_certificate(self.certificate.read_bytes())
        thumbprint = base64.urlsafe_b64encode(known.fingerprint(hashes.SHA256())).decode().rstrip("=")
        if jwt.get_unverified_header(assertion).get("x5t#S256") != thumbprint:
            raise Refused("invalid_client", "AADSTS700027: the certificate is not registered")
        public = known.public_key()
        assert isinstance(public, rsa.RSAPublicKey)
        address = f"{self.address}/{TENANT}/oauth2/v2.0/token"
        needed = ["exp", "nbf", "iss", "sub", "jti"]
        options: Any = {"require": needed, "verify_exp": False, "verify_nbf": False}
        claims = jwt.decode(assertion, public, ["PS256"], audience=address, issuer=APP, options=options)
        if not claims["nbf"] <= self.clock.now().timestamp() < claims["exp"] <= claims["nbf"] + 600:
            raise Refused("invalid_client", "AADSTS700024: the assertion is not valid now, or for too long")
        if claims["sub"] != APP or claims["jti"] in self._assertions:
            raise Refused("invalid_client", "AADSTS7000217: the assertion was used before")
        self._assertions.add(claims["jti"])

    def _log_out(self, asked: dict[str, str]) -> Answer:
        if asked["post_logout_redirect_uri"] != f"{self.home}/signed-out":
            return Answer(b"You signed out")
        return _elsewhere(asked["post_logout_redirect_uri"], {})


def _asked(request: Request) -> dict[str, str]:
    if request.method == "GET":
        return dict(parse_qsl(urlsplit(request.path).query))
    return {name: value for name, (value,) in request.body.items()}


def _elsewhere(address: str, query: Mapping[str, str]) -> Answer:
    return Answer(b"", 302, {"Location": f"{address}?{urlencode(query)}" if query else address})
