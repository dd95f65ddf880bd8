"""The admin API as the command line sees it: every answer is what was asked for, or an error with a sentence."""

import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from matoolkit import __version__
from matoolkit.cli.answers import as_object, problem_of, reason
from matoolkit.cli.client import Pages, is_here, is_safe
from matoolkit.cli.wording import instant
from matoolkit.clock import Clock
from matoolkit.errors import InvalidSettings, ServerTooSlow, ServerUnreachable, UnreadableAnswer

# The library has a command line of its own, which would be imported with it and takes as long as the rest.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
import httpx  # noqa: E402

MOST_BYTES = 64 * 1024 * 1024
# The connection was lost, not refused.
_LOST = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


class Client:
    """Asks one admin API; whose token it shows is asked for with the first request."""

    def __init__(self, address: str, seconds: float, token: Callable[[], str | None], clock: Clock) -> None:
        self.address = address
        self._seconds = seconds
        self._token = token
        self._clock = clock
        self._seen: dict[str, tuple[str, dict[str, Any]]] = {}
        # Of a server whose calendar runs faster than the clock (rule U5): its time, and who is told of it.
        self.time_there: datetime | None = None
        self.speed: int | None = None
        self.on_speed: Callable[[int, datetime], None] = lambda _speed, _now: None
        headers = {"User-Agent": f"matoolkit/{__version__}", "Accept": "application/json, */*;q=0.1"}
        try:
            self._http = httpx.Client(
                base_url=address,
                timeout=seconds,
                headers=headers,
                # A proxy is not asked for what is on this machine.
                trust_env=not is_here(address),
                # Reading the certificates is slow, so it is done only for HTTPS.
                verify=address.startswith("https://"),
            )
        except httpx.InvalidURL as wrong:
            raise InvalidSettings([f"the address of the admin API cannot be used: {wrong}"]) from None

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Ask for one thing; if it has not changed since the last time, the server sends only that fact."""
        tag, known = self._seen.get(path, ("", {}))
        with self._answered("GET", path, query, {"If-None-Match": tag} if tag else {}) as answer:
            if tag and answer.status_code == httpx.codes.NOT_MODIFIED:
                return known
            found = self._object(answer)
            self._seen[path] = (answer.headers.get("etag", ""), found)
            return found

    def pages(self, path: str, most: int | None = None, **query: Any) -> "Pages":
        """Read a list, page after page, to its end or until there are enough items."""
        return Pages(lambda **place: self._page(path, {**query, **place}), most, self.address)

    def whole_list(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """Ask for a list that is always one page."""
        found: list[dict[str, Any]] = self._page(path, query)["items"]
        return found

    def put(self, path: str, body: Any) -> dict[str, Any]:
        """Set something."""
        return self._changed("PUT", path, json=body)

    def post(self, path: str, body: Any) -> dict[str, Any]:
        """Ask for something to be done."""
        return self._changed("POST", path, json=body)

    def upload(self, path: str, form: Mapping[str, str], name: str, content: bytes) -> dict[str, Any]:
        """Send a CSV file."""
        return self._changed("POST", path, data=dict(form), files={"file": (name, content, "text/csv")})

    def send_yaml(self, path: str, content: bytes, **query: Any) -> dict[str, Any]:
        """Send a document as it is."""
        return self._changed("POST", path, query, {"Content-Type": "application/yaml"}, content=content)

    def delete(self, path: str, **query: Any) -> dict[str, Any]:
        """Ask for something to be taken away."""
        return self._changed("DELETE", path, query)

    def preview(self, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        """Ask what would happen; nothing is changed by it."""
        with self._answered("POST", path, query, sent={"json": {} if body is None else body}) as answer:
            return self._object(answer)

    def text(self, path: str, kind: str, **query: Any) -> Iterator[bytes]:
        """Ask for a text of a kind, piece by piece, because it may be long."""
        with self._answered("GET", path, query) as answer:
            if answer.status_code != httpx.codes.OK or not answer.headers.get("content-type", "").startswith(kind):
                self._refuse(answer, self._content(answer))
            yield from answer.iter_bytes()

    def _page(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        with self._answered("GET", path, query) as answer:
            page = self._object(answer)
        found = page.get("items")
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise UnreadableAnswer(self.address, "it is not a list")
        return page

    def _changed(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **sent: Any,
    ) -> dict[str, Any]:
        """Ask for a change; if the answer is lost it is asked for again with its key, and still made once."""
        key = {"Idempotency-Key": str(uuid.uuid4())}
        with self._answered(method, path, query or {}, {**key, **(headers or {})}, sent, is_change=True) as answer:
            return self._object(answer)

    def _object(self, answer: httpx.Response) -> dict[str, Any]:
        content = self._content(answer)
        if not answer.is_success:
            self._refuse(answer, content)
        return as_object(self.address, answer, content)

    @contextmanager
    def _answered(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        sent: Mapping[str, Any] | None = None,
        *,
        is_change: bool = False,
    ) -> Iterator[httpx.Response]:
        """Send a request, and put whatever happens on the way there or back into words."""
        known = {name: value for name, value in query.items() if value is not None}
        try:
            request = self._http.build_request(
                method, path, params=known, headers={**(headers or {}), **self._signed()}, **(sent or {})
            )
            answer = self._sent(request)
            self._note_pace(answer)
            try:
                yield answer
            finally:
                answer.close()
        except httpx.TimeoutException as late:
            may_be_done = is_change and not isinstance(late, httpx.ConnectTimeout)
            raise ServerTooSlow(self.address, self._seconds, may_be_done=may_be_done) from None
        except httpx.TransportError as fault:
            may_be_done = is_change and isinstance(fault, _LOST)
            raise ServerUnreachable(self.address, reason(fault), may_be_done=may_be_done) from None
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise UnreadableAnswer(self.address, reason(fault)) from None

    def _sent(self, request: httpx.Request) -> httpx.Response:
        """Send a request, once more if the connection was lost: a look changes nothing, and a change has its key."""
        try:
            return self._http.send(request, stream=True)
        except _LOST as lost:
            try:
                return self._http.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                # The server may have handled the first request even if it does not answer now.
                raise lost from None

    def _note_pace(self, answer: httpx.Response) -> None:
        speed, now = answer.headers.get("Matoolkit-Speed", ""), instant(answer.headers.get("Matoolkit-Now"))
        if speed.isdecimal() and now is not None:
            is_news, self.time_there, self.speed = self.time_there is None, now, int(speed)
            if is_news:
                self.on_speed(self.speed, now)

    def _content(self, answer: httpx.Response) -> bytes:
        """Read an answer to its end, within limits of size and time."""
        began, content = self._clock.monotonic(), bytearray()
        for piece in answer.iter_bytes():
            content += piece
            if len(content) > MOST_BYTES:
                raise UnreadableAnswer(self.address, f"it is longer than {MOST_BYTES >> 20} MiB")
            if self._clock.monotonic() - began > self._seconds:
                raise httpx.ReadTimeout("it comes too slowly")
        return bytes(content)

    def _refuse(self, answer: httpx.Response, content: bytes) -> None:
        raise problem_of(self.address, answer, content)

    def _signed(self) -> dict[str, str]:
        token = self._token()
        if token is None:
            return {}
        if not is_safe(self.address):
            problem = f"a token is not sent to {self.address}: others on the network could read it"
            raise InvalidSettings([problem], hint="give an address that begins with https://")
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise InvalidSettings(["the access token is not a token: it has characters that no token can have"])
        return {"Authorization": f"Bearer {token}"}
