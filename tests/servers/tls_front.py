"""A proxy that speaks TLS to the world and plain HTTP to what is behind it, as one in front of an API does."""

import asyncio
import socket
import ssl
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PIECE = 65536


@contextmanager
def tls_front(certificate: Path, place: socket.socket, behind: int) -> Iterator[None]:
    """Pass on what comes to a listening socket, for as long as the context lasts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    loop, ended = asyncio.new_event_loop(), asyncio.Event()

    async def joined(reader: StreamReader, writer: StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", behind)
        try:
            await asyncio.gather(_passed_on(reader, back), _passed_on(there, writer))
        finally:
            for one in (writer, back):
                one.transport.abort()
                with suppress(OSError):
                    await one.wait_closed()

    async def serve() -> None:
        async with await asyncio.start_server(joined, sock=place, ssl=context):
            await ended.wait()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


async def _passed_on(source: StreamReader, to: StreamWriter) -> None:
    """Pass on until one of the two ends."""
    try:
        with suppress(OSError):
            while piece := await source.read(_PIECE):
                to.write(piece)
                await to.drain()
    finally:
        to.close()
