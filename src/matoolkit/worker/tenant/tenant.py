"""The tenant as a whole: who may call, what goes wrong, and which API answers."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from matoolkit.clock import Clock
from matoolkit.worker.tenant.application import Application
from matoolkit.worker.tenant.calls import Answer, Refusal, Request
from matoolkit.worker.tenant.control import Control
from matoolkit.worker.tenant.directory import Directory
from matoolkit.worker.tenant.exchange import Exchange
from matoolkit.worker.tenant.faults import Fault, Faults
from matoolkit.worker.tenant.graph import Graph
from matoolkit.worker.tenant.keeping import StateFile
from matoolkit.worker.tenant.refusals import busy

_RESET = Answer(is_reset=True)
_MALFORMED = Answer(HTTPStatus.OK, b"<html><body>Please sign in to the network</body></html>")
_BUSY_STATUS = HTTPStatus.INTERNAL_SERVER_ERROR


class Tenant:
    """Answers every call: one at a time, each as a whole, so that the state is never seen in between.

    With a file for its state it begins with what is in there, and a change is in there before it is answered.
    """

    def __init__(self, clock: Clock, state: StateFile | None = None) -> None:
        self.clock = clock
        self.directory = Directory(clock)
        self._state = state
        self.is_new = state is None or not state.load(self.directory)
        self.faults = Faults(clock)
        self.application = Application()
        self.calls: list[tuple[str, int]] = []
        self._graph = Graph(self.directory)
        self._exchange = Exchange(self.directory)
        self._control = Control(self)
        self._lock = threading.Lock()
        self._tokens: set[str] = set()
        self._expired: set[str] = set()

    def answer(self, request: Request) -> Answer:
        """Answer a call of one of the APIs, or one that looks at the tenant or controls it."""
        if request.segments[0] == "_tenant":
            with self._lock:
                answer = self._control.answer(request)
                self._keep()
                return answer
        answer = self._with_fault(request, self.faults.drawn(request.label))
        with self._lock:
            self.calls.append((request.label, 0 if answer.is_reset else answer.status))
        return answer

    @contextmanager
    def kept_once(self) -> Iterator[None]:
        """Keep what a block does all at once at its end, and nothing of it if it fails."""
        state, self._state = self._state, None
        try:
            yield
        finally:
            self._state = state
        with self._lock:
            self._keep()

    def change(self, work: Callable[[Directory], None]) -> None:
        """Change the directory as a whole, and keep what was changed."""
        with self._lock:
            work(self.directory)
            self._keep()

    def expire_tokens(self) -> None:
        """Let no token that was shown so far be good any more."""
        self._expired |= self._tokens

    def asked(self, part: str) -> list[str]:
        """List the calls whose label contains a text."""
        return [label for label, _ in list(self.calls) if part in label]

    def _with_fault(self, request: Request, fault: Fault | None) -> Answer:
        if fault is None:
            return self._applied(request)
        match fault.kind:
            case "slow":
                self.clock.sleep(fault.seconds)
                return self._applied(request)
            case "hang":
                fault.released.wait()
                return _RESET
            case "lost":
                self._applied(request)
                return _RESET
            case "reset":
                return _RESET
            case "malformed":
                return _MALFORMED
            case _:
                return self._refused(request, fault)

    def _refused(self, request: Request, fault: Fault) -> Answer:
        headers = self.faults.retry_after(fault)
        match fault.kind:
            case "forbid":
                return self._api(request).forbidden()
            case "busy":
                said = busy(fault.code)
                if isinstance(said, Answer):
                    return said
                refusal = said
            case "fail" | "refuse":
                status = fault.status if fault.status != HTTPStatus.TOO_MANY_REQUESTS else _BUSY_STATUS
                refusal = Refusal(status, fault.code or "UnknownError", "Something went wrong.")
            case _:
                refusal = Refusal(fault.status, "TooManyRequests", "Too many requests. Please try again later.")
        error = self._api(request).error(refusal)
        return Answer(error.status, error.body, headers)

    def _applied(self, request: Request) -> Answer:
        with self._lock:
            api = self._api(request)
            try:
                self._check_token(request)
                answer = api.answer(request) if self.application.may(request) else api.forbidden()
            except Refusal as refusal:
                answer = api.error(refusal)
            if request.method != "GET":
                self._keep()
            return answer

    def _keep(self) -> None:
        if self._state is not None:
            self._state.keep(self.directory)

    def _api(self, request: Request) -> Graph | Exchange:
        return self._exchange if request.segments[0] == "adminapi" else self._graph

    def _check_token(self, request: Request) -> None:
        scheme, _, token = request.header("Authorization").partition(" ")
        if scheme != "Bearer" or not token.strip():
            raise Refusal(HTTPStatus.UNAUTHORIZED, "InvalidAuthenticationToken", "Access token is empty.")
        self._tokens.add(token)
        if token in self._expired:
            message = "Lifetime validation failed, the token is expired."
            raise Refusal(HTTPStatus.UNAUTHORIZED, "InvalidAuthenticationToken", message)
