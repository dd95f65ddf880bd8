"""The pages on a free port of this machine, served as they are served to people: beside the admin API."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from matoolkit.api.app import create_app
from matoolkit.hosting.addresses import Addresses
from matoolkit.hosting.serving import ApiServer
from matoolkit.hosting.sockets import listening, port_of
from matoolkit.web.serving import Site
from matoolkit.web.site import create_site
from tests.waiting import until


@contextmanager
def serving_pages(site: Site, port: int = 0) -> Iterator[str]:
    """Serve for as long as the context lasts, and return the address."""
    doors = Addresses(create_app(site.services), create_site(site))
    server = ApiServer(doors, before_end=doors.close)
    with listening("127.0.0.1", port) as place:
        thread = threading.Thread(target=server.run, args=([place],), daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{port_of(place)}"
        finally:
            server.should_exit = True
            thread.join()
