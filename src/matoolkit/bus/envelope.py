"""A message on its way: encoded, addressed, and small enough for every bus."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from matoolkit.bus.wire import encode
from matoolkit.domain.delivery import MAX_BODY_BYTES
from matoolkit.errors import MessageTooLarge
from matoolkit.ports import Outgoing
from matoolkit.records import record


@record
class Envelope:
    """What a bus carries."""

    message_id: str
    topic: str
    message_type: str
    body: str
    properties: dict[str, str]
    not_before: datetime | None
    order_key: str | None


class Carrier(Protocol):
    """A bus as the relay sees it."""

    def deliver(self, envelopes: Sequence[Envelope]) -> None:
        """Publish envelopes in their order; if it raises, some of the first may be out already.

        An error that is not transient means that the bus will not take one of them.
        """


def sealed(messages: Sequence[Outgoing]) -> list[Envelope]:
    """Encode messages; one that no bus could carry is refused."""
    return [_seal(outgoing) for outgoing in messages]


def _seal(outgoing: Outgoing) -> Envelope:
    encoded = encode(outgoing.message)
    # No character takes more than four bytes, so only a long text needs to be measured.
    if len(encoded.body) * 4 > MAX_BODY_BYTES and (size := len(encoded.body.encode())) > MAX_BODY_BYTES:
        raise MessageTooLarge(outgoing.message_id, size, MAX_BODY_BYTES)
    return Envelope(
        outgoing.message_id,
        encoded.topic,
        encoded.message_type,
        encoded.body,
        encoded.properties,
        outgoing.not_before,
        outgoing.order_key,
    )
