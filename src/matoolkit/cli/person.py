"""A person's sign-in at Entra (rule A3): msal makes it, and msal-extensions keeps it.

It is kept in the platform's credential store, or in a private file where there is none. Both libraries are imported
only when they are needed, because that takes a tenth of a second.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from matoolkit.cli.answers import printable, reason
from matoolkit.cli.files import make_private_folder, write_privately
from matoolkit.clock import Clock
from matoolkit.errors import SignInFailed, SignInNeeded
from matoolkit.tokens import Token

_SECONDS = 30
_AGAIN = "begin again with `matoolkit auth login`"
_WORDS = {
    "authorization_pending": "the code was not used in time",
    "slow_down": "the code was not used in time",
    "expired_token": "the code was not used in time",
    "code_expired": "the code was not used in time",
    "authorization_declined": "it was declined",
    "access_denied": "it was declined",
    "bad_verification_code": "the code is not known",
}
# What msal runs into when an answer is not one of Entra's.
_OF_NONSENSE = (AttributeError, KeyError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Tenant:
    """Where somebody signs in, as which application, and for what."""

    authority: str
    tenant_id: str
    client_id: str
    scope: str

    def name(self) -> str:
        """Return a name for files that no other tenant, application or scope has."""
        told = f"{self.authority} {self.tenant_id} {self.client_id} {self.scope}"
        return f"sign-in-{sha256(told.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Kept:
    """A sign-in: who signed in, the last token, and the file it is in if there is no credential store."""

    account: str | None
    token: Token
    file: Path | None


class Person:
    """The sign-in of this machine's user at one tenant."""

    def __init__(self, tenant: Tenant, folder: Path, clock: Clock) -> None:
        self._tenant = tenant
        self._clock = clock
        # This file says that the credential store holds the sign-in. On Windows it is encrypted and is the store.
        self._mark = folder / f"{tenant.name()}.stored"
        self._file = folder / f"{tenant.name()}.json"

    @property
    def is_there(self) -> bool:
        """Whether somebody has signed in; nothing is imported or opened to know it."""
        return self._mark.exists() or self._file.exists()

    def log_in(self, tell: Callable[[str], None]) -> Kept:
        """Show a code and wait until it has been used; `tell` gets the sentence that says where to type which code."""
        from msal import SerializableTokenCache

        # A new cache, because the new sign-in replaces the old one.
        cache = SerializableTokenCache()
        with self._application(cache) as application:
            flow = application.initiate_device_flow([self._tenant.scope])
            if "user_code" not in flow:
                raise SignInFailed(_described(flow))
            where = printable(flow.get("verification_uri") or flow.get("verification_url"), 200)
            tell(f"open {where} and enter the code {printable(flow['user_code'], 40)}")
            found = application.acquire_token_by_device_flow(flow)
        if "access_token" not in found:
            raise SignInFailed(_described(found), hint=_AGAIN)
        self._keep(cache.serialize())
        kept = self.kept()
        if kept is None:
            raise SignInFailed("the answer holds no token")
        return kept

    def kept(self) -> Kept | None:
        """Return what is kept, without asking anybody; a sign-in that cannot be read is none."""
        if not self.is_there:
            return None
        file = self._file if self._file.exists() else None
        try:
            # The form is the same in all of Microsoft's libraries, and reading it here starts none of them.
            content = orjson.loads(file.read_bytes() if file else self._stored().load())
            issued = content["AccessToken"].values()
            tokens = [Token(str(one["secret"]), float(one["expires_on"])) for one in issued]
            names = [account.get("username") for account in content.get("Account", {}).values()]
            last = max(tokens, key=lambda token: token.ends_at)
        except (*_OF_NONSENSE, OSError):
            return None
        return Kept(next((printable(name, 200) for name in names if name), None), last, file)

    def token(self) -> Token:
        """Return the kept token while it is good for a while, else a new one."""
        kept = self.kept()
        if kept is None:
            raise SignInNeeded("the sign-in that is kept cannot be read")
        return kept.token if kept.token.is_good(self._clock) else self._renewed()

    def log_out(self) -> None:
        """Forget the sign-in; the mark stays until the credential store is cleared."""
        self._file.unlink(missing_ok=True)
        if self._mark.exists():
            if not self._is_stored("{}"):
                hint = "unlock the credential store and run `matoolkit auth logout` again"
                raise SignInNeeded("an earlier sign-in is still in the credential store, which is locked", hint=hint)
            self._mark.unlink(missing_ok=True)

    def _renewed(self) -> Token:
        from msal_extensions import PersistedTokenCache

        cache = PersistedTokenCache(self._in_file() if self._file.exists() else self._stored())
        with self._application(cache) as application:
            account = next(iter(application.get_accounts()), None)
            scopes = [self._tenant.scope]
            found = application.acquire_token_silent_with_error(scopes, account, force_refresh=True) or {}
        if "access_token" not in found:
            why = f" ({_described(found)})" if found else ""
            raise SignInNeeded(f"the sign-in has run out{why}")
        return Token(found["access_token"], self._clock.now().timestamp() + float(found.get("expires_in", 0)))

    @contextmanager
    def _application(self, cache: Any) -> Iterator[Any]:
        """Open msal's application, and put into words what goes wrong with it."""
        from msal import PublicClientApplication
        from msal.exceptions import MsalError
        from msal_extensions import LockError

        authority, tenant_id = self._tenant.authority, self._tenant.tenant_id
        try:
            with httpx.Client(timeout=_SECONDS) as http:
                yield PublicClientApplication(
                    self._tenant.client_id,
                    authority=f"{authority}/{quote(tenant_id, safe='')}",
                    token_cache=cache,
                    http_client=http,
                    # The settings name the authority; Microsoft's public cloud need not know it.
                    instance_discovery=False,
                )
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise SignInFailed(f"{authority} does not answer: {reason(fault)}") from None
        except MsalError as fault:
            raise SignInFailed(f"{authority} has a fault: {printable(fault, 300)}") from None
        except (LockError, OSError) as fault:
            # Another command holds the lock, or the store was locked meanwhile.
            raise SignInFailed(f"what was issued cannot be kept: {reason(fault)}", hint="try again") from None
        except _OF_NONSENSE:
            # Their texts may hold what was answered.
            why = f"{authority} does not know the tenant {tenant_id}, or is no authority of Entra"
            raise SignInFailed(why) from None

    def _in_file(self) -> Any:
        from msal_extensions import FilePersistence

        class PrivateFile(FilePersistence):  # type: ignore[misc]
            """The library's own would keep the mode of a file that is there, and could be read half written."""

            def save(self, content: str) -> None:
                write_privately(Path(self.get_location()), content.encode())

        return PrivateFile(str(self._file))

    def _stored(self) -> Any:
        from msal_extensions import build_encrypted_persistence

        try:
            return build_encrypted_persistence(str(self._mark))
        except Exception:  # noqa: BLE001 - the bindings of each platform raise errors of their own
            raise SignInNeeded("the credential store that holds the sign-in cannot be opened") from None

    def _is_stored(self, content: str) -> bool:
        """Put a sign-in into the credential store, and say whether there is one that took it."""
        try:
            self._stored().save(content)
        except Exception:  # noqa: BLE001 - see above; a store that is locked fails here
            return False
        return self._mark.exists()

    def _keep(self, content: str) -> None:
        """Keep a sign-in in the credential store; where there is none, in a file that only its owner may read."""
        make_private_folder(self._mark.parent)
        if self._is_stored(content):
            self._file.unlink(missing_ok=True)
        else:
            # A mark of an earlier sign-in stays, so that logging out clears the store too.
            self._in_file().save(content)


def _described(found: Mapping[str, Any]) -> str:
    error = found.get("error")
    told = str(found.get("error_description") or error or "no reason given").strip().splitlines() or [""]
    return _WORDS.get(str(error), printable(told[0], 300))
