"""Who the worker is to the tenant: tokens for an API, fetched once for all threads and again when one is refused."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC
from matoolkit.pauses import Pause
from matoolkit.tokens import KeptToken, LibraryMissing, Token, Tokens, first_line
from matoolkit.worker.clients.failures import SignInFailed
from matoolkit.worker.failures import SecretUnavailable

# A sign-in that has just failed is not tried again by every thread that waits for it.
_FAILED_SECONDS = 5
# An answer may take so long; the library would wait for minutes, and try again by itself.
_PATIENCE: dict[str, Any] = {"connection_timeout": 10, "read_timeout": 20, "retry_total": 1}


class TenantTokens(Tokens, Protocol):
    """Supplies the tokens of one API of the tenant, and says what they allow."""

    def claims(self) -> Mapping[str, Any]:
        """Return what the present token says of the application; nothing if it cannot be read."""


class NumberedTokens:
    """Tokens for the simulated tenant, which takes any that has not expired."""

    def __init__(self, word: str = "simulated") -> None:
        self._word = word
        self._number = 1
        self._lock = threading.Lock()

    def token(self, refused: str | None = None) -> str:
        """Return the present token, or the next if that was refused."""
        with self._lock:
            if refused == f"{self._word}-{self._number}":
                self._number += 1
            return f"{self._word}-{self._number}"


class SimulatedTokens:
    """Numbered tokens for one API of a simulated tenant, which tells itself what its application has been granted."""

    def __init__(self, numbered: NumberedTokens, claims: Callable[[], Mapping[str, Any]]) -> None:
        self._numbered = numbered
        self._claims = claims

    def token(self, refused: str | None = None) -> str:
        """Return the present token, or the next if that was refused."""
        return self._numbered.token(refused)

    def claims(self) -> Mapping[str, Any]:
        """Ask the tenant."""
        return self._claims()


class CertificateTokens:
    """Tokens of an Entra application that signs in with a certificate, which is read for each sign-in."""

    def __init__(
        self,
        tenant_id: str,
        app_id: str,
        certificate: Callable[[], bytes],
        scope: str,
        clock: Clock,
        conceal: Callable[[str], None] = lambda _: None,
        authority: str = PUBLIC.authority,
    ) -> None:
        self._identity = (tenant_id, app_id, certificate)
        self._scope = scope
        self._authority = authority
        self._conceal = conceal
        self._kept = KeptToken(self._renewed, clock)
        self._failure = ""
        self._pause = Pause(clock)

    def token(self, refused: str | None = None) -> str:
        """Return the last token while it is good; of the threads that need a new one, one asks for it."""
        return self._kept.token(refused)

    def _renewed(self) -> Token:
        if self._pause.is_on:
            raise SignInFailed(self._failure)
        try:
            issued = self._issued()
        except SignInFailed as failure:
            self._failure = failure.message
            self._pause.extend(_FAILED_SECONDS)
            raise
        self._conceal(issued.text)
        return issued

    def claims(self) -> Mapping[str, Any]:
        """Read the token, which came straight from Entra, without checking its signature."""
        import jwt

        try:
            return dict(jwt.decode(self.token(), options={"verify_signature": False}))
        except jwt.PyJWTError:
            return {}

    def _issued(self) -> Token:
        tenant_id, app_id, certificate = self._identity
        try:
            from azure.core.exceptions import AzureError
            from azure.identity import CertificateCredential
        except ImportError:
            raise SignInFailed(f"{LibraryMissing()}: install matoolkit[azure]") from None
        try:
            data = certificate()
        except SecretUnavailable as fault:
            raise SignInFailed(f"the worker's certificate cannot be read: {fault.message}") from None
        try:
            # A new one each time: an old one would hand out the refused token again, from its own cache.
            with CertificateCredential(
                tenant_id, app_id, certificate_data=data, authority=self._authority, **_PATIENCE
            ) as credential:
                issued = credential.get_token(self._scope)
        except (AzureError, ValueError) as fault:
            why = first_line(fault)[:300]
            raise SignInFailed(f"the worker's application cannot sign in to the tenant: {why}") from None
        return Token(issued.token, issued.expires_on)
