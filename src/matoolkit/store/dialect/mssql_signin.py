"""Signing in to Azure SQL with a token of Entra, instead of a password.

The driver would fetch a token by itself, but only one for the public cloud, and it would keep a connection whose token
has ended. So we fetch it: for the cloud that the server is in, kept until shortly before it ends, and a connection
whose token has ended is replaced when it is next taken from the pool.
"""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy.engine import URL

from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC, Cloud
from matoolkit.errors import InvalidDatabaseUrl, SignInRefused, StoreUnavailable
from matoolkit.store.dialect.mssql_errors import told_apart
from matoolkit.tokens import KeptToken, LibraryMissing, NoToken, NoTokenNow, OneToken, Token, token_of_process

_ENDS_AT = "matoolkit_token_ends_at"
_OTHER_SIGN_INS = frozenset({"uid", "pwd", "user", "password", "trusted_connection", "authentication"})
_OPEN_TO_LISTENERS = {"encrypt": ("no", "false", "optional"), "trustservercertificate": ("yes", "true")}
_AWAY = "check that this process reaches Entra or the identity endpoint of its host; work resumes when it does"
_NO_IDENTITY = "give the process an Entra identity: a managed identity, the AZURE_* variables, or az login"


class EntraSignIn:
    """Opens connections in the name of the process's own identity."""

    def __init__(self, url: URL, clock: Clock, cloud: Cloud = PUBLIC) -> None:
        # The name of an identity is not that of a login: the server would refuse both together.
        self.url = URL.create(url.drivername, host=url.host, port=url.port, database=url.database, query=url.query)
        self._cloud = cloud
        # The names of a cloud's servers end with what its tokens are for.
        self._scope = f"https://{cloud.sql}/.default"
        self._client_id = url.username
        self._clock = clock
        self._tokens = KeptToken(self._issued, clock)
        self._refused: str | None = None

    def connect(self, connect: Callable[..., Any], info: dict[Any, Any]) -> Any:
        """Open a connection with a token that lasts a while, and note in its `info` when the token ends."""
        token = self._tokens.good(self._refused)
        try:
            connection = connect(token_provider=OneToken(token.text))
        except Exception as fault:
            if told_apart(str(fault)) is SignInRefused:
                self._refused = token.text
            raise
        info[_ENDS_AT] = token.ends_at
        return connection

    def has_ended(self, info: Mapping[Any, Any]) -> bool:
        """Tell whether the token of a connection has ended."""
        return bool(info[_ENDS_AT] <= self._clock.now().timestamp())

    def _issued(self) -> Token:
        try:
            return token_of_process(self._scope, self._cloud, self._client_id)
        except LibraryMissing as missing:
            raise SignInRefused(str(missing), hint="pip install 'matoolkit[azure]'") from None
        except NoTokenNow as fault:
            raise StoreUnavailable(f"no token for {self._scope}: {fault}", hint=_AWAY) from None
        except NoToken as fault:
            raise SignInRefused(f"no token for {self._scope}: {fault}", hint=_NO_IDENTITY) from None


def sign_in_of(url: URL, clock: Clock, cloud: Cloud = PUBLIC) -> EntraSignIn | None:
    """Tell how an address wants to sign in: without a password it is by token, unless it says otherwise."""
    given = {name.lower(): str(value).lower() for name, value in url.query.items()}
    if given.get("authentication", "").replace(" ", "").startswith("activedirectory"):
        hint = "leave Authentication out: without a password, matoolkit signs in with the identity of the process"
        raise InvalidDatabaseUrl("the driver cannot renew the tokens of Entra that it fetches by itself", hint=hint)
    if url.password is not None or _OTHER_SIGN_INS & given.keys():
        return None
    if url.username and not _is_client_id(url.username):
        hint = "write mssql://CLIENT-ID@HOST/DATABASE for one of several identities, or add a password"
        raise InvalidDatabaseUrl("a name without a password must be the client id of an identity", hint=hint)
    if any(given.get(name) in values for name, values in _OPEN_TO_LISTENERS.items()):
        hint = "leave out Encrypt and TrustServerCertificate"
        raise InvalidDatabaseUrl("a token is only shown to a server that proves who it is", hint=hint)
    if wrong := cloud.elsewhere(url.host or ""):
        raise InvalidDatabaseUrl(f"its server {wrong}", hint="set MATOOLKIT_CLOUD to the cloud of the server")
    return EntraSignIn(url, clock, cloud)


def _is_client_id(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
