"""The pages on a free port of this machine, served as they are served to people: beside the admin API."""

from collections.abc import Iterator
from contextlib import contextmanager

from matoolkit.hosting.api import both_doors
from matoolkit.hosting.sockets import listening
from matoolkit.web.serving import Site
from tests.servers.api import serving_app


@contextmanager
def serving_pages(site: Site, port: int = 0) -> Iterator[str]:
    """Serve for as long as the context lasts, and return the address."""
    doors = both_doors(site)
    with listening("127.0.0.1", port) as place, serving_app(doors, place, doors.close) as address:
        yield address
