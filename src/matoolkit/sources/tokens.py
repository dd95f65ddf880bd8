"""What a source shows to prove who asks: a token that was given, or one that Entra issues to this process."""

from typing import TYPE_CHECKING, Protocol

from matoolkit.clock import Clock
from matoolkit.errors import SourceFailed

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken

# A token is not begun with when it is about to end.
_LEAST_SECONDS_LEFT = 300


class Tokens(Protocol):
    """Supplies the token of one source."""

    def token(self, *, fresh: bool = False) -> str:
        """Return a token; a fresh one if the last was refused."""


class GivenToken:
    """A token that somebody put into the environment. There is no fresher one."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self, *, fresh: bool = False) -> str:  # noqa: ARG002
        """Return the token."""
        return self._token


class EntraTokens:
    """Tokens of the process's own Entra identity, for one scope.

    The identity is whatever azure-identity finds: a managed or workload identity, the variables `AZURE_CLIENT_ID` and
    so on, or whoever is signed in to the Azure CLI. No connection stays open between two tokens.
    """

    def __init__(self, scope: str, clock: Clock) -> None:
        self._scope = scope
        self._clock = clock
        self._last: AccessToken | None = None

    def token(self, *, fresh: bool = False) -> str:
        """Return the last token while it is good for a while, else ask for one."""
        soon = self._clock.now().timestamp() + _LEAST_SECONDS_LEFT
        if fresh or self._last is None or self._last.expires_on < soon:
            self._last = _issued(self._scope)
        return self._last.token


def _issued(scope: str) -> "AccessToken":
    try:
        from azure.core.exceptions import AzureError
        from azure.identity import DefaultAzureCredential
    except ImportError:
        message = "signing in with Entra needs a library that is not installed"
        raise SourceFailed(message, hint="install matoolkit[azure]") from None
    try:
        with DefaultAzureCredential() as credential:
            return credential.get_token(scope)
    except AzureError as fault:
        why = (str(fault).strip().splitlines() or [type(fault).__name__])[0]
        raise SourceFailed(
            f"no token for {scope}: {why}",
            hint="give the process an Entra identity: a managed identity, the AZURE_* variables, or az login",
        ) from fault
