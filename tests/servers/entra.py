"""Entra: the authority at which people sign in, and the token endpoint of a process with a managed identity."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

from matoolkit.clock import SystemClock
from tests.servers.certificates import make_certificate
from tests.servers.http import Answer, Request, served

# Who polls for the use of this code need not wait between two questions.
CODE = {"device_code": "d", "user_code": "ABC-123", "verification_uri": "https://login.example/device", "interval": 0}
ANN = "ann@contoso.example"
KEY = "k" * 32


def numbered_token(number: int) -> str:
    return jwt.encode({"preferred_username": ANN, "n": number}, "k" * 32)


@dataclass
class Entra:
    """An authority: says where its endpoints are, shows a code, and issues tokens or refuses with an error."""

    tenant: str = "contoso"
    username: str = ANN
    pending: list[str] = field(default_factory=list)
    error: str | None = None
    code: Any = field(default_factory=lambda: {**CODE, "expires_in": 900})
    seconds: int = 3600
    status: int = 200
    access_token: Callable[[int], str] = numbered_token
    requests: list[Request] = field(default_factory=list)
    address: str = ""

    @contextmanager
    def served(self, folder: Path) -> Iterator[Path]:
        """Serve it, and return the certificate that is to be trusted."""
        both, trusted = make_certificate(folder)
        with served(self, both) as self.address:
            yield trusted

    def asked(self, end: str) -> list[dict[str, Any]]:
        """Return what was sent to an endpoint."""
        return [request.body for request in self.requests if urlsplit(request.path).path.endswith(end)]

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        path = urlsplit(request.path).path
        if self.status != 200:
            return Answer({"error": "temporarily_unavailable"}, self.status)
        if not path.startswith(f"/{self.tenant}/"):
            return Answer({"error": "invalid_tenant", "error_description": "AADSTS90002: no such tenant"}, 400)
        if path.endswith("/openid-configuration"):
            return Answer(self._configuration())
        if path.endswith("/devicecode"):
            return Answer(self.code)
        if self.pending:
            return Answer({"error": self.pending.pop(0)}, 400)
        if self.error:
            return Answer({"error": self.error, "error_description": f"AADSTS1: {self.error}\r\nTrace: 1"}, 400)
        return Answer(self._issued(request.body["client_id"][0]))

    def _configuration(self) -> dict[str, str]:
        endpoints = f"{self.address}/{self.tenant}/oauth2/v2.0"
        return {
            "issuer": f"{self.address}/{self.tenant}/v2.0",
            "authorization_endpoint": f"{endpoints}/authorize",
            "token_endpoint": f"{endpoints}/token",
            "device_authorization_endpoint": f"{endpoints}/devicecode",
        }

    def _issued(self, client_id: str) -> dict[str, Any]:
        now = int(SystemClock().now().timestamp())
        about = {"iss": f"{self.address}/{self.tenant}/v2.0", "aud": client_id, "iat": now, "nbf": now}
        name = {"sub": "s", "oid": "o", "tid": "t", "preferred_username": self.username, "exp": now + 3600}
        info = base64.urlsafe_b64encode(json.dumps({"uid": "o", "utid": "t"}).encode()).decode().rstrip("=")
        number = len(self.asked("/token"))
        return {
            "token_type": "Bearer",
            "access_token": self.access_token(number),
            "refresh_token": f"r-{number}",
            "id_token": jwt.encode({**about, **name}, "k" * 32),
            "client_info": info,
            "scope": f"{client_id}/.default",
            "expires_in": self.seconds,
        }


def token_for(audience: str, number: int, ends_at: int) -> str:
    """Make a token as Entra does, which says what it is for and when it ends."""
    return jwt.encode({"aud": audience, "n": number, "exp": ends_at}, KEY)


def _numbered(_audience: str, number: int, _ends_at: int) -> str:
    return f"token-{number}"


@dataclass
class ManagedIdentity:
    """Issues a numbered token for whatever resource is asked for."""

    expires_on: int
    is_unknown: bool = False
    status: int = 200
    make: Callable[[str, int, int], str] = _numbered
    resources: list[str] = field(default_factory=list)
    client_ids: list[str | None] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        if self.is_unknown:
            return Answer({"error": "invalid_request", "error_description": "Identity not found"}, 400)
        if self.status != 200:
            return Answer({"error": "temporarily_unavailable"}, self.status)
        asked = parse_qs(urlsplit(request.path).query)
        (resource,) = asked["resource"]
        self.resources.append(resource)
        self.client_ids.append(next(iter(asked.get("client_id", ())), None))
        token = self.make(resource, len(self.resources), self.expires_on)
        return Answer({"access_token": token, "expires_on": str(self.expires_on), "token_type": "Bearer"})
