"""A process made of parts that run side by side until a signal stops it."""

import gc
import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from matoolkit.outages import Outage

Part = Callable[[threading.Event], object]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger(__name__)


def spare_the_collector() -> None:
    """Run the garbage collector less often: piles make many objects, and almost all are freed without it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def run_parts(parts: Mapping[str, Part], stop: threading.Event) -> None:
    """Run every part in its own thread until `stop` is set; if one fails, all stop and the error is raised."""
    failures: list[BaseException] = []

    def run(name: str, part: Part) -> None:
        try:
            part(stop)
        except BaseException as failure:
            log.exception("%s failed, and the process stops", name)
            failures.append(failure)
            stop.set()

    spare_the_collector()
    # A second Ctrl-C does not wait for them.
    threads = [threading.Thread(target=run, args=(name, part), name=name, daemon=True) for name, part in parts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def sweep_regularly(sweeps: Sequence[Callable[[], object]], seconds: float, stop: threading.Event) -> None:
    """Call each of these every so often until told to stop; one that fails is tried again next time."""
    troubles = [Outage("a sweep", log) for _ in sweeps]
    while not stop.wait(seconds):
        for sweep, trouble in zip(sweeps, troubles, strict=True):
            try:
                sweep()
            except Exception as fault:  # noqa: BLE001 - it is told, and the next sweep is not to blame
                trouble.failed(fault)
            else:
                trouble.worked()


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Give an event that the first SIGTERM or Ctrl-C sets; a second SIGTERM is ignored, a second Ctrl-C ends it.

    Commands enter it before they import and set up what they run: Python forgets a KeyboardInterrupt that it raises in
    the wrong place, such as a callback in the middle of an import. The main thread does not wait for the event: the
    signal could come just when it has the lock of the event.
    """
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    received: list[int] = []

    def begin_to_stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            stop.set()
            log.info("%s: finishing what is at hand", signal.Signals(number).name)
        elif number == signal.SIGINT:
            signal.default_int_handler(number, frame)

    for number in _SIGNALS:
        signal.signal(number, begin_to_stop)
    try:
        yield stop
    finally:
        # A stopping process still has to release its lease: only a second Ctrl-C may interrupt that.
        signal.signal(signal.SIGTERM, signal.SIG_IGN if received else before[signal.SIGTERM])
        signal.signal(signal.SIGINT, signal.default_int_handler if received else before[signal.SIGINT])
