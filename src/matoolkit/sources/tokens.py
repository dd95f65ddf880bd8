"""The token for a source: one that was given, or one that Entra issues to this process."""

from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC, Cloud
from matoolkit.errors import SourceFailed
from matoolkit.tokens import KeptToken, LibraryMissing, NoToken, Token, token_of_process


class GivenToken:
    """A token from the environment. It cannot be renewed."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self, refused: str | None = None) -> str:  # noqa: ARG002
        """Return the token."""
        return self._token


def entra_tokens(scope: str, clock: Clock, cloud: Cloud = PUBLIC) -> KeptToken:
    """Return the tokens of the process's own Entra identity, for one scope."""
    return KeptToken(lambda: _issued(scope, cloud), clock)


def _issued(scope: str, cloud: Cloud) -> Token:
    try:
        return token_of_process(scope, cloud)
    except LibraryMissing as missing:
        raise SourceFailed(str(missing), hint="install matoolkit[azure]") from None
    except NoToken as fault:
        raise SourceFailed(
            f"no token for {scope}: {fault}",
            hint="give the process an Entra identity: a managed identity, the AZURE_* variables, or az login",
        ) from fault
