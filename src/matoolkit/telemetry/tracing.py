"""Spans: which piece of work led to which, across processes (OpenTelemetry, ADR 35).

They are off until a process switches them on (`hosting/telemetry.py`). Off, nothing of OpenTelemetry is imported, and a
span is one object that does nothing. A span never holds what a message or an answer says, nor the text of an error:
either may be secret.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext, Tracer

# The name of the property that travels with a message, as W3C Trace Context has it.
TRACEPARENT = "traceparent"
_TRACEPARENT = re.compile(rf'"{TRACEPARENT}" *: *"([0-9a-f-]+)"')
# Attributes of ours begin with this.
PREFIX = "matoolkit."

_tracer: "Tracer | None" = None


class Span(Protocol):
    """A piece of work; it lasts as long as its block."""

    @property
    def traceparent(self) -> str | None:
        """What a message carries that the work causes; nothing if spans are off."""

    def fail(self, kind: str) -> None:
        """Say that the work failed, and with which kind of error."""

    def note(self, about: Mapping[str, Any]) -> None:
        """Add attributes."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; an error that leaves the block is a failure."""


class _NoSpan:
    """What a span is while spans are off."""

    traceparent: str | None = None

    def fail(self, kind: str) -> None:
        pass

    def note(self, about: Mapping[str, Any]) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


NO_SPAN: Span = _NoSpan()


class _LiveSpan:
    """A span that is recorded, and is the current one of its thread while its block lasts."""

    def __init__(
        self,
        tracer: "Tracer",
        name: str,
        kind: str,
        about: Mapping[str, Any],
        parent: "Context | None",
        links: "Iterable[SpanContext]" = (),
    ) -> None:
        from opentelemetry.trace import Link, SpanKind

        self._span = tracer.start_span(
            name, parent, SpanKind[kind], _attributes(about), [Link(context) for context in links]
        )

    @property
    def traceparent(self) -> str | None:
        return _written(self._span.get_span_context())

    def fail(self, kind: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_status(Status(StatusCode.ERROR))
        self._span.set_attribute("error.type", kind)

    def note(self, about: Mapping[str, Any]) -> None:
        self._span.set_attributes(_attributes(about))

    def __enter__(self) -> Self:
        from opentelemetry import context, trace

        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from opentelemetry import context

        if kind is not None:
            self.fail(str(getattr(error, "code", None) or kind.__name__))
        context.detach(self._token)
        self._span.end()


def switch_on(tracer: "Tracer | None") -> None:
    """Record spans with a tracer from now on, in the whole process; with none, record no more."""
    global _tracer  # noqa: PLW0603 - a process has its spans on or off
    _tracer = tracer


def is_on() -> bool:
    """Whether spans are recorded."""
    return _tracer is not None


def span(name: str, about: Mapping[str, Any] | None = None, *, kind: str = "INTERNAL") -> Span:
    """Return a span below the current one of this thread."""
    return NO_SPAN if _tracer is None else _LiveSpan(_tracer, name, kind, about or {}, None)


def span_of(traceparent: str | None, name: str, about: Mapping[str, Any] | None = None) -> Span:
    """Return the span of the work that one message asks for, below the span that sent it."""
    if _tracer is None:
        return NO_SPAN
    return _LiveSpan(_tracer, name, "CONSUMER", about or {}, _context_of(traceparent))


def span_of_messages(traceparents: Iterable[str | None], name: str, about: Mapping[str, Any] | None = None) -> Span:
    """Return the one span of a pile of messages, with a link to each span that sent one of them.

    If all messages belong to one trace, the pile does too, below the first. Otherwise it begins a trace of its own.
    """
    if _tracer is None:
        return NO_SPAN
    from opentelemetry.context import Context

    senders = {sender: context for one in traceparents if (context := _read(one)) and (sender := _written(context))}
    contexts = list(senders.values())
    is_shared = len({context.trace_id for context in contexts}) == 1
    parent = _context_of(next(iter(senders))) if is_shared else Context()
    return _LiveSpan(_tracer, name, "CONSUMER", about or {}, parent, contexts)


def next_trace(name: str, about: Mapping[str, Any] | None = None) -> Span:
    """Return the first span of a new trace, with a link to the current span; one trace must not grow for ever."""
    if _tracer is None:
        return NO_SPAN
    from opentelemetry.context import Context

    now = _current()
    return _LiveSpan(_tracer, name, "PRODUCER", about or {}, Context(), [] if now is None else [now])


def current_traceparent() -> str | None:
    """Return what a message carries that is sent now; nothing outside of spans."""
    if _tracer is None or (now := _current()) is None:
        return None
    return _written(now)


def traceparent_in(properties_json: str) -> str | None:
    """Return what the properties of a message say about the span that sent it, if they say anything."""
    found = _TRACEPARENT.search(properties_json)
    return found[1] if found else None


def current_ids() -> dict[str, str]:
    """Return the ids of the current trace and span, for the log."""
    if _tracer is None or (now := _current()) is None:
        return {}
    return {"trace": f"{now.trace_id:032x}", "span": f"{now.span_id:016x}"}


def _current() -> "SpanContext | None":
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    return context if context.is_valid else None


def _context_of(traceparent: str | None) -> "Context":
    """Return what a traceparent stands for; one that cannot be read stands for nothing."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({TRACEPARENT: traceparent} if traceparent else {}, Context())


def _read(traceparent: str | None) -> "SpanContext | None":
    from opentelemetry.trace import get_current_span

    context = get_current_span(_context_of(traceparent)).get_span_context() if traceparent else None
    return context if context is not None and context.is_valid else None


def _written(context: "SpanContext") -> str | None:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}" if context.is_valid else None


def _attributes(about: Mapping[str, Any]) -> dict[str, str | int | float | bool | Sequence[str]]:
    """Return what is known; a name without a dot is one of ours."""
    return {name if "." in name else f"{PREFIX}{name}": value for name, value in about.items() if value is not None}
