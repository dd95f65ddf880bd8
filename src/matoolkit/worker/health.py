"""Two addresses by which a platform knows how a worker is: `/healthz` and `/readyz` (rule W1)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import orjson


class Patient(Protocol):
    """What can be asked how it is."""

    @property
    def is_alive(self) -> bool:
        """Whether it works at all; if not, it should be started anew."""

    @property
    def is_ready(self) -> bool:
        """Whether it can do what it is for at the moment."""


@contextmanager
def health_served(patient: Patient, port: int, host: str = "") -> Iterator[int]:
    """Answer for as long as the context lasts, and say on which port; 0 is any that is free."""

    class Handler(_Handler):
        asked = patient

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    timeout = 10
    asked: Patient

    def do_GET(self) -> None:
        """Answer one question."""
        match self.path.partition("?")[0]:
            case "/healthz":
                self._answer(HTTPStatus.OK if self.asked.is_alive else HTTPStatus.SERVICE_UNAVAILABLE)
            case "/readyz":
                self._answer(HTTPStatus.OK if self.asked.is_ready else HTTPStatus.SERVICE_UNAVAILABLE)
            case _:
                self._answer(HTTPStatus.NOT_FOUND)

    def log_message(self, *_: Any) -> None:
        """Say nothing: a platform asks every few seconds."""

    def _answer(self, status: HTTPStatus) -> None:
        body = orjson.dumps({"status": "ok" if status is HTTPStatus.OK else status.phrase.lower()})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
