"""Who may do what: keys that sign tokens, and identities whose tokens come from elsewhere."""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote_plus

from matoolkit.clock import SystemClock

MANAGE, SEND, LISTEN = "Manage", "Send", "Listen"
EVERYTHING = frozenset({MANAGE, SEND, LISTEN})

_PREFIX = "SharedAccessSignature "


@dataclass(frozen=True)
class Key:
    secret: str
    rights: frozenset[str]


@dataclass
class Tokens:
    """What a namespace knows of those who come."""

    keys: dict[str, Key] = field(
        default_factory=lambda: {
            "RootManageSharedAccessKey": Key("not-a-secret", EVERYTHING),
            "SendAndListen": Key("no-secret-either", frozenset({SEND, LISTEN})),
        }
    )
    identities: dict[str, frozenset[str]] = field(default_factory=dict)  # a bearer's token, and what it allows

    def rights(self, token: str) -> frozenset[str]:
        """Say what a token allows: nothing, if it is unknown, forged or expired."""
        if not token.startswith(_PREFIX):
            return self.identities.get(token.removeprefix("Bearer "), frozenset())
        parts = {name: values[0] for name, values in parse_qs(token[len(_PREFIX) :]).items()}
        key = self.keys.get(parts.get("skn", ""))
        if key is None or parts.get("sig") != _signature(parts.get("sr", ""), parts.get("se", ""), key.secret):
            return frozenset()
        return key.rights if int(parts["se"]) > SystemClock().now().timestamp() else frozenset()


def _signature(resource: str, expiry: str, secret: str) -> str:
    text = f"{quote_plus(resource)}\n{expiry}".encode()
    return base64.b64encode(hmac.new(secret.encode(), text, hashlib.sha256).digest()).decode()
