"""Sign-ins that have begun: what only this browser and we know until Entra sends the person back."""

import base64
import hashlib
import secrets
from dataclasses import asdict, dataclass
from datetime import timedelta

from fastapi import Response
from starlette.requests import Request

from matoolkit.web.keeping import Keeping

LASTING = timedelta(minutes=15)
_ENTRY = "matoolkit-entry-"
# Each tab has a cookie of its own, and a browser that was closed in the middle of it leaves one behind.
_MOST_KEPT = 5
_SHOWN = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One sign-in on its way: which it is, what proves that we began it, and where the person wants to go."""

    state: str
    nonce: str
    verifier: str
    to: str

    @classmethod
    def begun(cls, to: str) -> "Entry":
        """Return a new one."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48), to)

    @property
    def challenge(self) -> str:
        """What Entra is shown of the verifier (PKCE, S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def keep_entry(keeping: Keeping, request: Request, response: Response, entry: Entry) -> None:
    """Let the browser keep a sign-in that has begun; when there are many, those before are given up."""
    before = keeping.names(request, _ENTRY)
    for name in before if len(before) >= _MOST_KEPT else ():
        keeping.forget(response, name)
    keeping.put(response, _name(entry.state), asdict(entry), LASTING)


def kept_entry(keeping: Keeping, request: Request, state: str) -> Entry | None:
    """Return the sign-in that has begun in this browser with a state."""
    found = keeping.found(request, _name(state))
    entry = Entry(**found) if found else None
    return entry if entry and secrets.compare_digest(entry.state.encode(), state.encode()) else None


def forget_entry(keeping: Keeping, response: Response, entry: Entry) -> None:
    """Let the browser forget a sign-in, so that it cannot be used again."""
    keeping.forget(response, _name(entry.state))


def _name(state: str) -> str:
    return f"{_ENTRY}{state[:_SHOWN]}"
