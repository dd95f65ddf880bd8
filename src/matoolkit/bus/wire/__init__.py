"""Messages as JSON: written exactly as the contract shows them, read with tolerance (rule M9).

Names are PascalCase. Reading takes any case, with or without underscores, ignores what it does not know, and accepts
a body that carries its own `messageType`, as earlier versions of the contract do.
"""

from dataclasses import field

import orjson

from matoolkit.bus import topology
from matoolkit.bus.wire.fields import Fields
from matoolkit.bus.wire.reading import READERS
from matoolkit.bus.wire.writing import FORMS
from matoolkit.domain.messages import Message, WorkerJob
from matoolkit.errors import UnreadableMessage
from matoolkit.records import record

_AS_IN_THE_CONTRACT = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z
# What a message is that does not say, as those written to the contract's letter do on these topics.
_UNTYPED = {topology.WORKER_JOBS: "worker-job", topology.WORKER_RESULTS: "worker-result"}


@record
class Encoded:
    """A message as it travels."""

    topic: str
    message_type: str
    body: str
    properties: dict[str, str] = field(default_factory=dict)


def encode(message: Message) -> Encoded:
    """Write a message."""
    form = FORMS[type(message)]
    body = orjson.dumps(form.write(message), option=_AS_IN_THE_CONTRACT).decode()
    properties = {topology.MESSAGE_TYPE: form.message_type}
    if isinstance(message, WorkerJob):
        properties[topology.WORKER_ID] = message.worker_id
    return Encoded(form.topic, form.message_type, body, properties)


def decode(topic: str, message_type: str | None, body: str | bytes) -> Message:
    """Read a message; one that cannot be read is an `UnreadableMessage` that says why and repeats no values."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise UnreadableMessage("it is not JSON") from None
    if not isinstance(document, dict):
        raise UnreadableMessage("it is not a JSON object")
    fields = Fields(document)
    kind = message_type or fields.text("MessageType", default=_UNTYPED.get(topic, ""))
    if (read := READERS.get(kind)) is None:
        raise UnreadableMessage(f"its type '{kind[:100]}' is not known")
    return read(fields)
