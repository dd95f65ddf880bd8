"""Tokens of Entra: kept until shortly before they end, and issued to the identity of this process."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from matoolkit.clock import Clock

# A token is not begun with when it is about to end: the call that shows it may take a while.
LEAST_SECONDS_LEFT = 300


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
        """Return the last token while it is good for a while, else a new one."""
        with self._lock:
            if self._last is None or self._last.text == refused or not self._last.is_good(self._clock):
                self._last = self._issue()
            return self._last.text


class NoToken(Exception):
    """This process has no identity that gets a token; the text says why in one line."""


class LibraryMissing(NoToken):
    """The library that signs in with Entra is not installed."""

    def __init__(self) -> None:
        super().__init__("signing in with Entra needs a library that is not installed")


def token_of_process(scope: str) -> Token:
    """Ask for a token for this process.

    The identity is the first that azure-identity finds: the variables `AZURE_CLIENT_ID` and so on, a workload or
    managed identity, or the account that is signed in to the Azure CLI. No connection stays open.
    """
    try:
        from azure.core.exceptions import AzureError
        from azure.identity import DefaultAzureCredential
    except ImportError:
        raise LibraryMissing from None
    try:
        with DefaultAzureCredential() as credential:
            issued = credential.get_token(scope)
    except AzureError as fault:
        raise NoToken(first_line(fault)) from fault
    return Token(issued.token, issued.expires_on)


def first_line(fault: Exception) -> str:
    """Shorten what a library says to its first line; the others are traces."""
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0]
