"""Messages of the host as messages of ours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from matoolkit.bus.draining import Letter
from matoolkit.bus.servicebus.messages import enqueued_at, properties_of, traceparent_of, type_of
from matoolkit.ports import Received, Subscription

if TYPE_CHECKING:
    from azure.functions import ServiceBusMessage


def letters_of(subscription: Subscription, messages: "Sequence[ServiceBusMessage]") -> list[Letter]:
    """Return a pile of a subscription; each message is known by its place in the pile."""
    return [_letter(subscription, place, message) for place, message in enumerate(messages)]


def _letter(subscription: Subscription, place: int, message: "ServiceBusMessage") -> Letter:
    received = Received(
        subscription,
        message.lock_token or "",
        place,
        str(message.message_id),
        type_of(message),
        # Bytes that are no UTF-8 are replaced, so the message is put aside as unreadable.
        message.get_body().decode(errors="replace"),
        message.delivery_count or 1,
        traceparent_of(message),
    )
    return Letter(received, orjson.dumps(properties_of(message)).decode(), enqueued_at(message))
