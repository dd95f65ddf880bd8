"""What signing in lets a browser keep: no script can read it, no other site can set it, nobody can make it up."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import Response
from starlette.requests import Request

from matoolkit.web.sealing import Seal

# A cookie of this name is of this very host and came over TLS; the browser refuses any other.
_HOST = "__Host-"


@dataclass(frozen=True, slots=True)
class Keeping:
    """Sealed cookies of one kind."""

    seal: Seal
    is_https: bool

    def put(self, response: Response, name: str, content: Mapping[str, Any], lasting: timedelta) -> None:
        """Let the browser keep something until it is closed; it is good for a while."""
        sealed = self.seal.sealed(name, content, lasting)
        response.set_cookie(self.name(name), sealed, httponly=True, samesite="lax", secure=self.is_https)

    def found(self, request: Request, name: str) -> dict[str, Any] | None:
        """Return what the browser keeps under a name, if it is still good."""
        return self.seal.opened(name, request.cookies.get(self.name(name), ""))

    def forget(self, response: Response, name: str) -> None:
        """Let the browser forget something."""
        response.delete_cookie(self.name(name), httponly=True, samesite="lax", secure=self.is_https)

    def is_kept(self, request: Request, name: str) -> bool:
        """Tell whether the browser keeps something under a name, good or not."""
        return self.name(name) in request.cookies

    def names(self, request: Request, beginning: str) -> list[str]:
        """Return the names that begin in a way."""
        whole = self.name(beginning)
        skipped = len(whole) - len(beginning)
        return [name[skipped:] for name in request.cookies if name.startswith(whole)]

    def name(self, name: str) -> str:
        """Return the name that the browser knows."""
        return f"{_HOST if self.is_https else ''}{name}"
