"""The admin API as a process of its own; any number of them may run beside each other."""

import logging
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from matoolkit.api.app import create_app
from matoolkit.clock import Clock, SystemClock
from matoolkit.clouds import CLOUDS
from matoolkit.doors.entra import Entra
from matoolkit.doors.identity import LocalOnly, SignIn
from matoolkit.doors.services import Services
from matoolkit.errors import SignInRequired
from matoolkit.hosting.addresses import Addresses
from matoolkit.hosting.entrance import WayToPages, way_to_pages
from matoolkit.hosting.process import Part, run_parts, sweep_regularly
from matoolkit.hosting.serving import ApiServer
from matoolkit.hosting.sockets import listening, port_of
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.loopback import is_loopback
from matoolkit.ports import Publisher
from matoolkit.settings import Settings
from matoolkit.store import Store
from matoolkit.system import open_bus, open_state, read_message, source_opener
from matoolkit.web.serving import Site
from matoolkit.web.site import create_site

log = logging.getLogger(__name__)


def run_api(
    settings: Settings, host: str, port: int, stop: threading.Event, environ: Mapping[str, str] = os.environ
) -> None:
    """Serve until told to stop; requests at hand are finished, if that does not take long."""
    clock = SystemClock()
    sign_in = sign_in_for(settings, host, clock)
    way = way_to_pages(settings, sign_in, clock, environ)
    with ExitStack() as stack:
        stack.enter_context(telemetry_of(settings, "api", environ=environ))
        store = open_state(settings)
        stack.callback(store.close)
        messaging = open_bus(settings, store)
        stack.callback(messaging.bus.stop)
        services = services_of(store, messaging.publisher, environ, clock, sign_in)
        place = stack.enter_context(listening(host, port))
        log.info("serving the admin API and the pages on %s, port %d", host, port_of(place))
        parts = {"api": serving(services, way, settings, place)}
        if messaging.outbox:
            parts["outbox"] = partial(sweep_regularly, [messaging.outbox.sweep], settings.sweep_seconds)
        run_parts(parts, stop)


def services_of(
    store: Store, publisher: Publisher, environ: Mapping[str, str], clock: Clock, sign_in: SignIn
) -> Services:
    """Return what the routes work with."""
    return Services(store, publisher, read_message, source_opener(environ), clock, sign_in)


def site_of(services: Services, way: WayToPages, settings: Settings, *, streams: bool = True) -> Site:
    """Return what the pages work with."""
    return Site(services, way.sign_in, way.seal, settings.label, settings.zone, streams, way.is_https, way.entrance)


def both_doors(site: Site) -> Addresses:
    """Return the admin API and the pages at one address."""
    return Addresses(create_app(site.services), create_site(site))


def serving(services: Services, way: WayToPages, settings: Settings, place: socket.socket) -> Part:
    """Return what serves the API and the pages on a socket until it is told to stop."""
    doors = both_doors(site_of(services, way, settings))
    server = ApiServer(doors, before_end=doors.close)

    def serve(stop: threading.Event) -> None:
        def stop_serving() -> None:
            stop.wait()
            server.should_exit = True

        threading.Thread(target=stop_serving, name="api-stop", daemon=True).start()
        # In a thread of its own the server leaves the signals to us.
        server.run([place])

    return serve


def sign_in_for(settings: Settings, host: str, clock: Clock) -> SignIn:
    """Return how people sign in; without Entra settings there is no sign-in, so only this machine is served."""
    if settings.entra_tenant_id and settings.entra_client_id:
        return Entra(
            settings.entra_tenant_id,
            settings.entra_client_id,
            clock,
            settings.entra_audience,
            cloud=CLOUDS[settings.cloud],
        )
    if not is_loopback(host):
        raise SignInRequired(host)
    return LocalOnly()
