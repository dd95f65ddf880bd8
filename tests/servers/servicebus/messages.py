"""Messages as Service Bus keeps them: what the sender wrote stays as it is, what the service adds stands before it."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

from proton import Data, Described, symbol, ulong

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, DATA = range(0x70, 0x76)
SCHEDULED = "x-opt-scheduled-enqueue-time"

_NULL = b"\x40"
_SECTION = re.compile(rb"\x00(\x53|\x80\0{7})[\x70-\x78]")


class State(IntEnum):
    """The value of `x-opt-message-state`."""

    ACTIVE = 0
    DEFERRED = 1
    SCHEDULED = 2


@dataclass(frozen=True)
class Stored:
    """A message in a subscription. Times are seconds since 1970 by the server's clock."""

    bare: bytes  # properties, application properties and body, as they came
    message_id: str | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    annotations: dict[str, Any] = field(default_factory=dict)
    time_to_live: float | None = None
    enqueued: float = 0.0
    number: int = 0
    failures: int = 0  # deliveries that came to nothing
    state: State = State.ACTIVE

    @cached_property
    def folded(self) -> dict[str, Any]:
        """The application properties by names in lower case: filters do not mind the case of a name."""
        return {name.lower(): value for name, value in self.properties.items()}

    @property
    def body(self) -> bytes:
        """The data sections of the body, joined."""
        return b"".join(bytes(value) for kind, value, _ in _sections(self.bare) if kind == DATA)

    @property
    def scheduled(self) -> float | None:
        """When the sender wants the message to appear."""
        at = self.annotations.get(SCHEDULED)
        return None if at is None else float(at) / 1000

    def with_properties(self, more: dict[str, str]) -> "Stored":
        """Return the message with further application properties."""
        properties = {**self.properties, **more}
        written = _encoded(Described(ulong(APPLICATION_PROPERTIES), properties))
        parts = [(kind, raw) for kind, _, raw in _sections(self.bare) if kind != APPLICATION_PROPERTIES]
        before = b"".join(raw for kind, raw in parts if kind < APPLICATION_PROPERTIES)
        after = b"".join(raw for kind, raw in parts if kind > APPLICATION_PROPERTIES)
        return replace(self, bare=before + written + after, properties=properties)

    def encoded(self, locked_until: float | None = None) -> bytes:
        """Return the bytes of a delivery."""
        life = _NULL if self.time_to_live is None else _uint(min(int(self.time_to_live * 1000), 0xFFFFFFFF))
        header = b"\x41" + _NULL + life + _NULL + _uint(self.failures)
        notes = [
            _symbol("x-opt-enqueued-time") + _timestamp(self.enqueued),
            _symbol("x-opt-sequence-number") + b"\x81" + struct.pack(">q", self.number),
            _symbol("x-opt-message-state") + b"\x71" + struct.pack(">i", self.state),
        ]
        if locked_until is not None:
            notes.append(_symbol("x-opt-locked-until") + _timestamp(locked_until))
        notes += [_symbol(name) + _encoded(value) for name, value in self.annotations.items()]
        body = b"".join(notes)
        return b"".join(
            (
                b"\x00\x53\x70\xc0" + bytes((len(header) + 1, 5)) + header,
                b"\x00\x53\x72\xd1" + struct.pack(">II", len(body) + 4, 2 * len(notes)) + body,
                self.bare,
            )
        )


def read(raw: bytes) -> list[Stored]:
    """Read one message, or those of a batch, which is a message whose data sections are messages.

    The library does not tell the format of a transfer, so that a batch is recognised by what is in it.
    """
    life: float | None = None
    message_id: str | None = None
    properties: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    bare: list[bytes] = []
    packed: list[bytes] = []
    for kind, value, part in _sections(raw):
        if kind == HEADER:
            life = value[2] / 1000 if len(value) > 2 and value[2] else None
        elif kind == ANNOTATIONS:
            annotations = {str(name): note for name, note in value.items()}
        elif kind != DELIVERY_ANNOTATIONS:
            bare.append(part)
            if kind == PROPERTIES and value and value[0] is not None:
                message_id = str(value[0])
            elif kind == APPLICATION_PROPERTIES:
                properties = {str(name): item for name, item in value.items()}
            elif kind == DATA:
                packed.append(bytes(value))
    if packed and not properties and all(_SECTION.match(data) for data in packed):
        return [message for data in packed for message in read(data)]
    return [Stored(b"".join(bare), message_id, properties, annotations, life)]


def _sections(raw: bytes) -> Iterator[tuple[int, Any, bytes]]:
    place = 0
    while place < len(raw):
        data = Data()
        length = data.decode(raw[place:])
        data.rewind()
        data.next()
        section = data.get_py_described()
        yield int(section.descriptor), section.value, raw[place : place + length]
        place += length


def _encoded(value: Any) -> bytes:
    data = Data()
    data.put_object(value)
    return bytes(data.encode())


def _symbol(name: str) -> bytes:
    text = symbol(name).encode()
    return b"\xa3" + bytes((len(text),)) + bytes(text)


def _uint(value: int) -> bytes:
    return b"\x70" + struct.pack(">I", value)


def _timestamp(seconds: float) -> bytes:
    return b"\x83" + struct.pack(">q", int(seconds * 1000))
