"""One API of a tenant: sends a call until there is an answer that means something (rule W4).

A call whose answer was lost may have been carried out. A call that only reads is sent again. A call that changes
something is sent again if the connection broke, but not while the first may still be running; then the caller reads the
state back (ADR 24).
"""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

import httpx
import orjson

from matoolkit.backoff import Backoff, Jitter, Tries, asked_wait
from matoolkit.clock import Clock
from matoolkit.outages import Outage
from matoolkit.pauses import Pause
from matoolkit.telemetry import metering, tracing
from matoolkit.telemetry.tracing import Span
from matoolkit.tokens import Tokens
from matoolkit.worker.clients.failures import (
    SignInFailed,
    Unanswered,
    Unreachable,
    UnreadableAnswer,
)
from matoolkit.worker.failures import FunctionFailed, Throttled

_THROTTLED = frozenset({429, 503})
_BROKEN = frozenset({408, 500, 502, 504})
_GATEWAY_TIMEOUT = 504
# The header by which a call to Exchange says which cmdlet it runs.
CMDLET = "X-CmdletName"
# Segments of a path that are no names, although they are not letters alone.
_PLAIN_SEGMENTS = frozenset({"v1.0", "$ref", "$count", "$batch"})
# With these the call never left.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

log = logging.getLogger(__name__)


class Effect(StrEnum):
    """What a call does, which says whether it may be sent again when its answer was lost."""

    READS = "reads"
    CHANGES = "changes"  # safe to repeat, once the first is over
    ONCE = "once"  # never repeated before the caller has looked


class Verdict(StrEnum):
    """What an answer means for the call."""

    ANSWER = "answer"
    BUSY = "busy"  # later, for all threads
    PASSING = "passing"  # again; nothing was done
    BROKEN = "broken"  # again; it may have been done


def by_status(response: httpx.Response) -> Verdict:
    """Judge an answer by its status alone."""
    if response.status_code in _THROTTLED:
        return Verdict.BUSY
    return Verdict.BROKEN if response.status_code in _BROKEN else Verdict.ANSWER


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
            message = f"the answer with status {self.response.status_code} cannot be read: it is not a JSON object"
            raise UnreadableAnswer(message, attempts=self.attempts)
        return cast("dict[str, Any]", content)


@dataclass(slots=True)
class Api:
    """Sends calls; `judge` knows which answers mean 'later' or 'again', whatever their status."""

    name: str
    origin: str
    tokens: Tokens
    http: httpx.Client
    clock: Clock
    backoff: Backoff = field(default_factory=Backoff)
    judge: Callable[[httpx.Response], Verdict] = by_status
    timeout: httpx.Timeout | None = None
    jitter: Jitter = random.random
    pause: Pause = field(init=False)
    trouble: Outage = field(init=False)

    def __post_init__(self) -> None:
        self.pause = Pause(self.clock, self.jitter)
        self.trouble = Outage(f"calling {self.name}", log, self.clock)

    def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        effect: Effect = Effect.READS,
    ) -> Answer:
        """Send a call, again and again while it is throttled, broken or unanswered, until tries are used up."""
        after_loss = False
        tries = Tries(self.backoff, self.clock, self.jitter)
        while True:
            self.pause.wait()
            attempt, asked = tries.count + 1, None
            failure: FunctionFailed
            try:
                response = self._signed(method, target, body, headers or {})
            except httpx.TransportError as fault:
                failure = self._unreachable(type(fault).__name__, attempt)
                if not isinstance(fault, _NOT_SENT):
                    after_loss = True
                    self._check_lost(effect, failure, is_over=not isinstance(fault, httpx.TimeoutException))
            else:
                match self.judge(response):
                    case Verdict.ANSWER:
                        self.trouble.worked()
                        return Answer(response, attempt, after_loss)
                    case Verdict.BUSY:
                        failure, asked = self._throttled(attempt), asked_wait(response.headers, self.clock)
                    case Verdict.PASSING:
                        failure = self._failed(f"status {response.status_code}", attempt)
                    case Verdict.BROKEN:
                        after_loss = True
                        failure = self._unreachable(f"status {response.status_code}", attempt)
                        self._check_lost(effect, failure, is_over=response.status_code != _GATEWAY_TIMEOUT)
            self._wait_after(failure, tries, asked)

    def next_target(self, link: object) -> str:
        """Return the next page's target; a link that leads elsewhere is not followed, for the token would go there."""
        try:
            here, there = httpx.URL(self.origin), httpx.URL(str(link))
        except httpx.InvalidURL:
            raise UnreadableAnswer(f"{self.name}'s answer goes on nowhere") from None
        if (here.scheme, here.host, here.port) != (there.scheme, there.host, there.port):
            raise UnreadableAnswer(f"{self.name}'s answer goes on at another address")
        return there.raw_path.decode()

    def _check_lost(self, effect: Effect, failure: Unreachable, *, is_over: bool) -> None:
        """Raise `Unanswered` for a change that may have been made, unless it is safe to send it again."""
        if effect is Effect.ONCE or (effect is Effect.CHANGES and not is_over):
            why = "it may have been carried out" if is_over else "it may still be at work, so it is not sent again"
            raise Unanswered(f"{failure.message}; {why}", attempts=failure.attempts, is_over=is_over)

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
        with self._span(method, target, headers) as span:
            response = self._streamed(method, target, body, headers, token)
            span.note({"http.response.status_code": response.status_code})
            if response.is_error:
                span.fail(str(response.status_code))
        return response

    def _span(self, method: str, target: str, headers: Mapping[str, str]) -> Span:
        if not tracing.is_on():
            return tracing.NO_SPAN
        route, cmdlet = route_of(target), headers.get(CMDLET)
        about = {"http.request.method": method, "url.template": route, "server.address": httpx.URL(self.origin).host}
        return tracing.span(cmdlet or f"{method} {route}", {**about, "api": self.name, "cmdlet": cmdlet}, kind="CLIENT")

    def _streamed(self, method: str, target: str, body: Any, headers: Mapping[str, str], token: str) -> httpx.Response:
        kind = {} if body is None else {"Content-Type": "application/json"}
        with self.http.stream(
            method,
            f"{self.origin}{target}",
            content=None if body is None else orjson.dumps(body),
            headers={"Accept": "application/json", **kind, **headers, "Authorization": f"Bearer {token}"},
            timeout=self.timeout or httpx.USE_CLIENT_DEFAULT,
        ) as response:
            try:
                response.read()
            except httpx.DecodingError:
                # Exchange sometimes calls an error compressed that is not: then the status is all that it says.
                return httpx.Response(response.status_code, request=response.request)
            return response

    def _wait_after(self, failure: FunctionFailed, tries: Tries, asked: float | None) -> None:
        """Wait before the next try, or raise the failure if there is none. No thread calls an API that throttles."""
        seconds = tries.failed(asked)
        if isinstance(failure, Throttled):
            self.pause.extend(seconds)
            log.warning("%s throttles: no thread calls it for %.0f s", self.name, seconds)
        if tries.are_used_up:
            raise failure
        if not isinstance(failure, Throttled):
            self.clock.sleep(seconds)

    def _throttled(self, attempt: int) -> Throttled:
        metering.count(metering.THROTTLED, {"api": self.name})
        tries = f"{attempt} tries" if attempt > 1 else "one try"
        return Throttled(f"{self.name} asks to be called less often, after {tries}", attempts=attempt)

    def _unreachable(self, why: str, attempt: int) -> Unreachable:
        failure = self._failed(why, attempt)
        self.trouble.failed(failure)
        return failure

    def _failed(self, why: str, attempt: int) -> Unreachable:
        return Unreachable(f"{self.name} does not answer as it should: {why}", attempts=attempt)


def route_of(target: str) -> str:
    """Return the path of a call with `{}` in the place of everything that may name a person or a thing."""
    segments = target.partition("?")[0].split("/")
    return "/".join(one if not one or one.isalpha() or one in _PLAIN_SEGMENTS else "{}" for one in segments)


def told(text: object, longest: int = 300) -> str:
    """Shorten what a service says to one line, cut between words: half a secret would not be recognised and masked."""
    line = (str(text or "").strip().splitlines() or ["no reason given"])[0]
    return line if len(line) <= longest else f"{line[:longest].rpartition(' ')[0]} …"
