"""Whose token the command line shows (rule A3): one that was given, a person's who signed in, or the machine's."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from matoolkit.cli.answers import printable
from matoolkit.cli.client import is_safe
from matoolkit.cli.config import own_folder
from matoolkit.cli.devicecode import DeviceCode, Issued
from matoolkit.cli.files import write_privately
from matoolkit.clock import Clock
from matoolkit.errors import InvalidSettings, SignInNeeded
from matoolkit.settings import ClientSettings
from matoolkit.tokens import LEAST_SECONDS_LEFT, KeptToken, LibraryMissing, NoToken, Token, token_of_process


class Way(StrEnum):
    """How the command line is signed in."""

    GIVEN = "given"
    PERSON = "person"
    NOBODY = "nobody"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True)
class Standing:
    """Who is signed in, how, and until when."""

    way: Way
    account: str | None = None
    until: float | None = None


class SignIn:
    """The sign-in of this machine's user at one tenant; without a tenant there is none, and a local API needs none."""

    def __init__(self, settings: ClientSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._machine = KeptToken(lambda: _token_of_machine(str(self._scope())), clock)

    def token(self) -> str | None:
        """Return a token that is good for a while, or none if nothing says that one is needed."""
        if self._settings.access_token:
            return self._settings.access_token.get_secret_value().strip()
        if self._scope() is None:
            return None
        kept = self._kept()
        if kept is None:
            return self._machine.token()
        if self._is_about_to_end(kept["expires_at"]):
            kept = self._renewed(kept)
        return str(kept["access_token"])

    def standing(self) -> Standing:
        """Say who is signed in, without asking anybody."""
        if self._settings.access_token:
            account, until = _read(self._settings.access_token.get_secret_value())
            return Standing(Way.GIVEN, account, until)
        if self._scope() is None:
            return Standing(Way.NOT_NEEDED)
        kept = self._kept()
        if kept is None:
            return Standing(Way.NOBODY)
        return Standing(Way.PERSON, *_read(str(kept["access_token"])))

    def log_in(self, device_code: DeviceCode) -> Standing:
        """Let a person sign in, and keep what was issued where only that person may read it."""
        kept = self._keep(device_code.issued(self._clock))
        return Standing(Way.PERSON, *_read(str(kept["access_token"])))

    def device_code(self, tell: Callable[[str], None]) -> DeviceCode:
        """Prepare a sign-in; `tell` gets the sentence that says where to type which code."""
        settings, scope = self._settings, self._scope()
        if settings.tenant_id is None or settings.client_id is None or scope is None:
            raise InvalidSettings(
                ["nobody says where to sign in"],
                hint="`matoolkit config set tenant-id …` and `matoolkit config set client-id …`",
            )
        if not is_safe(settings.authority):
            raise InvalidSettings([f"nobody signs in at {settings.authority}: whoever listens on the way could too"])
        return DeviceCode(settings.authority, settings.tenant_id, settings.client_id, scope, tell)

    def log_out(self) -> bool:
        """Forget the person's sign-in; say whether there was one."""
        known = _all_kept()
        if known.pop(self._name(), None) is None:
            return False
        write_privately(_cache_path(), orjson.dumps(known))
        return True

    def _scope(self) -> str | None:
        settings = self._settings
        # Without `api://`: an application that asks for a token for itself has to name itself by its id alone.
        return settings.api_scope or (f"{settings.client_id}/.default" if settings.client_id else None)

    def _name(self) -> str:
        settings = self._settings
        return f"{settings.authority} {settings.tenant_id} {settings.client_id} {self._scope()}"

    def _is_about_to_end(self, expires_at: float) -> bool:
        return expires_at - self._clock.now().timestamp() < LEAST_SECONDS_LEFT

    def _kept(self) -> dict[str, Any] | None:
        return _all_kept().get(self._name())

    def _renewed(self, kept: dict[str, Any]) -> dict[str, Any]:
        if not kept.get("refresh_token"):
            raise SignInNeeded("the sign-in has run out")
        issued = self.device_code(lambda _: None).renewed(str(kept["refresh_token"]))
        return self._keep(issued)

    def _keep(self, issued: Issued) -> dict[str, Any]:
        kept = {
            "access_token": issued.access_token,
            "refresh_token": issued.refresh_token,
            "expires_at": int(self._clock.now().timestamp() + issued.seconds),
        }
        write_privately(_cache_path(), orjson.dumps({**_all_kept(), self._name(): kept}))
        return kept


def _cache_path() -> Path:
    return own_folder() / "tokens.json"


def _all_kept() -> dict[str, dict[str, Any]]:
    """Read what is kept; a file that cannot be read is no sign-in, and the next one replaces it."""
    try:
        content = orjson.loads(_cache_path().read_bytes())
    except (OSError, orjson.JSONDecodeError, InvalidSettings):
        return {}
    if not isinstance(content, dict):
        return {}
    return {name: kept for name, kept in content.items() if _is_whole(kept)}


def _is_whole(kept: Any) -> bool:
    return (
        isinstance(kept, dict)
        and isinstance(kept.get("access_token"), str)
        and isinstance(kept.get("expires_at"), int | float)
    )


def _token_of_machine(scope: str) -> Token:
    """Ask for a token of a workload or managed identity, or of the account that is signed in to the Azure CLI."""
    # The library would warn in several lines of every identity that this machine does not have.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    try:
        return token_of_process(scope)
    except LibraryMissing:
        hint = "sign in with `matoolkit auth login`; for an identity of the machine, `pip install matoolkit[azure]`"
        raise SignInNeeded("nobody has signed in here", hint=hint) from None
    except NoToken:
        hint = "sign in with `matoolkit auth login`; in a pipeline set MATOOLKIT_ACCESS_TOKEN or give it an identity"
        raise SignInNeeded("nobody has signed in here, and this machine has no identity", hint=hint) from None


def _read(token: str) -> tuple[str | None, float | None]:
    """Look into a token for who and until when; whether it is genuine is for the server to say."""
    import jwt

    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        return None, None
    names = (claims.get(name) for name in ("preferred_username", "upn", "name", "appid", "azp", "oid"))
    account, until = next((printable(name, 200) for name in names if name), None), claims.get("exp")
    return account, until if isinstance(until, int | float) else None
