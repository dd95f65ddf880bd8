"""Signing in with a code that is typed into a browser on any machine (OAuth 2.0 device authorization grant)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from matoolkit.cli.answers import printable, reason
from matoolkit.clock import Clock
from matoolkit.errors import SignInFailed, SignInNeeded

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SECONDS = 30
_SLOWER = 5
_PENDING = ("authorization_pending", "slow_down")
_WORDS = {
    "authorization_declined": "it was declined",
    "access_denied": "it was declined",
    "expired_token": "the code was not used in time",
    "bad_verification_code": "the code is not known",
}


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, for how long it is good, and what a new one can be had for."""

    access_token: str
    refresh_token: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A sign-in at one tenant for one scope."""

    authority: str
    tenant_id: str
    client_id: str
    scope: str
    tell: Callable[[str], None]

    def issued(self, clock: Clock) -> Issued:
        """Show a code, and ask until it has been used."""
        _, begun = self._asked("devicecode", {"scope": f"{self.scope} offline_access"})
        code, shown = begun.get("device_code"), begun.get("user_code")
        if not isinstance(code, str) or not isinstance(shown, str):
            raise SignInFailed(_described(begun))
        where = printable(begun.get("verification_uri") or begun.get("verification_url"), 200)
        self.tell(f"open {where} and enter the code {printable(shown, 40)}")
        pause, end = _number(begun.get("interval"), 5), clock.monotonic() + _number(begun.get("expires_in"), 900)
        while clock.monotonic() < end:
            clock.sleep(pause)
            status, found = self._asked("token", {"grant_type": _GRANT, "device_code": code})
            if status == httpx.codes.OK:
                return _issued(found)
            if found.get("error") not in _PENDING:
                raise SignInFailed(_described(found), hint="begin again with `matoolkit auth login`")
            pause += _SLOWER if found["error"] == "slow_down" else 0
        raise SignInFailed(_WORDS["expired_token"], hint="begin again with `matoolkit auth login`")

    def renewed(self, refresh_token: str) -> Issued:
        """Have a new token for what came with the last."""
        asked = {"grant_type": "refresh_token", "refresh_token": refresh_token, "scope": f"{self.scope} offline_access"}
        status, found = self._asked("token", asked)
        if status != httpx.codes.OK:
            raise SignInNeeded(f"the sign-in has run out ({_described(found)})")
        renewed = _issued(found)
        return Issued(renewed.access_token, renewed.refresh_token or refresh_token, renewed.seconds)

    def _asked(self, what: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        address = f"{self.authority}/{quote(self.tenant_id, safe='')}/oauth2/v2.0/{what}"
        try:
            # Certificates are only read where there is something to verify.
            is_secure = address.startswith("https://")
            sent = {"client_id": self.client_id, **form}
            answer = httpx.post(address, data=sent, timeout=_SECONDS, verify=is_secure)
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise SignInFailed(f"{self.authority} does not answer: {reason(fault)}") from None
        try:
            found = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise SignInFailed(f"{self.authority} answers with status {answer.status_code} and no JSON object")
        return answer.status_code, found


def _issued(found: Mapping[str, Any]) -> Issued:
    token, renewal = found.get("access_token"), found.get("refresh_token")
    if not isinstance(token, str):
        raise SignInFailed("the answer holds no token")
    return Issued(token, renewal if isinstance(renewal, str) else None, _number(found.get("expires_in"), 3600))


def _described(found: Mapping[str, Any]) -> str:
    error = found.get("error")
    told = str(found.get("error_description") or error or "no reason given").strip().splitlines() or [""]
    return _WORDS.get(str(error), printable(told[0], 300))


def _number(value: Any, otherwise: float) -> float:
    try:
        return max(1.0, float(value))
    except (TypeError, ValueError):
        return otherwise
