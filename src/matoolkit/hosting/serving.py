"""The web server of the admin API: so many connections and no more, none that stays half sent, and a quiet log."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from matoolkit.errors import MatoolkitError
from matoolkit.outages import Outage

# Longer than clients keep an idle connection: if the server closes one just as the client uses it again, the client
# gets an error.
KEPT_ALIVE_SECONDS = 75
# How long running requests may take when it stops: less than platforms wait before they kill the process.
GRACE_SECONDS = 20
MOST_CONNECTIONS = 500
# The time limits for the head of a request, and for each piece of its body.
HEAD_SECONDS = 20
BODY_SECONDS = 30
# A client that reads nothing of its answer for this long is gone.
STALLED_SECONDS = 60
# Short: when there is no file handle left, the event loop tries once for each of them.
_BACKLOG = 128
_OUT_OF_HANDLES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Connections fail and work in turn, so an outage is over only when none has failed for this long.
_QUIET_SECONDS = 60

log = logging.getLogger(__name__)


class ApiServer(uvicorn.Server):
    """Serves an application; what it cannot do for a while is told once a minute.

    `before_end` ends what would go on for as long as clients want, such as streams.
    """

    def __init__(self, app: ASGIApp, before_end: Callable[[], None] | None = None) -> None:
        self._before_end = before_end
        self.handles = _Trouble("accepting connections")
        self.room = _Trouble("taking more connections")
        most = _most_connections()

        class Connection(_Connection):
            server_of_it = self
            most_connections = most

        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            log_config=None,
            access_log=False,
            backlog=_BACKLOG,
            timeout_keep_alive=KEPT_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        asyncio.get_running_loop().set_exception_handler(self._note)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, after the requests at hand."""
        if self._before_end:
            self._before_end()
        await super().shutdown(sockets)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        fault = context.get("exception")
        if isinstance(fault, OSError) and fault.errno in _OUT_OF_HANDLES:
            self.handles.met(loop.time(), f"no file handles are left: {fault.strerror}")
        elif not isinstance(fault, ConnectionError):  # a client that goes away is no error
            loop.default_exception_handler(context)


class _Trouble:
    """An outage that is over when nothing was met for a minute."""

    def __init__(self, what: str) -> None:
        self._outage = Outage(what, log)
        self._met_at = 0.0

    def met(self, now: float, why: str) -> None:
        self._met_at = now
        self._outage.failed(MatoolkitError(why))

    def not_met(self, now: float) -> None:
        if self._outage.is_on and now - self._met_at >= _QUIET_SECONDS:
            self._outage.worked()


class _Connection(H11Protocol):
    """A connection that is closed if the client does not go on with what it has begun."""

    server_of_it: ApiServer
    most_connections: int
    since: float
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        now = self.loop.time()
        self.server_of_it.handles.not_met(now)
        self.since = now
        self._timer = self.loop.call_later(HEAD_SECONDS, self._is_late)
        if len(self.connections) <= self.most_connections:
            self.server_of_it.room.not_met(now)
            return
        self.server_of_it.room.met(now, f"there are {self.most_connections} already")
        self._one_too_many().end(b"503 Service Unavailable", b"Retry-After: 5\r\n")

    def _one_too_many(self) -> "_Connection":
        """Return the oldest idle connection, so that idle ones do not keep new clients out, else this one."""
        others = [one for one in self.connections if isinstance(one, _Connection) and one is not self]
        waiting = [one for one in others if one.conn.their_state is h11.IDLE and not one.transport.is_closing()]
        return min(waiting, key=lambda one: one.since, default=self)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        was_idle = self.conn.their_state is h11.IDLE
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and was_idle and self._timer is not None:
            return  # The head comes in pieces: its time limit does not start again.
        self._forget()
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            seconds = HEAD_SECONDS if self.conn.their_state is h11.IDLE else BODY_SECONDS
            self._timer = self.loop.call_later(seconds, self._is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        super().resume_writing()

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_late(self) -> None:
        if self.flow.read_paused:  # We are the side that does not read, so the client is not slow.
            self._timer = self.loop.call_later(BODY_SECONDS, self._is_late)
        elif getattr(self.cycle, "response_started", False):
            self.transport.close()
        else:
            self.end(b"408 Request Timeout")

    def end(self, status: bytes, more: bytes = b"") -> None:
        """Answer without asking the application, and close the connection."""
        self.transport.write(b"HTTP/1.1 %s\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n" % (status, more))
        self.transport.close()


def _most_connections() -> int:
    """Leave half of the process's file handles to everything else."""
    if os.name != "posix":
        return MOST_CONNECTIONS
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)
