"""Addresses of sources as the environment holds them, read without ever being repeated in an error (rule R4)."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from matoolkit.errors import SourceFailed

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# No character with a meaning in a connection string.
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is. Only a server on this machine is spoken to in clear text."""

    host: str
    port: int | None
    is_encrypted: bool = True

    @property
    def is_this_machine(self) -> bool:
        """Whether the server is on the machine that asks."""
        return self.host in _LOOPBACK

    @property
    def origin(self) -> str:
        """The address as the beginning of a URL."""
        scheme = "https" if self.is_encrypted else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}" if self.port is None else f"{scheme}://{host}:{self.port}"


def read_address(text: str, example: str) -> Address:
    """Read `https://host`, `https://host:port` or the same without `https://`; there may be a slash at the end."""
    try:
        parts = urlsplit(text.strip() if "://" in text else f"https://{text.strip()}")
        address = Address(parts.hostname or "", parts.port, parts.scheme == "https")
    except ValueError:
        raise _unreadable(example) from None
    # What else a URL may hold would be dropped silently, or is a password.
    extra = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if extra or not _HOST.fullmatch(address.host):
        raise _unreadable(example)
    if not address.is_encrypted and not (parts.scheme == "http" and address.is_this_machine):
        raise SourceFailed("the source's address does not begin with https://", hint=f"write it as {example}")
    return address


def _unreadable(example: str) -> SourceFailed:
    return SourceFailed("the source's address cannot be read", hint=f"write it as {example}")
