"""Ports to serve on."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from matoolkit.errors import PortTaken

_NEARBY = 20


@contextmanager
def told_if_taken(host: str, port: int) -> Iterator[None]:
    """Say in words that a port is taken."""
    try:
        yield
    except OSError as fault:
        if fault.errno != errno.EADDRINUSE:
            raise
        raise PortTaken(host, port) from None


def listening(host: str, port: int) -> socket.socket:
    """Open a socket to serve on; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with told_if_taken(host, port):
        place = socket.create_server((host, port), family=family)
    # Connections inherit it. Without it the body of an answer, which follows its headers, waits until the client has
    # confirmed those, and most clients take 40 ms for that.
    place.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return place


def listening_nearby(host: str, port: int) -> socket.socket:
    """Open a socket on a port, or on one of those that follow if it is taken."""
    for candidate in range(port, port + _NEARBY):
        try:
            return listening(host, candidate)
        except PortTaken:
            continue
    return listening(host, 0)


def port_of(place: socket.socket) -> int:
    """Return the port on which a socket listens."""
    return int(place.getsockname()[1])
