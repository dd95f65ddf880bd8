"""Messages as JSON: written exactly as the contract shows them, read with tolerance (rule M9).

Names are PascalCase. Reading takes any case, with or without underscores, ignores what it does not know, and accepts
a body that carries its own `messageType`, as earlier versions of the contract do.
"""

import orjson

from matoolkit.bus import topology
from matoolkit.bus.wire.fields import Fields
from matoolkit.bus.wire.reading import READERS
from matoolkit.bus.wire.writing import FORMS, Form
from matoolkit.domain.messages import Message
from matoolkit.errors import UnreadableMessage

# The type of a message without one: the contract does not require it on these topics.
_UNTYPED = {topology.WORKER_JOBS: "worker-job", topology.WORKER_RESULTS: "worker-result"}


def encode(message: Message) -> tuple[Form, str]:
    """Write a message; its form says what it is called and where it goes."""
    form = FORMS[type(message)]
    return form, orjson.dumps(form.write(message), option=orjson.OPT_UTC_Z).decode()


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
