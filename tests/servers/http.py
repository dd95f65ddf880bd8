"""An HTTP server in a thread, and the ways in which one may fail."""

import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """What goes back. `bytes_sent` cuts the body off there; `is_reset` breaks the connection before any answer."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    bytes_sent: int | None = None
    is_reset: bool = False


class Service(Protocol):
    def answer(self, request: Request) -> Answer: ...


@contextmanager
def served(service: Service, certificate: Path | None = None) -> Iterator[str]:
    """Serve on a free port while the context lasts, encrypted if there is a certificate, and return the address."""

    class Serving(Handler):
        served = service

    server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        address = f"https://localhost:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """Hands each request to a service."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together, or the client's acknowledgement of the head would be waited for
    served: Service

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.headers.get("Content-Type", "")
        is_raw = "xml" in kind or "protobuf" in kind or "Content-Encoding" in self.headers
        read = body if is_raw else parse_qs(body.decode()) if "form" in kind else json.loads(body or "null")
        request = Request(self.command, self.path, dict(self.headers.items()), read)
        answer = self.served.answer(request)
        if answer.is_reset:
            # With no time to linger, closing sends a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            os.close(self.connection.detach())
            return
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response_only(answer.status)
        for name, value in {
            "Date": self.date_time_string(),
            **answer.headers,
            "Content-Length": str(len(body)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: answer.bytes_sent])
        self.close_connection = self.close_connection or answer.bytes_sent is not None
