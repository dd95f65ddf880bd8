"""Microsoft's clouds on this machine: a proxy through which every address leads to one service, and is written down.

A client that uses it by `HTTPS_PROXY` and trusts its certificate cannot tell it from the server that it asked for.
"""

import ssl
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.servers.certificates import make_certificate
from tests.servers.entra import Entra
from tests.servers.http import Answer, Handler, Request


@dataclass
class Internet:
    """Entra at every authority, and empty answers elsewhere, unless `answers` has another for a server."""

    authorities: Collection[str]
    entra: Entra = field(default_factory=Entra)
    answers: dict[str, Callable[[Request], Answer]] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        host = request.headers["Host"]
        self.hosts.append(host)
        if host in self.answers:
            return self.answers[host](request)
        if host in self.authorities:
            self.entra.address = f"https://{host}"
            return self.entra.answer(request)
        return Answer({"value": []})

    @property
    def scopes(self) -> list[str]:
        """What tokens were asked for."""
        return [scope for body in self.entra.asked("/token") for scope in body["scope"]]

    def paths(self, host: str) -> list[str]:
        return [urlsplit(one.path).path for one in self.entra.requests if one.headers["Host"] == host]


@contextmanager
def reached(internet: Internet, names: Collection[str], folder: Path) -> Iterator[None]:
    """Serve it as a proxy for servers of these names; this process uses the proxy and trusts its certificate."""
    certificate, trusted = make_certificate(folder, names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    class Proxy(Handler):
        served = internet

        def do_CONNECT(self) -> None:  # noqa: N802 - its name is the method's
            self.send_response_only(200)
            self.end_headers()
            self.wfile.flush()
            self.connection = context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
            self.close_connection = False

        def finish(self) -> None:
            super().finish()
            self.connection.close()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as environ:
        for name in ("HTTPS_PROXY", "https_proxy"):
            environ.setenv(name, f"http://127.0.0.1:{server.server_address[1]}")
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            environ.setenv(name, str(trusted))
        # aiohttp reads the variable only once, when it is imported.
        environ.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", ssl.create_default_context(cafile=trusted))
        for name in ("NO_PROXY", "no_proxy"):
            environ.setenv(name, "127.0.0.1,localhost")
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
