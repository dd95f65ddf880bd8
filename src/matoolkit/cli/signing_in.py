"""Whose token the command line shows (rule A3): one that was given, a person's who signed in, or the machine's."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from matoolkit.cli.answers import printable
from matoolkit.cli.config import own_folder
from matoolkit.cli.output import stderr
from matoolkit.client_settings import ClientSettings
from matoolkit.clock import Clock
from matoolkit.clouds import CLOUDS, Cloud
from matoolkit.errors import InvalidSettings, SignInNeeded
from matoolkit.tokens import KeptToken, LibraryMissing, NoToken, Token, token_of_process

if TYPE_CHECKING:
    from matoolkit.cli.person import Kept, Person

STORE = "the credential store"
_OLD_FILE = "tokens.json"


class Way(StrEnum):
    """How the command line is signed in."""

    GIVEN = "given"
    PERSON = "person"
    NOBODY = "nobody"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True)
class Standing:
    """Who is signed in, how, until when, and where that is kept."""

    way: Way
    account: str | None = None
    until: float | None = None
    kept_in: str | None = None


class SignIn:
    """The sign-in of this machine's user at one tenant; without a tenant there is none, and a local API needs none."""

    def __init__(self, settings: ClientSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._kept = KeptToken(self._issued, clock)

    def token(self) -> str | None:
        """Return a token that is good for a while, or none if nothing says that one is needed."""
        if self._settings.access_token:
            return self._settings.access_token.strip()
        return None if self._scope() is None else self._kept.token()

    def standing(self) -> Standing:
        """Say who is signed in, without asking anybody."""
        if self._settings.access_token:
            account, until = _read(self._settings.access_token)
            return Standing(Way.GIVEN, account, until)
        if self._scope() is None:
            return Standing(Way.NOT_NEEDED)
        person = self._person()
        kept = person and person.kept()
        return _standing(kept) if kept else Standing(Way.NOBODY)

    def log_in(self, tell: Callable[[str], None]) -> Standing:
        """Let a person sign in, and keep that; `tell` gets the sentence that says where to type which code."""
        if not self._settings.authority.startswith("https://"):
            problem = f"nobody signs in at {self._settings.authority}: who listens on the way could too"
            raise InvalidSettings([problem], hint="give an authority that begins with https://")
        own_folder()
        person = self._person()
        if person is None:
            raise InvalidSettings(
                ["nobody says where to sign in"],
                hint="`matoolkit config set tenant-id …` and `matoolkit config set client-id …`",
            )
        return _standing(person.log_in(tell))

    def log_out(self) -> bool:
        """Forget the person's sign-in; say whether there was one."""
        person = self._person()
        if person is None or not person.is_there:
            return False
        person.log_out()
        return True

    def _issued(self) -> Token:
        person = self._person()
        return (
            person.token()
            if person and person.is_there
            else _token_of_machine(str(self._scope()), CLOUDS[self._settings.cloud])
        )

    def _person(self) -> "Person | None":
        """Return the person's sign-in if the settings say where that would be."""
        from matoolkit.cli.person import Person, Tenant

        settings, scope = self._settings, self._scope()
        if settings.tenant_id is None or settings.client_id is None or scope is None:
            return None
        try:
            folder = own_folder()
        except InvalidSettings:
            # Who has no home folder cannot have signed in.
            return None
        _forget_earlier_version(folder)
        tenant = Tenant(settings.authority, settings.tenant_id, settings.client_id, scope)
        return Person(tenant, folder, self._clock)

    def _scope(self) -> str | None:
        settings = self._settings
        # Without `api://`: an application that asks for a token for itself has to name itself by its id alone.
        return settings.api_scope or (f"{settings.client_id}/.default" if settings.client_id else None)


def _forget_earlier_version(folder: Path) -> None:
    """Remove the file in which an earlier version kept tokens as plain text; who signed in with it does so again."""
    file = folder / _OLD_FILE
    try:
        file.unlink()
    except OSError:
        return
    stderr().print(f"{file} is removed: an earlier version kept its sign-in there; sign in with `matoolkit auth login`")


def _standing(kept: "Kept") -> Standing:
    where = STORE if kept.file is None else str(kept.file)
    return Standing(Way.PERSON, kept.account, kept.token.ends_at, where)


def _token_of_machine(scope: str, cloud: Cloud) -> Token:
    """Ask for a token of a workload or managed identity, or of the account that is signed in to the Azure CLI."""
    # The library would warn in several lines of every identity that this machine does not have.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    try:
        return token_of_process(scope, cloud)
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
