"""Requests of this machine alone, and not of foreign web pages in a browser on it (rule A2)."""

import ipaddress
import re

from matoolkit.errors import NotFromHere

_PLAIN_PORT = 80
_PLACE = r"(?P<name>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z.-]+)(:(?P<port>[0-9]{1,5}))?"
_HOST = re.compile(_PLACE)
_ORIGIN = re.compile(f"http://{_PLACE}")


def is_loopback(host: str) -> bool:
    """Tell whether an address or name can only mean this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


def require_from_here(client: str, host: str | None, origin: str | None) -> None:
    """Refuse a request that another machine sent, that was addressed to another name, or that a page sent.

    A page that the server itself has sent may ask it; any other, of this machine too, has another port or name.
    """
    if not is_loopback(client):
        raise NotFromHere("the request comes from another one")
    ours = _place(_HOST, host or "")
    if ours is None or not is_loopback(ours[0]):
        raise NotFromHere("it was addressed under another name")
    if origin is not None and _place(_ORIGIN, origin) != ours:
        raise NotFromHere("it was sent by a page of another address")


def _place(pattern: re.Pattern[str], text: str) -> tuple[str, int] | None:
    found = pattern.fullmatch(text)
    return found and (found["name"].casefold(), int(found["port"] or _PLAIN_PORT))
