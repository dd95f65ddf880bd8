"""Exchange Online without PowerShell: cmdlets over HTTPS.

This is the call that Microsoft's own module makes, and Microsoft does not promise it to others; `Exchange` is all that
the functions know of it, so that another way can take its place.
"""

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import uuid4

import httpx
import orjson

from matoolkit.worker.clients.api import Answer, Api, told
from matoolkit.worker.clients.failures import ObjectMissing, ObjectTaken, Rejected, TenantFailed, UnreadableAnswer
from matoolkit.worker.clients.identifiers import path

_ANCHOR = "APP:SystemMailbox{bb558c35-97f1-4cb9-8ff7-d53741dc928c}@"
_OK, _NOT_FOUND = 200, 404
_MOST_PAGES = 10_000
_MISSING = ("ManagementObjectNotFoundException",)
_TAKEN = ("ProxyAddressExistsException", "is already being used by the proxy addresses")
_BUSY = (
    "OverBudgetException",
    "ServerBusyException",
    "ServerTooBusy",
    "ResourceUnhealthyException",
    "ADTransientException",
)


class Exchange(Protocol):
    """Runs cmdlets of Exchange Online in one tenant."""

    def run(self, cmdlet: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run a cmdlet and return the objects that it finds."""


class ExchangeClient:
    """Runs cmdlets through InvokeCommand. One for all threads."""

    def __init__(self, api: Api, organization: str) -> None:
        self._api = api
        self._organization = organization

    def run(self, cmdlet: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run a cmdlet and return the objects that it finds, page after page."""
        target = path("/adminapi/beta/{}/InvokeCommand", self._organization)
        body = {"CmdletInput": {"CmdletName": cmdlet, "Parameters": dict(parameters)}}
        found: list[dict[str, Any]] = []
        for _ in range(_MOST_PAGES):
            answer = self._api.send("POST", target, body, self._headers(cmdlet))
            if answer.response.status_code != _OK:
                raise _failure(cmdlet, answer)
            page = answer.object()
            found += _rows(page.get("value", []))
            link = page.get("@odata.nextLink")
            if not link:
                return found
            target = self._next(link)
        raise UnreadableAnswer(f"Exchange: {cmdlet} has no end")

    def _headers(self, cmdlet: str) -> dict[str, str]:
        return {
            "X-AnchorMailbox": f"{_ANCHOR}{self._organization}",
            "X-CmdletName": cmdlet,
            "X-ResponseFormat": "json",
            "client-request-id": str(uuid4()),
            "Prefer": "odata.maxpagesize=1000",
        }

    def _next(self, link: object) -> str:
        """Return the next page's target; a link that leads elsewhere is not followed, for the token would go there."""
        try:
            here, there = httpx.URL(self._api.origin), httpx.URL(str(link))
        except httpx.InvalidURL:
            raise UnreadableAnswer("Exchange's answer goes on nowhere") from None
        if (here.scheme, here.host, here.port) != (there.scheme, there.host, there.port):
            raise UnreadableAnswer("Exchange's answer goes on at another address")
        return there.raw_path.decode()


def is_busy(response: httpx.Response) -> bool:
    """Whether an error means 'later', which Exchange also says with other statuses than 429."""
    if response.is_success:
        return False
    return _mentions(_text(response.content), _BUSY)


def _failure(cmdlet: str, answer: Answer) -> TenantFailed:
    status, attempts = answer.response.status_code, answer.attempts
    text = _text(answer.response.content)
    message = f"Exchange: {cmdlet}: {told(text.rpartition('|')[2])} (status {status})"
    if answer.response.is_success:
        return UnreadableAnswer(message, attempts=attempts)
    if status == _NOT_FOUND or _mentions(text, _MISSING):
        return ObjectMissing(message, attempts=attempts)
    kind = ObjectTaken if _mentions(text, _TAKEN) else Rejected
    return kind(message, status=status, attempts=attempts, after_loss=answer.after_loss)


def _text(content: bytes) -> str:
    """Return what Exchange says of an error, from the first of three places that says anything."""
    try:
        error = orjson.loads(content)["error"]
        details = error.get("details") or [{}]
        inner = error.get("innererror") or {}
        inner = inner.get("internalException") or inner.get("internalexception") or {}
        first = details[0] if isinstance(details, list) else details
        return str(first.get("message") or inner.get("message") or error.get("message") or "")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return ""


def _mentions(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _rows(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise UnreadableAnswer("Exchange's answer is no list of objects")
    return value
