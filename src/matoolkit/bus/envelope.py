"""A message on its way: encoded, addressed, and small enough for every bus."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Protocol

import orjson

from matoolkit.bus import topology
from matoolkit.bus.wire import encode
from matoolkit.domain.delivery import MAX_BODY_BYTES
from matoolkit.domain.messages import WorkerJob
from matoolkit.errors import MessageTooLarge, UnwritableMessage
from matoolkit.ports import Outgoing
from matoolkit.records import record
from matoolkit.telemetry.tracing import TRACEPARENT, current_traceparent


@record
class Envelope:
    """What a bus carries; subscriptions choose messages by their properties."""

    message_id: str
    topic: str
    message_type: str
    body: str
    properties_json: str
    not_before: datetime | None
    traceparent: str | None = None

    @property
    def all_properties_json(self) -> str:
        """The properties with the traceparent among them, as they travel."""
        if self.traceparent is None:
            return self.properties_json
        return f'{self.properties_json[:-1]},"{TRACEPARENT}":"{self.traceparent}"}}'


class Carrier(Protocol):
    """A bus as the relay sees it."""

    def deliver(self, envelopes: Sequence[Envelope]) -> None:
        """Publish envelopes in their order; if it raises, some of the first may be out already.

        An error that is not transient means that the bus will not take one of them.
        """

    def unreached(self, worker_ids: Collection[str]) -> Collection[str]:
        """Return the workers for which no job would wait."""


def sealed(messages: Sequence[Outgoing]) -> list[Envelope]:
    """Encode messages; one that no bus could carry is refused."""
    traceparent = current_traceparent()
    return [_seal(outgoing, traceparent) for outgoing in messages]


def _seal(outgoing: Outgoing, traceparent: str | None) -> Envelope:
    message = outgoing.message
    try:
        form, body = encode(message)
    except orjson.JSONEncodeError as error:  # its text names types, never values
        raise UnwritableMessage(outgoing.message_id, str(error)) from None
    # No character takes more than four bytes, so only a long text needs to be measured.
    if len(body) * 4 > MAX_BODY_BYTES and (size := len(body.encode())) > MAX_BODY_BYTES:
        raise MessageTooLarge(outgoing.message_id, size, MAX_BODY_BYTES)
    return Envelope(
        outgoing.message_id,
        form.topic,
        form.message_type,
        body,
        _properties(form.message_type, message.worker_id if isinstance(message, WorkerJob) else None),
        outgoing.not_before,
        outgoing.traceparent or traceparent,
    )


@lru_cache(maxsize=1024)
def _properties(message_type: str, worker_id: str | None) -> str:
    # There are as many as there are workers.
    properties = {topology.MESSAGE_TYPE: message_type}
    if worker_id is not None:
        properties[topology.WORKER_ID] = worker_id
    return orjson.dumps(properties).decode()
