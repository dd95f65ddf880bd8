"""The private thread in which all work with the SDK happens."""

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


class LoopThread:
    """An event loop in a thread of its own, which begins when it is first needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def runs(self) -> bool:
        """Whether it has begun and was not stopped."""
        return self._loop is not None

    def do(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Do work there, wait for it and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._running()).result()

    def stop(self) -> None:
        """End the thread; the next work begins another one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # A daemon: a process that must end does not wait for a link.
                self._thread = threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    logging.getLogger("asyncio").addFilter(_is_news)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        # Once more round, so that connections that were closed just now let go of their sockets.
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out what asyncio says of every message that was being settled when a link broke: we tell it once."""
    return "socket.send() raised exception" not in record.getMessage()
