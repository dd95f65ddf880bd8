"""The one port of a namespace: AMQP and HTTP come in here, encrypted or not, and leave with a delay if one is set.

In Azure the parts have ports of their own. Here they share one, so that one connection string serves both clients of
the SDK. The client for administration always encrypts.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_PIECE = 2**16
_TLS = b"\x16"  # how a client that wants to encrypt begins


class Gate:
    """Passes on what comes, in a thread of its own."""

    was_used = False  # whether the SDK has had connections in this process

    def __init__(self, host: str, port: int, certificate: Path | None) -> None:
        self.delay = 0.0  # seconds, in each direction
        self._listener = socket.create_server((host, port))
        self._listener.setblocking(False)
        self._inside: dict[bytes, int] = {}
        self._tls = _context(certificate) if certificate else None
        self._open: set[asyncio.WriteTransport] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="servicebus-gate", daemon=True)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def start(self, amqp: int, http: int) -> None:
        """Begin to pass on connections to two ports of this machine."""
        type(self).was_used = True
        self._inside = {b"AMQP": amqp, b"": http}
        self._thread.start()

    def stop(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._listener.close()

    def cut(self) -> None:
        """Break all connections without a word."""

        async def abort() -> None:
            for transport in list(self._open):
                transport.abort()

        asyncio.run_coroutine_threadsafe(abort(), self._loop).result(10)

    def _run(self) -> None:
        self._spawn(self._accept())
        self._loop.run_forever()
        for task in list(self._tasks):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        while True:
            client, _ = await self._loop.sock_accept(self._listener)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._spawn(self._serve(client))

    async def _serve(self, client: socket.socket) -> None:
        """Carry one connection until either side ends it."""
        writers: list[asyncio.StreamWriter] = []
        try:
            from_client, to_client = await self._stream(client)
            writers.append(to_client)
            begin = await from_client.read(_PIECE)
            port = self._inside.get(begin[:4], self._inside[b""])
            from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
            writers.append(to_server)
            self._open.update(writer.transport for writer in writers)
            await self._carry((from_client, to_server, begin), (from_server, to_client, b""))
        except OSError:
            pass  # a connection that breaks is nobody's mistake
        finally:
            for writer in writers:
                self._open.discard(writer.transport)
                writer.close()

    async def _first(self, client: socket.socket) -> bytes:
        """Look at the first byte and leave it where it is."""
        while True:
            try:
                return client.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                readable = self._loop.create_future()
                self._loop.add_reader(client, _resolve(readable))
                try:
                    await readable
                finally:
                    self._loop.remove_reader(client)

    async def _stream(self, client: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            tls = self._tls if await self._first(client) == _TLS else None
        except (OSError, asyncio.CancelledError):
            client.close()
            raise
        reader = asyncio.StreamReader(loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, client, ssl=tls)
        return reader, asyncio.StreamWriter(transport, protocol, reader, self._loop)

    async def _carry(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]) -> None:
        """Pass on both directions until one ends. Pieces wait side by side, each for as long as the delay."""
        tasks = []
        for reader, writer, begin in ways:
            waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
            tasks.append(asyncio.ensure_future(self._send(waiting, writer)))
            tasks.append(asyncio.ensure_future(self._read(reader, waiting, begin)))
        try:
            await asyncio.wait((tasks[0], tasks[2]), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(
        self, reader: asyncio.StreamReader, waiting: "asyncio.Queue[tuple[float, bytes]]", begin: bytes
    ) -> None:
        piece = begin
        try:
            while piece := piece or await reader.read(_PIECE):
                waiting.put_nowait((self._loop.time() + self.delay, piece))
                piece = b""
        finally:
            waiting.put_nowait((self._loop.time() + self.delay, b""))

    async def _send(self, waiting: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter) -> None:
        while True:
            due, piece = await waiting.get()
            left = due - self._loop.time()
            if left > 0:
                await asyncio.sleep(left)
            if not piece:
                return
            writer.write(piece)
            await writer.drain()


def _resolve(future: "asyncio.Future[None]") -> Callable[[], None]:
    return lambda: None if future.done() else future.set_result(None)


def _context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
