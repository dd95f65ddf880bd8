"""Bodies: read up to a limit, so that no client can fill the memory or the disk."""

from collections.abc import Callable
from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from matoolkit.errors import BodyTooLarge, MatoolkitError
from matoolkit.runbook.source import MAX_BYTES

YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
FORM = "multipart/form-data"
CSV_BYTES = 50 * 1024 * 1024
# JSON writes a document with escapes, and a form has its own lines around the file.
_JSON_BYTES = 4 * MAX_BYTES
_ONLY_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_FORM_BYTES = CSV_BYTES + 64 * 1024


class BodyLimit:
    """Refuses a body that is too large for its kind, also if its length was missing or wrong.

    A body is read before any route runs, so callers who may change nothing are refused here: `guard` says who may.
    """

    def __init__(
        self,
        app: ASGIApp,
        guard: Callable[[Request], object],
        answer: Callable[[Request, MatoolkitError], ASGIApp],
    ) -> None:
        self._app = app
        self._guard = guard
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what is received, and stop at the limit."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        largest = _largest(request)
        announced = request.headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > largest:
            await self._answer(request, BodyTooLarge(largest))(scope, receive, send)
            return
        if request.method not in _ONLY_READS:
            try:
                await run_in_threadpool(self._guard, request)
            except MatoolkitError as refused:
                await self._answer(request, refused)(scope, receive, send)
                return
        count = _Count(largest, receive, send)
        # A client that goes away is not an error, and nothing is left to answer.
        with suppress(ClientDisconnect):
            await self._app(scope, count.receive, count.send)
        if count.is_over:
            await self._answer(request, BodyTooLarge(largest))(scope, receive, send)


class _Count:
    """Passes messages on until a body is too large; an answer of the application is dropped then."""

    def __init__(self, largest: int, receive: Receive, send: Send) -> None:
        self._left = largest
        self._receive = receive
        self._send = send
        self.is_over = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.is_over = True
            return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        if not self.is_over:
            await self._send(message)


def media_type(request: Request) -> str:
    """Return the kind of a request's body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().casefold()


def _largest(request: Request) -> int:
    kind = media_type(request)
    if kind in YAML_TYPES:
        return MAX_BYTES
    return _FORM_BYTES if kind == FORM else _JSON_BYTES
