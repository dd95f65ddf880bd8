"""Messages of ours as messages of the SDK, and back."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from matoolkit.bus import topology
from matoolkit.bus.envelope import Envelope
from matoolkit.domain.delivery import MAX_BODY_BYTES
from matoolkit.errors import MessageRefused, MessageTooLarge
from matoolkit.telemetry import tracing
from matoolkit.tokens import first_line

if TYPE_CHECKING:
    from azure.servicebus import ServiceBusMessage, ServiceBusMessageBatch, ServiceBusReceivedMessage
    from azure.servicebus.aio import ServiceBusSender

_LOCKED_UNTIL = b"x-opt-locked-until"


class Arrived(Protocol):
    """A message that came, as the SDK and the library for function apps both describe it."""

    @property
    def application_properties(self) -> Any:
        """What its sender says about it, by name."""

    @property
    def enqueued_time_utc(self) -> datetime | None:
        """When the bus took it."""


def written(envelope: Envelope) -> "ServiceBusMessage":
    """Return an envelope as the SDK sends it; the SDK refuses some, for example one whose id is too long."""
    from azure.servicebus import ServiceBusMessage

    try:
        return ServiceBusMessage(
            envelope.body,
            message_id=envelope.message_id,
            content_type="application/json",
            application_properties=orjson.loads(envelope.all_properties_json),
            scheduled_enqueue_time_utc=envelope.not_before,
        )
    except (ValueError, TypeError) as fault:
        raise _refused(envelope.message_id, fault) from fault


async def pieces(
    sender: "ServiceBusSender", messages: "Sequence[ServiceBusMessage]"
) -> "AsyncIterator[ServiceBusMessageBatch]":
    """Split messages, in their order, into batches as large as the link takes."""
    batch = await sender.create_message_batch()
    for message in messages:
        if not _added(batch, message):
            if len(batch):
                yield batch
                batch = await sender.create_message_batch()
            if not len(batch) and not _added(batch, message):
                raise MessageTooLarge(str(message.message_id), len(body_of(message).encode()), MAX_BODY_BYTES)
    if len(batch):
        yield batch


def _added(batch: "ServiceBusMessageBatch", message: "ServiceBusMessage") -> bool:
    from azure.servicebus.exceptions import MessageSizeExceededError

    try:
        batch.add_message(message)
    except MessageSizeExceededError:
        return False
    except (ValueError, TypeError) as fault:
        raise _refused(str(message.message_id), fault) from fault
    return True


def _refused(message_id: str, fault: Exception) -> MessageRefused:
    return MessageRefused(f"message {message_id}", first_line(fault))


def body_of(message: "ServiceBusMessage") -> str:
    """Return the text of a message; bytes that are no UTF-8 are replaced, so it is put aside as unreadable."""
    body: Any = message.body
    if isinstance(body, str):
        return body
    if isinstance(body, bytes):
        return body.decode(errors="replace")
    try:
        return b"".join(body).decode(errors="replace")
    except TypeError:
        # A value or a list of AMQP, which nobody of ours sends.
        return str(body)


def properties_of(message: Arrived) -> dict[str, str]:
    """Return the application properties of a message as text."""
    return {_text(name): _text(value) for name, value in (message.application_properties or {}).items()}


def without_lock_end(message: "ServiceBusReceivedMessage") -> "ServiceBusReceivedMessage":
    """Return a message that does not say when its lock ends, so that only the bus decides whether it is still ours.

    The SDK compares the end with the clock of this machine. If that clock is ahead, it settles nothing.
    """
    (message.raw_amqp_message.annotations or {}).pop(_LOCKED_UNTIL, None)
    return message


def type_of(message: Arrived) -> str:
    """Return what a message says it is; a worker of another language may say nothing."""
    return properties_of(message).get(topology.MESSAGE_TYPE, "")


def traceparent_of(message: Arrived) -> str | None:
    """Return what a message says about the span that sent it, if this process records spans."""
    return properties_of(message).get(tracing.TRACEPARENT) if tracing.is_on() else None


def enqueued_at(message: Arrived) -> datetime | None:
    """Return when a message could first be delivered."""
    at = message.enqueued_time_utc
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
