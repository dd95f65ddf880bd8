"""Small facts that travel through a browser and come back unchanged: signed, for one purpose, until a time."""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import orjson

from matoolkit.clock import Clock

_ENDS = "ends"


class Seal:
    """Signs with the first of its keys, and recognises what any of them has signed, so that a key can be replaced."""

    def __init__(self, keys: Sequence[bytes], clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    @classmethod
    def of_this_process(cls, clock: Clock) -> "Seal":
        """Return a seal that nobody else has and that ends with the process."""
        return cls([secrets.token_bytes(32)], clock)

    def sealed(self, purpose: str, content: Mapping[str, Any], lasting: timedelta) -> str:
        """Return content as a text that is good for a purpose and for a while."""
        ends = (self._clock.now() + lasting).timestamp()
        body = _encoded(orjson.dumps({**content, _ENDS: ends}))
        return f"{body}.{_encoded(self._signature(self._keys[0], purpose, body))}"

    def opened(self, purpose: str, text: str) -> dict[str, Any] | None:
        """Return the content of a text that was sealed here for this purpose and is still good, or nothing."""
        body, _, signature = text.partition(".")
        given = _decoded(signature)
        if not any(hmac.compare_digest(given, self._signature(key, purpose, body)) for key in self._keys):
            return None
        content: dict[str, Any] = orjson.loads(_decoded(body))
        return content if self._clock.now().timestamp() < content.pop(_ENDS) else None

    def mark(self, purpose: str, *facts: str) -> str:
        """Return a sign that only we can make for these facts."""
        return _encoded(self._signature(self._keys[0], purpose, "\0".join(facts)))

    def is_mark(self, given: str, purpose: str, *facts: str) -> bool:
        """Tell whether a sign was made here for these facts."""
        text, sign = "\0".join(facts), _decoded(given)
        return any(hmac.compare_digest(sign, self._signature(key, purpose, text)) for key in self._keys)

    @staticmethod
    def _signature(key: bytes, purpose: str, text: str) -> bytes:
        return hmac.digest(key, f"{purpose}\0{text}".encode(), hashlib.sha256)


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text.encode("ascii", "replace") + b"=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
