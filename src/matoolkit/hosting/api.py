"""The admin API as a process of its own; any number of them may run beside each other."""

import logging
import os
import socket
from collections.abc import Mapping

import uvicorn

from matoolkit.api.app import create_app
from matoolkit.api.auth import Entra, LocalOnly, SignIn, is_loopback
from matoolkit.api.services import Services
from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import SignInRequired
from matoolkit.hosting.process import run_parts, stopped_by_signals
from matoolkit.settings import Settings
from matoolkit.system import open_bus, open_state, read_message, source_opener

log = logging.getLogger(__name__)


def run_api(settings: Settings, host: str, port: int, environ: Mapping[str, str] = os.environ) -> None:
    """Serve until a signal comes; requests at hand are finished."""
    clock = SystemClock()
    sign_in = sign_in_for(settings, host, clock)
    store = open_state(settings)
    try:
        publisher = open_bus(settings, store)
        services = Services(store, publisher, read_message, source_opener(environ), clock, sign_in)
        config = uvicorn.Config(create_app(services), log_config=None, access_log=False, ws="none")
        _serve(uvicorn.Server(config), host, port)
    finally:
        store.close()


def _serve(server: uvicorn.Server, host: str, port: int) -> None:
    def stop_serving() -> None:
        server.should_exit = True

    with _listening(host, port) as place, stopped_by_signals(stop_serving) as stop:
        log.info("serving the admin API on %s, port %d", host, place.getsockname()[1])
        # In a thread of its own the server leaves the signals to us.
        run_parts({"api": lambda _: server.run([place])}, stop)


def _listening(host: str, port: int) -> socket.socket:
    # Opened here, because the server would only log that an address is taken, and exit.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def sign_in_for(settings: Settings, host: str, clock: Clock) -> SignIn:
    """Return how people sign in; without Entra settings nobody has to, so only this machine is served."""
    if settings.entra_tenant_id and settings.entra_client_id:
        return Entra(settings.entra_tenant_id, settings.entra_client_id, clock, settings.entra_audience)
    if not is_loopback(host):
        raise SignInRequired(host)
    return LocalOnly()
