"""The admin API on a free port of this machine, served as it is served to people."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from matoolkit.api.app import create_app
from matoolkit.api.services import Services
from tests.waiting import until


@contextmanager
def serving(services: Services) -> Iterator[str]:
    """Serve for as long as the context lasts, and return the address."""
    config = uvicorn.Config(create_app(services), host="127.0.0.1", port=0, log_level="critical", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
