"""One API of a tenant: sends a call until there is an answer that means something (rule W4).

Every call may be sent more than once, also one whose first answer was lost; whoever calls reads the state back.
"""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
import orjson

from matoolkit.clock import Clock
from matoolkit.worker.clients.failures import SignInFailed, TenantFailed, Unreachable, UnreadableAnswer
from matoolkit.worker.clients.pauses import Jitter, RetryLimits, SharedPause, asked_for
from matoolkit.worker.clients.tokens import Tokens
from matoolkit.worker.failures import FunctionFailed, Throttled

_THROTTLED = frozenset({429, 503})
_BROKEN = frozenset({500, 502, 504})
# With these the call never left.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, after how many tries, and whether an earlier try may have been carried out."""

    response: httpx.Response
    attempts: int
    after_loss: bool

    def object(self) -> dict[str, Any]:
        """Read the body, which is an object."""
        try:
            content = orjson.loads(self.response.content)
        except orjson.JSONDecodeError:
            content = None
        if not isinstance(content, dict):
            message = f"the answer with status {self.response.status_code} cannot be read: it is no JSON object"
            raise UnreadableAnswer(message, attempts=self.attempts)
        return cast("dict[str, Any]", content)


@dataclass(slots=True)
class Api:
    """Sends calls; `is_busy` knows answers that mean 'later' whatever their status, `is_passing` those of 'again'."""

    name: str
    origin: str
    tokens: Tokens
    http: httpx.Client
    clock: Clock
    limits: RetryLimits = field(default_factory=RetryLimits)
    is_busy: Callable[[httpx.Response], bool] = lambda _: False
    is_passing: Callable[[httpx.Response], bool] = lambda _: False
    jitter: Jitter = random.random
    pause: SharedPause = field(init=False)

    def __post_init__(self) -> None:
        self.pause = SharedPause(self.clock, self.jitter)

    def send(self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a call, again and again while it is throttled, broken or unanswered, until tries are used up."""
        after_loss = False
        failure: FunctionFailed | None = None
        for attempt in range(1, self.limits.count + 2):
            if failure is not None and not isinstance(failure, Throttled):
                self.clock.sleep(self.limits.backoff(attempt - 1, self.jitter))
            self.pause.wait()
            try:
                response = self._signed(method, target, body, headers or {})
            except httpx.TransportError as fault:
                after_loss |= not isinstance(fault, _NOT_SENT)
                failure = self._unreachable(type(fault).__name__, attempt)
                continue
            if response.status_code in _THROTTLED or self.is_busy(response):
                failure = self._throttled(response, attempt)
            elif response.status_code in _BROKEN or self.is_passing(response):
                after_loss |= response.status_code in _BROKEN
                failure = self._unreachable(f"status {response.status_code}", attempt)
            else:
                return Answer(response, attempt, after_loss)
        raise failure or TenantFailed(f"{self.name} was never called")

    def _signed(self, method: str, target: str, body: Any, headers: Mapping[str, str]) -> httpx.Response:
        """Send with a token; if it is refused, once more with another, for one may expire in the middle of a job."""
        token = self.tokens.token()
        response = self._sent(method, target, body, headers, token)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            response = self._sent(method, target, body, headers, self.tokens.token(refused=token))
        if response.status_code == httpx.codes.UNAUTHORIZED:
            raise SignInFailed(f"{self.name} refuses the worker's token, and a fresh one too")
        return response

    def _sent(self, method: str, target: str, body: Any, headers: Mapping[str, str], token: str) -> httpx.Response:
        kind = {} if body is None else {"Content-Type": "application/json"}
        return self.http.request(
            method,
            f"{self.origin}{target}",
            content=None if body is None else orjson.dumps(body),
            headers={"Accept": "application/json", **kind, **headers, "Authorization": f"Bearer {token}"},
        )

    def _throttled(self, response: httpx.Response, attempt: int) -> Throttled:
        asked = asked_for(response, self.clock)
        seconds = self.limits.backoff(attempt, self.jitter) if asked is None else asked
        self.pause.extend(seconds)
        log.warning("%s throttles: nobody calls it for %.0f s", self.name, seconds)
        tries = f"{attempt} tries" if attempt > 1 else "one try"
        return Throttled(f"{self.name} asks to be called less often, after {tries}", attempts=attempt)

    def _unreachable(self, why: str, attempt: int) -> Unreachable:
        log.warning("%s does not answer as it should, try %d: %s", self.name, attempt, why)
        return Unreachable(f"{self.name} does not answer as it should: {why}", attempts=attempt)


def told(text: object, longest: int = 300) -> str:
    """Shorten what a service says to one line."""
    return (str(text or "").strip().splitlines() or ["no reason given"])[0][:longest]
