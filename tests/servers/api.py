"""The admin API on a free port of this machine, served as it is served to people."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from matoolkit.api.app import create_app
from matoolkit.doors.services import Services
from matoolkit.hosting.serving import ApiServer
from matoolkit.hosting.sockets import listening, port_of
from tests.waiting import until


@contextmanager
def serving(services: Services, noted: Callable[[str, str], None] = lambda *_: None) -> Iterator[str]:
    """Serve for as long as the context lasts, and return the address; method and path of every request are noted."""
    app = create_app(services)

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            noted(scope["method"], scope["path"])
        await app(scope, receive, send)

    with listening("127.0.0.1", 0) as place, serving_app(noting, place) as address:
        yield address


@contextmanager
def serving_app(app: ASGIApp, place: socket.socket, before_end: Callable[[], None] | None = None) -> Iterator[str]:
    """Serve any application in this way; what never ends by itself is ended first."""
    server = ApiServer(app, before_end=before_end)
    thread = threading.Thread(target=server.run, args=([place],), daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{port_of(place)}"
    finally:
        server.should_exit = True
        thread.join()
