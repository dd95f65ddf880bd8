"""Signing in at Entra: the authorization code flow with PKCE, made by the server. Tokens end here."""

import logging
import re
import threading
from typing import Any
from urllib.parse import urlencode

import httpx

from matoolkit.clock import Clock
from matoolkit.doors.entra import Entra
from matoolkit.doors.identity import Identity
from matoolkit.errors import EntryBroken, EntryRefused, EntryUnavailable, MatoolkitError, NotSignedIn
from matoolkit.outages import Outage
from matoolkit.web.entries import Entry
from matoolkit.web.keeping import Keeping
from matoolkit.web.proving import Proof
from matoolkit.web.sessions import Sessions

DONE, SIGNED_OUT = "/signin/done", "/signed-out"
# Who somebody is, and nothing else: with what else is issued, nothing can be done, and it is dropped.
_SCOPE = "openid profile"
_SECONDS = 10
# Requests share few threads, so only some of them may wait for Entra.
_MOST_WAITING = 8
_BUSY = frozenset({408, 429})
_FIRST_FAULT = 500
_NUMBER = re.compile(r"AADSTS\d{3,9}\b")
_NOT_ACCEPTED = "Entra does not accept what this application asks for"
_DECLINED = "it was declined, or this person is not assigned to the application"
# What Entra's words mean. With the others Entra does not know the application, or does not like what it asked for.
_OF_PERSON = {
    "access_denied": _DECLINED,
    "consent_required": "nobody has consented to this application",
    "interaction_required": "Entra wants something else of this person first",
    "invalid_grant": "this sign-in was already used, or took too long",
    "login_required": "Entra wants this person to sign in there again",
}
_PASSING = frozenset({"server_error", "temporarily_unavailable"})

log = logging.getLogger(__name__)


class Entrance:
    """The way to Entra and back, for the application that the API is."""

    def __init__(
        self, entra: Entra, address: str, proof: Proof, sessions: Sessions, keeping: Keeping, clock: Clock
    ) -> None:
        self.sessions = sessions
        self.keeping = keeping
        self.address = address
        self._entra = entra
        self._proof = proof
        self._authority = f"{entra.cloud.authority}/{entra.tenant_id}/oauth2/v2.0"
        self._outage = Outage("signing people in at Entra", log, clock)
        self._places = threading.BoundedSemaphore(_MOST_WAITING)

    def way_in(self, entry: Entry, *, choose: bool) -> str:
        """Return where a person signs in, perhaps with a choice of accounts."""
        asked = {
            "client_id": self._entra.client_id,
            "response_type": "code",
            "response_mode": "query",
            "redirect_uri": self.address + DONE,
            "scope": _SCOPE,
            "state": entry.state,
            "nonce": entry.nonce,
            "code_challenge": entry.challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._authority}/authorize?{urlencode(asked | ({'prompt': 'select_account'} if choose else {}))}"

    def way_out(self) -> str:
        """Return where a person signs out of Entra too."""
        return f"{self._authority}/logout?{urlencode({'post_logout_redirect_uri': self.address + SIGNED_OUT})}"

    def person(self, code: str, entry: Entry) -> Identity:
        """Return who came back with a code, or refuse."""
        answer = self._redeemed(code, entry)
        id_token = answer.get("id_token")
        if not isinstance(id_token, str):
            raise EntryRefused("Entra does not say who it is")
        try:
            return self._entra.person(id_token, entry.nonce)
        except NotSignedIn as refused:
            # Not that error itself: it would begin another sign-in, and that one the next.
            raise EntryRefused(refused.message.removeprefix("not signed in: ")) from None

    def refused(self, error: str, description: str) -> MatoolkitError:
        """Return what an error means with which Entra sent somebody back.

        Anybody can write an address, so of the description only a number is told.
        """
        number = _number_in(description)
        if error in _PASSING:
            return EntryUnavailable(f"Entra has a fault{number}")
        return EntryRefused(f"{_OF_PERSON.get(error, _NOT_ACCEPTED)}{number}")

    def _redeemed(self, code: str, entry: Entry) -> dict[str, Any]:
        """Return what Entra issues for a code."""
        address = f"{self._authority}/token"
        asked = {
            "client_id": self._entra.client_id,
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.address + DONE,
            "code_verifier": entry.verifier,
            "scope": _SCOPE,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        }
        if not self._places.acquire(blocking=False):
            raise EntryUnavailable("too many people sign in at the same time")
        try:
            answer = httpx.post(address, data=asked | {"client_assertion": self._proof(address)}, timeout=_SECONDS)
        except EntryUnavailable as away:
            self._outage.failed(MatoolkitError(away.message))
            raise
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise self._away(type(fault).__name__) from None
        finally:
            self._places.release()
        return self._read(answer)

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        if answer.status_code in _BUSY or answer.status_code >= _FIRST_FAULT:
            raise self._away(f"the answer is {answer.status_code}")
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self._away("the answer is not one of Entra's")
        self._outage.worked()
        if not answer.is_success:
            raise self._not_redeemed(str(found.get("error")), str(found.get("error_description")))
        return found

    def _not_redeemed(self, error: str, description: str) -> MatoolkitError:
        """Return what an error means that Entra itself has told us: it may be about the application."""
        if error in _OF_PERSON or error in _PASSING:
            return self.refused(error, description)
        return EntryBroken(f"{_NOT_ACCEPTED}{_number_in(description)}")

    def _away(self, why: str) -> EntryUnavailable:
        self._outage.failed(MatoolkitError(why))
        return EntryUnavailable("Entra does not answer as it should")


def _number_in(description: str) -> str:
    found = _NUMBER.search(description)
    return f" ({found[0]})" if found else ""
