"""The tenant over HTTP, for programs on this machine only: it has no passwords to keep, and they may control it."""

import os
import socket
import struct
import threading
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import orjson

from matoolkit.errors import NotFromHere
from matoolkit.loopback import require_from_here
from matoolkit.worker.tenant.calls import Answer, Request
from matoolkit.worker.tenant.tenant import Tenant


class TenantServer:
    """Serves a tenant on a port of this machine; port 0 takes any that is free."""

    def __init__(self, tenant: Tenant, port: int = 0) -> None:
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.tenant = tenant
        self._thread: threading.Thread | None = None

    @property
    def tenant(self) -> Tenant:
        """The tenant that is served."""
        return self._server.tenant

    @tenant.setter
    def tenant(self, tenant: Tenant) -> None:
        """Serve another tenant from now on, at the same address."""
        self._server.tenant = tenant

    @property
    def url(self) -> str:
        """Where it can be reached."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def serve(self) -> None:
        """Serve until stopped."""
        self._server.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        """Stop serving; calls that hang are released."""
        self.tenant.faults.clear()
        self._server.shutdown()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve, name="tenant", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._server.server_close()
        if self._thread is not None:
            self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a connection that a client keeps open is no reason to stay
    request_queue_size = 256
    tenant: Tenant


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together, or the client's acknowledgement of the head would be waited for
    disable_nagle_algorithm = True
    server: _Server

    def handle(self) -> None:
        """Serve a connection for as long as the client keeps it."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def finish(self) -> None:
        """Close the connection, if it is not closed already."""
        try:
            super().finish()
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing: the tenant keeps its own list of calls."""

    def date_time_string(self, timestamp: float | None = None) -> str:  # noqa: ARG002
        """Tell the tenant's time, not the machine's."""
        return format_datetime(self.server.tenant.clock.now(), usegmt=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            # The caller died while it was sending: half a call is no call.
            self.close_connection = True
            return
        try:
            require_from_here(self.client_address[0], self.headers.get("Host"), self.headers.get("Origin"))
            content = orjson.loads(body) if body else None
        except NotFromHere as refused:
            self._send(Answer(421, {"error": {"code": "MisdirectedRequest", "message": refused.message}}))
            return
        except orjson.JSONDecodeError:
            self._send(
                Answer(400, {"error": {"code": "BadRequest", "message": "Unable to read JSON request payload."}})
            )
            return
        answer = self.server.tenant.answer(Request(self.command, self.path, dict(self.headers.items()), content))
        if answer.is_reset:
            self._reset()
        else:
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        if answer.body is None:
            body = b""
        else:
            body = answer.body if isinstance(answer.body, bytes) else orjson.dumps(answer.body)
        self.send_response(answer.status)
        kind = "text/html" if isinstance(answer.body, bytes) else "application/json"
        for name, value in {"Content-Type": kind, **answer.headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _reset(self) -> None:
        # With no time to linger, closing sends a reset.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        os.close(self.connection.detach())
