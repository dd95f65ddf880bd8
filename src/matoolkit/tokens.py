"""Tokens of Entra: kept until shortly before they end, and issued to the identity of this process."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC, Cloud

# A token is not begun with when it is about to end: the call that shows it may take a while.
LEAST_SECONDS_LEFT = 300
# What needs a token tries again by itself, and must not stand still for minutes.
_MORE_TRIES = 2
_IDENTITY_OF_HOST = "//169.254.169.254/"
_PASSING = (408, 410, 429)
_FIRST_FAULT = 500


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and when it ends, in seconds since 1970. It never shows its text by itself."""

    text: str = field(repr=False)
    ends_at: float

    def is_good(self, clock: Clock) -> bool:
        """Tell whether the token lasts long enough to begin with."""
        return self.ends_at - clock.now().timestamp() >= LEAST_SECONDS_LEFT


class Tokens(Protocol):
    """Supplies the tokens of one service."""

    def token(self, refused: str | None = None) -> str:
        """Return a token, but not the refused one if the service refused one."""


class KeptToken:
    """The token of one service, for all threads. One thread asks for it, again before it ends or if it is refused."""

    def __init__(self, issue: Callable[[], Token], clock: Clock) -> None:
        self._issue = issue
        self._clock = clock
        self._lock = threading.Lock()
        self._last: Token | None = None

    def token(self, refused: str | None = None) -> str:
        """Return the text of a token that is good for a while."""
        return self.good(refused).text

    def good(self, refused: str | None = None) -> Token:
        """Return the last token while it is good for a while, else a new one."""
        with self._lock:
            if self._last is None or self._last.text == refused or not self._last.is_good(self._clock):
                self._last = self._issue()
            return self._last


class NoToken(Exception):
    """This process has no identity that gets a token; the text says why in one line."""


class NoTokenNow(NoToken):
    """The service that issues tokens does not answer, or is busy: the same identity may get one later."""


class LibraryMissing(NoToken):
    """The library that signs in with Entra is not installed."""

    def __init__(self) -> None:
        super().__init__("signing in with Entra needs a library that is not installed")


def authority_of(cloud: Cloud) -> str:
    """Say where an identity of a cloud gets its tokens; azure-identity has a variable for it, which wins."""
    return os.environ.get("AZURE_AUTHORITY_HOST") or cloud.authority


def token_of_process(scope: str, cloud: Cloud = PUBLIC, client_id: str | None = None) -> Token:
    """Ask for a token for this process.

    The identity is the first that azure-identity finds: the variables `AZURE_CLIENT_ID` and so on, a workload or
    managed identity, or the account that is signed in to the Azure CLI. A client id says which workload or managed
    identity is meant, if the process has several. No connection stays open.
    """
    try:
        from azure.core.exceptions import AzureError
        from azure.identity import DefaultAzureCredential
    except ImportError:
        raise LibraryMissing from None
    transport = _watched_transport()
    chosen = {"authority": authority_of(cloud)}
    if client_id is not None:
        chosen["managed_identity_client_id"] = client_id
    with DefaultAzureCredential(transport=transport, retry_total=_MORE_TRIES, **chosen) as credential:
        try:
            issued = credential.get_token(scope)
        except AzureError as fault:
            kind = NoTokenNow if transport.is_away else NoToken
            raise kind(why_no_token(str(fault), len(credential.credentials))) from fault
    return Token(issued.token, issued.expires_on)


def _watched_transport() -> Any:
    """Return what sends requests for tokens, and notes whether the last one got no answer or one that passes.

    azure-identity tells all failures alike.
    """
    from azure.core.pipeline.transport import RequestsTransport

    class Watched(RequestsTransport):  # type: ignore[misc]  # the package does not say what it is
        is_away = False

        def send(self, request: Any, **options: Any) -> Any:
            # Where there is no managed identity, nobody answers at its address.
            self.is_away = _IDENTITY_OF_HOST not in request.url
            response = super().send(request, **options)
            self.is_away = response.status_code in _PASSING or response.status_code >= _FIRST_FAULT
            return response

    return Watched()


def why_no_token(said: str, looked_for: int) -> str:
    """Say in one line why no identity got a token: each that was tried has a line, and the last one was refused."""
    tried = [line.strip() for line in said.splitlines() if line.startswith("\t")]
    if not tried:
        return first_line(said)
    if 1 < looked_for == len(tried):
        return "no identity was found"
    return tried[-1]


class IssuedToken(NamedTuple):
    """A token as Microsoft's driver reads it."""

    token: str


class OneToken:
    """Hands Microsoft's driver our token. The driver always asks for one for Azure SQL in the public cloud."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, _scope: str) -> IssuedToken:
        """Return the token, whatever scope is asked for."""
        return IssuedToken(self._token)


def first_line(fault: Exception | str) -> str:
    """Shorten what a library says to its first line; the others are traces."""
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0]
