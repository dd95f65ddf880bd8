"""The thread on which Proton runs, and a way to run something on it from elsewhere."""

import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from proton.reactor import ApplicationEvent, Container, EventInjector

T = TypeVar("T")

_TICK = 0.02  # seconds
_log = logging.getLogger(__name__)


class Reactor:
    """Listens on a free port of this machine and hands the events of all connections to its handler."""

    def __init__(self) -> None:
        self.port = 0
        self.handlers: list[Any] = []  # proton looks for this name
        self._container: Any = None
        self._socket: Any = None
        self._injector = EventInjector()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="servicebus", daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._listening.wait(10), "the server did not start"

    def stop(self) -> None:
        self.call(self._container.stop)
        self._thread.join(10)
        self._socket.close()

    def call(self, ask: Callable[[], T]) -> T:
        """Run something on the reactor's thread and return what it returns."""
        if threading.current_thread() is self._thread:
            return ask()
        answers: list[T] = []
        errors: list[BaseException] = []
        done = threading.Event()

        def run() -> None:
            try:
                answers.append(ask())
            except BaseException as error:  # noqa: BLE001 - it is raised where it was asked
                errors.append(error)
            finally:
                done.set()

        self._injector.trigger(ApplicationEvent("call", subject=run))
        assert done.wait(10), "the server does not answer"
        if errors:
            raise errors[0]
        return answers[0]

    def on_reactor_init(self, event: Any) -> None:
        self._container = event.container
        self._container.selectable(self._injector)
        acceptor = self._container.listen("127.0.0.1:0")
        self._socket = acceptor._selectable._delegate  # noqa: SLF001 - there is no other way to ask for the port
        self.port = self._socket.getsockname()[1]
        self._container.schedule(_TICK, self)
        self._listening.set()

    def on_timer_task(self, _event: Any) -> None:
        for handler in self.handlers:
            handler.tick()
        self._container.schedule(_TICK, self)

    def on_call(self, event: Any) -> None:
        event.subject()

    def _run(self) -> None:
        container = Container(self)
        container.timeout = 1.0
        container.start()
        is_running = True
        while is_running:
            try:
                is_running = container.process()
            except Exception:  # noqa: BLE001 - a client that does not behave must not end the server
                _log.exception("an event could not be handled")
