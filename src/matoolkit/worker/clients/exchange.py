"""Exchange Online without PowerShell: cmdlets over HTTPS.

This is the call that Microsoft's own module makes, and Microsoft does not promise it to others; `Exchange` is all that
the functions know of it, so that another way can take its place.

Its answers have many forms. A cmdlet's own error comes with any status and is recognised by its text. The answer to a
change is a list, null or nothing at all.
"""

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import uuid4

import httpx
import orjson

from matoolkit.worker.clients.api import CMDLET, Answer, Api, Effect, Verdict, by_status, told
from matoolkit.worker.clients.failures import (
    Forbidden,
    ObjectMissing,
    ObjectTaken,
    Rejected,
    TenantFailed,
    UnreadableAnswer,
)
from matoolkit.worker.clients.identifiers import path

_ANCHOR = "APP:SystemMailbox{bb558c35-97f1-4cb9-8ff7-d53741dc928c}@"
_FORBIDDEN, _NOT_FOUND = 403, 404
_MOST_PAGES = 10_000
_READING = ("Get-", "Test-")
_MISSING = ("ManagementObjectNotFoundException",)
_TAKEN = (
    "ProxyAddressExistsException",
    "ADObjectAlreadyExistsException",
    "is already being used by the proxy addresses",
)
_BUSY = (
    "OverBudgetException",
    "ServerBusyException",
    "ServerTooBusy",
    "ResourceUnhealthyException",
    "ADTransientException",
    "maximum number of concurrent requests per tenant",
)
_PASSING = ("UnableToWriteToAadException",)


class Exchange(Protocol):
    """Runs cmdlets of Exchange Online in one tenant."""

    def run(self, cmdlet: str, parameters: Mapping[str, Any], *, password: str | None = None) -> list[dict[str, Any]]:
        """Run a cmdlet and return the objects that it finds; a password is its parameter `Password`.

        It stands apart because PowerShell takes a SecureString, and each way to Exchange makes one in its own manner.
        """


class ExchangeClient:
    """Runs cmdlets through InvokeCommand. One for all threads."""

    def __init__(self, api: Api, organization: str) -> None:
        self._api = api
        self._organization = organization

    def run(self, cmdlet: str, parameters: Mapping[str, Any], *, password: str | None = None) -> list[dict[str, Any]]:
        """Run a cmdlet and return the objects that it finds, page after page.

        One that changes something is sent once: without an answer it is `Unanswered`, and may have been carried out.
        A password goes as text, which is assumed to be enough.
        """
        target = path("/adminapi/beta/{}/InvokeCommand", self._organization)
        secret = {} if password is None else {"Password": password}
        body = {"CmdletInput": {"CmdletName": cmdlet, "Parameters": {**parameters, **secret}}}
        effect = Effect.READS if cmdlet.startswith(_READING) else Effect.ONCE
        found: list[dict[str, Any]] = []
        for _ in range(_MOST_PAGES):
            answer = self._api.send("POST", target, body, self._headers(cmdlet), effect=effect)
            if not answer.response.is_success:
                raise self._failure(cmdlet, answer)
            if not answer.response.content:
                return found
            page = answer.object()
            found += _rows(page.get("value"))
            link = page.get("@odata.nextLink")
            if not link:
                return found
            target = self._api.next_target(link)
        raise UnreadableAnswer(f"Exchange: {cmdlet} has no end")

    def any_recipient(self) -> dict[str, Any] | None:
        """Return some recipient, to see whether recipients can be read at all."""
        return next(iter(self.run("Get-Recipient", {"ResultSize": 1})), None)

    def _headers(self, cmdlet: str) -> dict[str, str]:
        return {
            "X-AnchorMailbox": f"{_ANCHOR}{self._organization}",
            CMDLET: cmdlet,
            "X-ResponseFormat": "json",
            "client-request-id": str(uuid4()),
            "Prefer": "odata.maxpagesize=1000",
        }

    def _failure(self, cmdlet: str, answer: Answer) -> TenantFailed:
        status, attempts = answer.response.status_code, answer.attempts
        text = _text(answer.response.content)
        message = f"Exchange: {cmdlet}: {told(text.rpartition('|')[2])} (status {status})"
        if status == _FORBIDDEN and not text:
            why = f"Exchange: {cmdlet}: the application may not run it, or there is no such cmdlet (status {status})"
            return Forbidden(why, api=self._api.name, attempts=attempts)
        if status == _NOT_FOUND and not answer.response.content:
            why = f"Exchange knows no organisation {self._organization}: correct TARGET_ORGANIZATION"
            return Rejected(why, status=status, attempts=attempts)
        if status == _NOT_FOUND or _mentions(text, _MISSING):
            return ObjectMissing(message, attempts=attempts)
        kind = ObjectTaken if _mentions(text, _TAKEN) else Rejected
        return kind(message, status=status, attempts=attempts, after_loss=answer.after_loss)


def judged(response: httpx.Response) -> Verdict:
    """Judge an answer by what it says; only one that says nothing is judged by its status."""
    if response.is_success:
        return Verdict.ANSWER
    text = _text(response.content) or response.content.decode(errors="replace")
    if _mentions(text, _BUSY):
        return Verdict.BUSY
    if _mentions(text, _PASSING):
        return Verdict.PASSING
    verdict = by_status(response)
    is_cmdlets_own = verdict is Verdict.BROKEN and "|" in _text(response.content)
    return Verdict.ANSWER if is_cmdlets_own else verdict


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
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise UnreadableAnswer("Exchange's answer is not a list of objects")
    return value
